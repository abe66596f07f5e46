"""Minimum-energy model of a backbone with parallel muscles."""
