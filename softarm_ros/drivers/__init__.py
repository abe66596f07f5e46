"""Device drivers: codecs, transports, device families; hardware libraries imported lazily."""
