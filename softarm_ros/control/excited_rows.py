"""What an arm was commanded and seen to do on its way through an excitation."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array

READ_S = 0.5  # poses of the end of a dwell are averaged
ROWS_PER_S = 10.0  # kept of poses that are read all along
_KEPT = 2000  # commands, for poses that come later


class ExcitationError(ValueError):
    """An arm cannot be moved through an excitation."""


@dataclass(frozen=True)
class ExcitedRows:
    """
    What was commanded and measured.

    Attributes
    ----------
    time_s : (n,)
        Of the measurements [s]; NaN of poses at rest.
    commands : (n, m)
        In effect, in the actuators' SI unit, less the pretension that no model knows.
    section_tips : (n, sections, 4, 4)
        Measured, in the base frame.

    """

    time_s: Array
    commands: Array
    section_tips: Array


class RowCollector:
    """
    Keeps a row for each place of an arm at rest, or ten a second of poses on the way.

    A row on the way has the command that was in effect when its pose was measured: the newest
    that is not later. Poses from before the first command are no rows.
    """

    def __init__(self) -> None:
        self._given: deque[tuple[float, Array]] = deque(maxlen=_KEPT)
        self._rows: list[tuple[float, Array, Array]] = []

    @property
    def newest_command(self) -> Array | None:
        """The command (m,) in effect now; None before the first."""
        return self._given[-1][1] if self._given else None

    @property
    def rows(self) -> ExcitedRows | None:
        """
        What was read so far; None before the first row.

        Where some rows have all sections and others the tip alone, those of all sections, or the
        tips of all rows if these are fewer than half.
        """
        if not self._rows:
            return None
        every = max(len(tips) for _, _, tips in self._rows)
        kept = [row for row in self._rows if len(row[2]) == every]
        if 2 * len(kept) < len(self._rows):
            kept = [(at, command, tips[-1:]) for at, command, tips in self._rows]
        times, commands, tips = zip(*kept)
        return ExcitedRows(np.array(times), np.array(commands), np.array(tips))

    def command(self, time_s: float, command: Array) -> None:
        """Note a command (m,), less pretension, that takes effect at a time [s]."""
        self._given.append((time_s, command))

    def due(self, time_s: float) -> bool:
        """Return whether a pose on the way, of this time [s], makes a row."""
        early = self._rows and time_s - self._rows[-1][0] < 1.0 / ROWS_PER_S - 1e-9
        return not early and bool(self._given) and self._given[0][0] <= time_s

    def on_the_way(self, time_s: float, section_tips: Array) -> None:
        """Keep a pose (sections, 4, 4) that is due, with the command in effect."""
        command = next(given for at, given in reversed(self._given) if at <= time_s)
        self._rows.append((time_s, command, section_tips))

    def at_rest(self, command: Array, seen: Sequence[Array]) -> None:
        """Keep the mean of poses, (sections, 4, 4) each, of an arm that stands under a command."""
        self._rows.append((np.nan, command, _mean_pose(np.array(seen))))


def _mean_pose(frames: Array) -> Array:
    """Return the mean pose (sections, 4, 4) of frames (n, sections, 4, 4) close to each other."""
    mean = frames.mean(axis=0)
    for frame in mean:
        u, _, v = np.linalg.svd(frame[:3, :3])
        frame[:3, :3] = u @ v
    return np.asarray(mean)
