"""Pose sensors, one folder per device; they report sightings (geometry/sightings.py)."""
