"""Devices of muscle arms: the board that times their valves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softarm_ros.drivers.messages import WATCHDOG_S
from softarm_ros.drivers.muscle_lengths import TICK_S
from softarm_ros.rigs.checks import as_many, check, checks_in
from softarm_ros.rigs.errors import Problem

MOST_DEAD_S = 0.2  # SA_MOST_DEAD_MS of the firmware


@check('actuators', 'devices')
def _outputs(rig: Any) -> Iterator[Problem]:
    wanted = 'a pair of outputs for each actuator, in their order', len(rig.actuators)
    count = len(rig.devices.valves.pairs)
    yield from as_many(('drives', 'valves', 'pairs'), count, 'pair', *wanted)


@check('valves', 'devices')
def _times_of_the_board(rig: Any) -> Iterator[Problem]:
    if rig.valves.longest_pulse_s > WATCHDOG_S:
        yield Problem(
            ('arm', 'valves', 'longest_pulse_s'),
            f'expected at most {WATCHDOG_S:g}, the watchdog of the board, which '
            'would cut off a longer pulse',
            f'{rig.valves.longest_pulse_s:g}',
        )
    if rig.valves.guard_s > MOST_DEAD_S:
        yield Problem(
            ('arm', 'valves', 'guard_s'),
            f'expected at most {MOST_DEAD_S:g}, the longest dead time of the board',
            f'{rig.valves.guard_s:g}',
        )
    for field in ('shortest_pulse_s', 'longest_pulse_s', 'guard_s'):
        ticks = getattr(rig.valves, field) / TICK_S
        if abs(ticks - round(ticks)) > 1e-6:
            yield Problem(
                ('arm', 'valves', field),
                'expected whole milliseconds, the ticks of the board',
                f'{TICK_S * ticks:g}',
            )


CHECKS = checks_in(globals())
