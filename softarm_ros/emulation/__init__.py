"""Emulated devices: the device's end of every driver's transport, driven by a plant."""
