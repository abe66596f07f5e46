"""Minimum energy of a backbone with parallel muscles."""
