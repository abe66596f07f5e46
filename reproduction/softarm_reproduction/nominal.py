"""
Settings that make a study simulate the nominal machine, so that a seed changes only noise.

A study passes these settings to `load_rig`. `softarm machines` shows how machines of a rig differ.
"""

from __future__ import annotations

NOMINAL = ('plant.machine.number=0',)
