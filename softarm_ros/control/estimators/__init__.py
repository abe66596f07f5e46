"""Estimators, one per file: `docs/estimation.md`."""
