"""The inputs of one tracker cycle as words: the tracker node writes them, a replay reads them."""

from __future__ import annotations

import numpy as np

from softarm_ros.runtime.loop import Loop, PoseSample

ALLOWED, HELD, POSE, SECTIONS, LATE = 'allowed', 'held', 'pose', 'sections', 'late'


def cycle_source(allowed: bool, pose: PoseSample | None, *, late: bool = False) -> str:
    """
    Return words for: motion allowed or held, a new pose, a measured configuration with it.

    `late`: the command stood still because the loop's input was overdue.
    """
    words = [ALLOWED if allowed else HELD]
    if pose is not None:
        words.append(POSE)
        if pose.configuration is not None:
            words.append(SECTIONS)
    if late:
        words.append(LATE)
    return ' '.join(words)


def load_code(loop: Loop) -> None:
    """Take one step to load compiled code, then return to rest so that every run begins alike."""
    loop.tracker.step(np.zeros(3), np.zeros(3), loop.period_s)
    loop.tracker.reset(loop.model.rest_configuration)
