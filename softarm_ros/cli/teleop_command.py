"""`softarm teleop`: move the tip of a running arm with keys of the terminal or a gamepad."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.goto_command import (
    GONE,
    SILENT_S,
    goal_client,
    require_arm,
    why_held,
)
from softarm_ros.cli.keyboard import END_OF_INPUT, typed_keys
from softarm_ros.cli.run_command import EXIT_INCOMPLETE
from softarm_ros.cli.stop_request import stop_on_signals
from softarm_ros.cli.teleop import TargetMover
from softarm_ros.geometry.configs import TOPIC_NAME
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import goal_speed_m_s

if TYPE_CHECKING:
    from softarm_ros.nodes.conversions import Health
    from softarm_ros.nodes.goal_client import GoalClient

RATE_HZ = 30.0
_PRINT_S = 0.5
_PAUSE_S = 0.5  # pause before a cancelled stream starts again, on a busy computer too
_LATE_S = 0.25  # of a turn of the loop: later, the age of keys and sticks is unknown
_FASTER, _SLOWEST, _FASTEST = 1.25, 0.1, 1.0  # factor; shares of the goals' speed
HELP = 'w/s: x   a/d: y   r/f: z   +/-: speed   space: stop   q: end'


def teleop(rig: Rig, joy: str | None, out: Callable[[str], None]) -> int:
    """
    Stream targets until q, Ctrl-C, or the end of the input or the arm; return the exit status.

    With a gamepad, input that is not a terminal, as of a service, may end.

    While the arm may not move, nothing is sent and the target stays at the reference, so that a
    start alone does not move the arm. The same holds for a moment after the stream was cancelled
    or refused, and after this process was delayed; input during the delay is ignored. After each
    of these, sticks have no effect until they have been seen at rest.

    Raises
    ------
    UsageError
        If no arm takes goals, or `joy` is no name of a topic.

    """
    if joy is not None and not re.match(TOPIC_NAME, joy):
        raise UsageError(f'--joy {joy!r}: expected the name of a topic, such as /joy')
    fastest = goal_speed_m_s(rig)
    with stop_on_signals() as stopped, goal_client()(rig, 'teleop') as client:
        require_arm(client, rig)
        reference = client.reference
        if reference is None:
            raise UsageError(f'{rig.name}: no reference/pose was received')
        mover = TargetMover(reference, 0.5 * fastest)
        if joy is not None:
            client.listen_to_joy(joy, lambda axes: mover.axes(list(axes), time.monotonic()))
        out(HELP if joy is None else f'{HELP}   or sticks on {joy}   Ctrl-C: end')
        before, shown = time.monotonic(), 0.0
        told, paused, paused_until = len(client.reports), '', 0.0
        with typed_keys(required=joy is None) as read:
            while not stopped():
                client.spin(1.0 / RATE_HZ)
                now = time.monotonic()
                reference = reference if client.reference is None else client.reference
                late_s = now - before - 1.0 / RATE_HZ
                if late_s > _LATE_S:
                    paused = f'delayed by {late_s:.1f} s: keys and sticks of that time are ignored'
                    paused_until, before = now + _PAUSE_S, now
                for key in read():
                    if key in ('q', END_OF_INPUT, '\x03'):
                        return 0
                    if late_s > _LATE_S:
                        continue
                    if key == ' ':
                        mover.halt(reference)
                    elif key in '+-':
                        factor = _FASTER if key == '+' else 1.0 / _FASTER
                        speed = min(max(mover.speed_m_s * factor, _SLOWEST * fastest), fastest)
                        mover.speed_m_s = speed
                    else:
                        mover.press(key, now)
                if not client.fresh('tracker', SILENT_S):
                    out(f'{rig.name}: {GONE}')
                    return EXIT_INCOMPLETE
                for report in client.reports[told:]:
                    if _given_up(report):
                        paused, paused_until = report.message, now + _PAUSE_S
                told = len(client.reports)
                held = why_held(client) or (paused if now < paused_until else '')
                if held:
                    mover.halt(reference)
                target = mover.advance(now, now - before, reference)
                before = now
                if not held:
                    client.send.stream(target)
                if now >= shown:
                    shown = now + _PRINT_S
                    x, y, z = 1e3 * target
                    said = held or mover.refusal(now) or _newest(client)
                    out(
                        f'target ({x:.1f}, {y:.1f}, {z:.1f}) mm at {1e3 * mover.speed_m_s:.1f} '
                        f'mm/s; {said}'
                    )
    return 0


def _newest(client: GoalClient) -> str:
    """Return the message of the latest report."""
    return client.reports[-1].message if client.reports else ''


def _given_up(report: Health) -> bool:
    """Return whether a stream has ended: further targets have no effect until they pause."""
    values = report.values
    return values.get('kind') == 'stream' and values.get('state') in ('cancelled', 'refused')
