"""Rotations and poses: pure functions."""
