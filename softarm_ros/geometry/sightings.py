"""What sensors of poses see: the bodies and points of one exposure, and where they sit."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from softarm_ros.geometry.arrays import Array


@dataclass(frozen=True)
class Place:
    """
    Where on the arm a body or point is fixed.

    Attributes
    ----------
    section : int
        Index of the section; -1: the base, which does not move.
    fraction : float
        Along the section, 0 (its base) to 1 (its tip), in arc length at rest.
    offset : (4, 4)
        Pose of the body in the cross-section's frame there; for a point only its last column.

    """

    section: int
    fraction: float = 1.0
    offset: Array = field(default_factory=lambda: np.eye(4))


@dataclass(frozen=True)
class BodySighting:
    """
    A rigid body, as a sensor saw it.

    Attributes
    ----------
    name : str
        That the sensor has for it.
    pose : (4, 4)
        In the frame of the sighting.
    covariance : (6, 6), optional
        Of position [m2], then of a rotation vector [rad2], both along the axes of that frame.

    """

    name: str
    pose: Array
    covariance: Array | None = None


@dataclass(frozen=True)
class PointSighting:
    """
    A marker of which only the position is known.

    Attributes
    ----------
    name : str
        That the sensor has for it; empty where it does not tell markers apart.
    position : (3,)
        In the frame of the sighting [m].
    covariance : (3, 3), optional
        [m2], along the axes of that frame.

    """

    name: str
    position: Array
    covariance: Array | None = None


@dataclass(frozen=True)
class Sighting:
    """
    What a sensor saw in one exposure; what it did not see is not in it.

    Attributes
    ----------
    stamp_ns : int
        Time of the exposure on this computer's clock [ns since 1970].
    frame_id : str
        Frame of all poses and positions.
    bodies, points
        Seen in this exposure.

    """

    stamp_ns: int
    frame_id: str
    bodies: tuple[BodySighting, ...] = ()
    points: tuple[PointSighting, ...] = ()
