"""The inputs of one tracker cycle as words: the tracker node writes them, a replay reads them."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from softarm_ros.runtime.loop import Loop, PoseSample

ALLOWED, HELD, POSE, SECTIONS, LATE = 'allowed', 'held', 'pose', 'sections', 'late'
_PACE = 'pace='


def cycle_source(allowed: bool, pose: PoseSample | None, pace: float) -> str:
    """
    Return words for: motion allowed or held, a new pose, a measured configuration with it, pace.

    `late`: the command stood still because the loop's input was overdue. `pace=0.5`: the estimator
    allowed this share of the speed.
    """
    words = [ALLOWED if allowed else HELD]
    if pose is not None:
        words.append(POSE)
        if pose.configuration is not None:
            words.append(SECTIONS)
    if pace == 0.0:
        words.append(LATE)
    elif pace != 1.0:
        words.append(f'{_PACE}{pace!r}')
    return ' '.join(words)


def pace_in(words: Collection[str]) -> float:
    """Return the pace that words of `cycle_source` state; ValueError if it is no number."""
    if LATE in words:
        return 0.0
    stated = [word.removeprefix(_PACE) for word in words if word.startswith(_PACE)]
    return float(stated[0]) if stated else 1.0


def load_code(loop: Loop) -> None:
    """Take one step to load compiled code, then return to rest so that every run begins alike."""
    loop.tracker.step(np.zeros(3), np.zeros(3), loop.period_s)
    loop.tracker.reset(loop.model.rest_configuration)
