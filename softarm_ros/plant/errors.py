"""Errors of the simulated arm."""

from __future__ import annotations


class PlantError(RuntimeError):
    """The simulated arm left the range in which its model is valid."""
