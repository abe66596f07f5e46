"""Grippers: a file each, found by its name."""
