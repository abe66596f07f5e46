"""What a cycle of the tracker knew, in a word: written by its node, read by a replay."""

from __future__ import annotations

import numpy as np

from softarm_ros.runtime.loop import Loop, PoseSample

ALLOWED, HELD, POSE, SECTIONS, LATE = 'allowed', 'held', 'pose', 'sections', 'late'


def cycle_source(allowed: bool, pose: PoseSample | None, *, late: bool = False) -> str:
    """
    Return whether motion was allowed, and whether there was a new pose, with its sections.

    `late`: the command stood, as what leads it had not come for too long.
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
    """Take one step and return to rest: compiled code is loaded, and every run begins alike."""
    loop.tracker.step(np.zeros(3), np.zeros(3), loop.period_s)
    loop.tracker.reset(loop.model.rest_configuration)
