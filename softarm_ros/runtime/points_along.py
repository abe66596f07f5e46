"""Single markers along the arm: their places on the rig, and the order of a marker cloud."""

from __future__ import annotations

from softarm_ros.geometry.sightings import Place
from softarm_ros.rigs.schema import Rig


def points_along(rig: Rig) -> dict[str, Place]:
    """Return the places of the single markers that sensors see, except a marker at the tip."""
    last = len(rig.section_names) - 1
    found: dict[str, Place] = {}
    for config in rig.sensors.devices().values():
        for point in config.points:
            place = point.place(rig.section_names)
            at_end = place.section == last and place.fraction == 1.0
            if not at_end or place.offset[:3, 3].any():
                found[point.name] = place
    return found


def markers_counted(rig: Rig) -> tuple[str, ...]:
    """Return the names that a marker cloud's indices refer to: those of the first point sensor."""
    devices = rig.sensors.devices().values()
    return next((one.markers_seen() for one in devices if one.points), ())
