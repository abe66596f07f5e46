"""From a sighting to places on the arm and what was measured there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.estimator import SECTION, TIP
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.sightings import Place, Sighting


@dataclass(frozen=True)
class Noise:
    """Standard deviations where a sensor states none: [m], [rad]; and of points between ends."""

    position_m: float
    orientation_rad: float
    shape_m: float


@dataclass(frozen=True)
class Measured:
    """
    What one exposure measured, as blocks of rows: a body has six, a point three.

    Attributes
    ----------
    stamp_s : float
    names : tuple of str
    sections, fractions, offsets
        Places (n,), (n,), (n, 4, 4) of the bodies and points.
    poses : (n, 4, 4)
        Measured; of a point the last column counts.
    covariances : (n, 6, 6)
    sizes : (n,)
        Rows of each: 6 or 3.

    """

    stamp_s: float
    names: tuple[str, ...]
    sections: NDArray[np.int64]
    fractions: Array
    offsets: Array
    poses: Array
    covariances: Array
    sizes: NDArray[np.int64]


class Places:
    """
    Knows where on the arm the bodies and points of sightings sit.

    Parameters
    ----------
    sections : int
    used : tuple of int
        Sections whose tips are used where they are seen as `section_<k>`.
    places : mapping
        Name -> place, of others and in their stead.
    noise : Noise

    """

    def __init__(
        self,
        sections: int,
        used: tuple[int, ...],
        places: Mapping[str, Place],
        noise: Noise,
    ) -> None:
        ends = {f'{SECTION}{k}': Place(k) for k in used}
        self._places = {**ends, TIP: Place(sections - 1), **places}
        self._passed_over = {f'{SECTION}{k}' for k in range(sections)} - set(self._places)
        self._noise = noise
        s = self._noise
        self._body = np.diag([s.position_m**2] * 3 + [s.orientation_rad**2] * 3)
        for name, place in self._places.items():
            if not (-1 <= place.section < sections and 0.0 <= place.fraction <= 1.0):
                raise ValueError(
                    f'place of {name!r}: section {place.section}, fraction {place.fraction:g}; '
                    f'expected -1 to {sections - 1} and 0 to 1'
                )

    def measured(self, sighting: Sighting) -> tuple[Measured | None, list[str]]:
        """Return what of a sighting can be used, and what cannot."""
        rows: list[tuple[str, Place, Array, Array, int]] = []
        refused: list[str] = []
        for body in sighting.bodies:
            place = self._place(body.name, body.pose, refused)
            if place is not None:
                given = body.covariance
                rows.append(
                    (body.name, place, body.pose, self._body if given is None else given, 6)
                )
        for point in sighting.points:
            place = self._place(point.name, point.position, refused)
            if place is not None:
                pose, covariance = np.eye(4), self._body.copy()
                pose[:3, 3] = point.position
                if point.covariance is not None:
                    covariance[:3, :3] = point.covariance
                rows.append((point.name, place, pose, covariance, 3))
        if not rows:
            return None, refused
        rows.sort(key=lambda row: row[1].section + row[1].fraction)
        covariances = np.array([row[3] for row in rows])
        for k, (_, place, *_rest) in enumerate(rows):
            if 0.0 < place.fraction < 1.0:
                covariances[k, [0, 1, 2], [0, 1, 2]] += self._noise.shape_m**2
        return Measured(
            1e-9 * sighting.stamp_ns,
            tuple(row[0] for row in rows),
            np.array([row[1].section for row in rows]),
            np.array([row[1].fraction for row in rows]),
            np.array([row[1].offset for row in rows]),
            np.array([row[2] for row in rows]),
            covariances,
            np.array([row[4] for row in rows]),
        ), refused

    def _place(self, name: str, values: Array, refused: list[str]) -> Place | None:
        if name in self._passed_over:
            return None
        place = self._places.get(name)
        if place is None:
            refused.append(f'{name!r} has no place on the arm')
        elif not np.all(np.isfinite(values)):
            refused.append(f'{name!r} is not finite')
            return None
        return place
