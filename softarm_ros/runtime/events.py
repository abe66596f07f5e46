"""Events of a run that are worth reporting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal['info', 'warning', 'error']


@dataclass(frozen=True)
class Event:
    """One event: time [s] since the start of the run, level, source and message."""

    time_s: float
    level: Level
    source: str
    message: str
