"""Things worth telling that happened during a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal['info', 'warning', 'error']


@dataclass(frozen=True)
class Event:
    """One event: time [s] since the start of the run, level, who says it, what happened."""

    time_s: float
    level: Level
    source: str
    message: str
