"""Device drivers: codecs, transports and device families; hardware libraries imported lazily."""
