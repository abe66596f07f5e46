"""Frames on /tf as a sensor of poses."""
