"""Emulated devices: the other end of every driver's transport, driven by a plant."""
