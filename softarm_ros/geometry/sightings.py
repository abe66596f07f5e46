"""Measurements of pose sensors: bodies and points of one exposure, and their places on the arm."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from softarm_ros.geometry.arrays import Array


@dataclass(frozen=True)
class Place:
    """
    Place on the arm where a body or point is fixed.

    Attributes
    ----------
    section : int
        Index of the section; -1 is the base, which does not move.
    fraction : float
        Position along the section, 0 (its base) to 1 (its tip), in arc length at rest.
    offset : (4, 4)
        Pose of the body in the frame of the cross-section there; for a point, only the last column
        counts.

    """

    section: int
    fraction: float = 1.0
    offset: Array = field(default_factory=lambda: np.eye(4))


@dataclass(frozen=True)
class BodySighting:
    """
    Rigid body, as seen by a sensor.

    Attributes
    ----------
    name : str
        Name of the body in the sensor.
    pose : (4, 4)
        Pose in the frame of the sighting.
    covariance : (6, 6), optional
        Covariance of the position [m2], then of a rotation vector [rad2], both along the axes of
        that frame.

    """

    name: str
    pose: Array
    covariance: Array | None = None


@dataclass(frozen=True)
class PointSighting:
    """
    Marker whose position alone is known.

    Attributes
    ----------
    name : str
        Name of the marker in the sensor; empty if the sensor does not tell markers apart.
    position : (3,)
        Position in the frame of the sighting [m].
    covariance : (3, 3), optional
        Covariance of the position [m2], along the axes of that frame.

    """

    name: str
    position: Array
    covariance: Array | None = None


@dataclass(frozen=True)
class Sighting:
    """
    Bodies and points that a sensor saw in one exposure.

    Attributes
    ----------
    stamp_ns : int
        Time of the exposure on this computer's clock [ns since 1970].
    frame_id : str
        Frame of all poses and positions.
    bodies, points
        Bodies and points seen in this exposure; unseen ones are absent.

    """

    stamp_ns: int
    frame_id: str
    bodies: tuple[BodySighting, ...] = ()
    points: tuple[PointSighting, ...] = ()
