"""Frames on /tf as a pose sensor."""
