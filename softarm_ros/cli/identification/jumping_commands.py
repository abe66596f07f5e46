"""Recordings with commands that stand and jump; choice of rows at all times after a jump."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softarm_ros.cli.identification.recordings import Recorded, Rows

_HELD = 0.5  # least share of rows without a change of the commands
_GOLDEN = 0.5 * (5.0**0.5 - 1.0)


def jump_period_s(recorded: Sequence[Recorded]) -> float | None:
    """Return the longest sampling period [s] of commands that stand and jump; None if none do."""
    periods = []
    for one in recorded:
        told = one.whole if one.whole.followed is None else one.whole.followed
        # The delay belongs to commands: measured actuator positions have none.
        if told.time_s is None or one.whole.commanded is not None or len(told.commands) < 2:
            continue
        stands = np.all(told.commands[1:] == told.commands[:-1], axis=1)
        if np.mean(stands) >= _HELD:
            periods.append(float(np.median(np.diff(told.time_s))))
    return max(periods, default=None)


def spread_rows(rows: Rows, every: int) -> Rows:
    """
    Return about one row in `every`, spread over all times after a jump.

    A constant step that divides the time between two jumps would sample few of these times.
    """
    count = -(-len(rows) // every)
    within = np.floor(every * ((_GOLDEN * np.arange(count)) % 1.0)).astype(np.int64)
    return rows[np.minimum(every * np.arange(count) + within, len(rows) - 1)]
