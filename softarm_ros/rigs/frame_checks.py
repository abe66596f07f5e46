"""Consistency of the frames that a rig reads with those that it publishes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softarm_ros.rigs.checks import check, checks_in
from softarm_ros.rigs.errors import Problem


@check('name', 'sensors')
def _foreign_frames(rig: Any) -> Iterator[Problem]:
    """Reject links drawn from the command as measured bodies."""
    own = f'{rig.name}/'
    for k, body in enumerate(rig.sensors.devices()['tf'].bodies):
        if body.name.startswith(own) and body.name != f'{own}base':
            yield Problem(
                ('sensors', 'tf', 'bodies', k, 'name'),
                f"expected a frame that a sensor measures: those under {own} are this arm's own, "
                f'as it is drawn; only {own}base may have been placed by another program',
                body.name,
            )


CHECKS = checks_in(globals())
