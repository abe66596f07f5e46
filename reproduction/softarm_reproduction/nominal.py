"""
The simulated arm of a paper is the one its rig file states; a seed changes noise alone.

A study passes these settings to `load_rig`. How arms of one drawing differ: `softarm machines`.
"""

from __future__ import annotations

NOMINAL = ('plant.machine.number=0',)
