"""Single markers along the arm: where the rig has them, and what a cloud of them is counted by."""

from __future__ import annotations

from softarm_ros.geometry.sightings import Place
from softarm_ros.rigs.schema import Rig


def points_along(rig: Rig) -> dict[str, Place]:
    """Return the places of the single markers that sensors see, but for one that is the tip."""
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
    """Return the names that a cloud of markers numbers: those of the first sensor of points."""
    devices = rig.sensors.devices().values()
    return next((one.markers_seen() for one in devices if one.points), ())
