"""Sensors of poses: a folder per device. They report sightings (geometry/sightings.py)."""
