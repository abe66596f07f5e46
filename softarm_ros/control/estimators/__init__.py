"""Estimators, a file each: `docs/estimation.md`."""
