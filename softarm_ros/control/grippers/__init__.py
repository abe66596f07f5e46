"""Grippers, one per file, found by its name."""
