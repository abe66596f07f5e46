"""Checks of what a pose sensor returns, which may be a part of another package."""

from __future__ import annotations

from numbers import Integral

from softarm_ros.geometry.answers import described, has_finite_floats, misfit
from softarm_ros.geometry.sightings import Sighting
from softarm_ros.perception.sensor import SensorError


def checked_sightings(seen: object, whose: str) -> list[Sighting]:
    """
    Return what `PoseSensor.read` has returned; `whose` names the sensor.

    Raises
    ------
    SensorError
        If it is no list of sightings, or a pose or position has the wrong shape or type, or is
        not finite; the message states sensor, value and what was expected.

    """
    if not isinstance(seen, list):
        raise SensorError(f'{whose} returned {described(seen)}; expected a list of sightings')
    for sighting in seen:
        if not isinstance(sighting, Sighting):
            raise SensorError(f'{whose} returned {described(sighting)}; expected a Sighting')
        stamp = sighting.stamp_ns
        if not isinstance(stamp, Integral):
            raise SensorError(f'{whose} returned stamp_ns {described(stamp)}; expected whole ns')
        for body in sighting.bodies:
            if not has_finite_floats(body.pose, (4, 4)):
                named = f'pose of {body.name!r}'
                raise SensorError(misfit(whose, named, body.pose, '4 x 4 finite'))
        for point in sighting.points:
            if not has_finite_floats(point.position, (3,)):
                named = f'position of {point.name!r}'
                raise SensorError(misfit(whose, named, point.position, '3 finite'))
    return seen
