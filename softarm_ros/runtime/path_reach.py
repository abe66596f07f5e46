"""Check how far the paths of rigs are within reach; cache the results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from softarm_ros.control.path import Path
from softarm_ros.control.reach import Reach, check_reach, reaches_any
from softarm_ros.control.tracker import Tracker
from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.schema import Rig

POINTS = 120
_KEPT = 64  # paths; a table of all rigs has half as many


class _Question(NamedTuple):
    """All inputs that determine the reach of a path."""

    rig: Rig
    model: str
    open_loop: bool
    points: Array

    def same(self, other: _Question) -> bool:
        """Return whether the other question has the same answer."""
        return (
            (self.model, self.open_loop) == (other.model, other.open_loop)
            and np.array_equal(self.points, other.points)
            and self.rig == other.rig
        )


def reaches_path(tracker: Tracker, path: Path) -> bool:
    """Return whether any sampled point of a path is reachable; usually the first one is."""
    return reaches_any(tracker.model, tracker.room, tracker.configuration_limits, path, POINTS)


_answers: deque[tuple[_Question, Reach]] = deque(maxlen=_KEPT)


def path_reach(
    rig: Rig,
    tracker: Tracker,
    path: Path,
    *,
    model: str | None,
    open_loop: bool,
    progress: Callable[[float], None] = lambda _: None,
) -> Reach:
    """
    Return `check_reach` of a path for a rig's own tracker and the model of this name.

    The result is cached for equal rigs: tables of runs drive each path many times.
    """
    asked = _Question(rig, rig.model_name(model), open_loop, path.sample(POINTS))
    if rig.residual is None:  # the residual file may change
        for known, reach in _answers:
            if known.same(asked):
                return reach
    limits = tracker.configuration_limits
    reach = check_reach(tracker.model, tracker.room, limits, path, POINTS, progress)
    for array in (reach.points, reach.miss_m, reach.nearest, reach.start_configuration):
        array.flags.writeable = False
    _answers.append((asked, reach))
    return reach
