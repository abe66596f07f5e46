"""Report a computer too slow for the control loop, and by how much, as the cause of a fault."""

from __future__ import annotations

import math
from collections.abc import Mapping

# Lateness beyond ordinary jitter.
LATE_S = 0.04
# Above this load, work without real-time priority, such as serial ports, may wait long.
FULL_PERCENT = 97.0
ADVICE = 'end other programs, or allow real-time priority (docs/topics.md)'


def describe_slowness(
    late_s: Mapping[str, float],
    cycles: int,
    missed: int,
    load_percent: float | None,
    *,
    computed_s: float = 0.0,
    period_s: float = math.inf,
) -> str:
    """
    Return one sentence with the evidence, or '' if nothing was late and the processors had time.

    Parameters
    ----------
    late_s : mapping of str to float
        Worst lateness [s] of each node in the last second or two.
    cycles, missed : int
        Cycles of the control loop while in motion, and how many of them were missed.
    load_percent : float or None
        Use of all processors; None if not known.
    computed_s, period_s : float
        Time [s] in which 99 % of the cycles are computed, and the period of the loop [s].

    """
    name, worst = max(late_s.items(), key=lambda item: item[1], default=('', 0.0))
    full = load_percent is not None and load_percent >= FULL_PERCENT
    if worst < LATE_S and not full:
        return ''
    verdict = 'is' if worst >= LATE_S else 'may be'
    load = '' if load_percent is None else f', processors {load_percent:.0f} % busy'
    advice = ADVICE
    if computed_s > period_s:  # more than its share of one processor, however fast the others
        load += f', cycles of {1e3 * period_s:.0f} ms computed in up to {1e3 * computed_s:.0f} ms'
        advice = f'use a faster model or controller, lower controller.rate_hz, or {advice}'
    return (
        f'the computer {verdict} too slow: {name} was late by {1e3 * worst:.0f} ms, '
        f'{missed} of {cycles} cycles missed{load}; {advice}'
    )
