"""Rows of commands and measured poses, collected during an excitation."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array

READ_S = 0.5  # poses are averaged over this last part of a dwell
ROWS_PER_S = 10.0  # rows kept per second while poses are read throughout
_KEPT = 2000  # commands kept for poses that arrive later


class ExcitationError(ValueError):
    """The arm cannot be moved through an excitation."""


@dataclass(frozen=True)
class ExcitedRows:
    """
    Commands and the poses measured under them.

    Attributes
    ----------
    time_s : (n,)
        Time of each measurement [s]; NaN for poses at rest.
    commands : (n, m)
        Command in effect, in the actuators' SI unit, without the pretension, which models ignore.
    section_tips : (n, sections, 4, 4)
        Measured poses in the base frame.

    """

    time_s: Array
    commands: Array
    section_tips: Array


class RowCollector:
    """
    Keeps one row for each place at which the arm rests, or ten rows a second during motion.

    A row during motion has the command that was in effect when its pose was measured, i.e. the
    newest that is not later. A pose from before the first command makes no row.
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
        Rows read so far; None before the first.

        If some rows have all sections and others the tip alone, only those with all sections are
        returned; if these are fewer than half, the tips of all rows.
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
        """Note that a command (m,), without pretension, takes effect at a time [s]."""
        self._given.append((time_s, command))

    def due(self, time_s: float) -> bool:
        """Return whether a pose measured during motion at this time [s] makes a row."""
        early = self._rows and time_s - self._rows[-1][0] < 1.0 / ROWS_PER_S - 1e-9
        return not early and bool(self._given) and self._given[0][0] <= time_s

    def on_the_way(self, time_s: float, section_tips: Array) -> None:
        """Keep a pose (sections, 4, 4) that is due, with the command then in effect."""
        command = next(given for at, given in reversed(self._given) if at <= time_s)
        self._rows.append((time_s, command, section_tips))

    def at_rest(self, command: Array, seen: Sequence[Array]) -> None:
        """Keep the mean of poses, (sections, 4, 4) each, of an arm at rest under a command."""
        self._rows.append((np.nan, command, _mean_pose(np.array(seen))))


def _mean_pose(frames: Array) -> Array:
    """Return the mean pose (sections, 4, 4) of nearly equal frames (n, sections, 4, 4)."""
    mean = frames.mean(axis=0)
    for frame in mean:
        u, _, v = np.linalg.svd(frame[:3, :3])
        frame[:3, :3] = u @ v
    return np.asarray(mean)
