"""Measurements from whatever holds them: a bag, a file of `softarm excite`, another CSV file."""

from __future__ import annotations

from pathlib import Path

from softarm_ros.cli.measured_bag import read_bag_run
from softarm_ros.cli.measured_excitation import read_excitation, sections_seen
from softarm_ros.cli.measured_run import MeasuredRun, read_csv_run, with_memory
from softarm_ros.rigs.schema import Rig


def read_run(rig: Rig, path: Path) -> MeasuredRun:
    """
    Return the measurements of a CSV file as the rig's `recording` maps it, or of a bag.

    Raises
    ------
    MeasurementError
        If it cannot be read, lacks what is needed, or has no complete row.

    """
    if path.suffix == '.mcap' or path.is_dir():
        return with_memory(rig, read_bag_run(rig, path))
    if sections_seen(rig, path):
        return with_memory(rig, read_excitation(rig, path))
    return read_csv_run(rig, path)
