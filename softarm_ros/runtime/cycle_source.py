"""What a cycle of the tracker knew, in a word: written by its node, read by a replay."""

from __future__ import annotations

import numpy as np

from softarm_ros.runtime.loop import Loop, PoseSample

ALLOWED, HELD, POSE, SECTIONS = 'allowed', 'held', 'pose', 'sections'


def cycle_source(allowed: bool, pose: PoseSample | None) -> str:
    """Return whether motion was allowed, and whether there was a new pose, with its sections."""
    words = [ALLOWED if allowed else HELD]
    if pose is not None:
        words.append(POSE)
        if pose.configuration is not None:
            words.append(SECTIONS)
    return ' '.join(words)


def load_code(loop: Loop) -> None:
    """Take one step and return to rest: compiled code is loaded, and every run begins alike."""
    loop.tracker.step(np.zeros(3), np.zeros(3), loop.period_s)
    loop.tracker.reset(loop.model.rest_configuration)
