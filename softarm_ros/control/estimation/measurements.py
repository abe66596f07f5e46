"""Conversion of a sighting to places on the arm and the measurements there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.estimator import SECTION, TIP
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.sightings import BodySighting, Place, PointSighting, Sighting

_UNTURNED = np.eye(4)
_THREE = np.arange(3)
# An exact measurement would leave no weight to others. No sensor of arms is better than this.
LEAST_NOISE_M = 1.0e-5
_ROUNDING = 1e-6  # rounding error of a covariance sent in single precision
_KEPT = 64  # layouts kept: random body names must not fill the memory


@dataclass(frozen=True)
class Noise:
    """Default standard deviations [m], [rad], and that of points inside a section [m]."""

    position_m: float
    orientation_rad: float
    shape_m: float


@dataclass(frozen=True)
class Measured:
    """
    Measurements of one exposure as blocks of rows: six for a body, three for a point.

    Attributes
    ----------
    stamp_s : float
    names : tuple of str
    sections, fractions, offsets
        Places (n,), (n,), (n, 4, 4) of the bodies and points.
    poses : (n, 4, 4)
        Measured poses; of a point, only the last column is used.
    covariances : (n, 6, 6)
    sizes : (n,)
        Rows of each block: 6 or 3.

    """

    stamp_s: float
    names: tuple[str, ...]
    sections: NDArray[np.int64]
    fractions: Array
    offsets: Array
    poses: Array
    covariances: Array
    sizes: NDArray[np.int64]


@dataclass(frozen=True)
class _Layout:
    """
    Properties of a sighting that depend on its names alone; attributes as in `Measured`.

    Attributes
    ----------
    order : tuple of int
        Blocks sorted by place along the arm, as indices of bodies, followed by points.
    as_seen : bool
        Whether the order is that of the sighting, and complete.
    beside : (n,)
        Variance [m2] of points inside a section about an even bend; 0 elsewhere.
    refused : tuple of str

    """

    names: tuple[str, ...]
    order: tuple[int, ...]
    as_seen: bool
    sections: NDArray[np.int64]
    fractions: Array
    offsets: Array
    covariances: Array
    beside: Array
    sizes: NDArray[np.int64]
    refused: tuple[str, ...]


class Places:
    """
    Knows the places on the arm of the bodies and points in sightings.

    Parameters
    ----------
    sections : int
    used : tuple of int
        Sections whose tips are used if a sighting contains them as `section_<k>`.
    places : mapping
        Name -> place, for other names or instead of the default places.
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
        self._layouts: dict[tuple[tuple[str, ...], int], _Layout] = {}
        self._body = np.diag([s.position_m**2] * 3 + [s.orientation_rad**2] * 3)
        for name, place in self._places.items():
            if not (-1 <= place.section < sections and 0.0 <= place.fraction <= 1.0):
                raise ValueError(
                    f'place of {name!r}: section {place.section}, fraction {place.fraction:g}; '
                    f'expected -1 to {sections - 1} and 0 to 1'
                )

    def measured(self, sighting: Sighting) -> tuple[Measured | None, list[str]]:
        """Return the usable measurements of a sighting (or None), and texts about the others."""
        bodies, points = sighting.bodies, sighting.points
        poses = np.empty((len(bodies) + len(points), 4, 4))
        for k, body in enumerate(bodies):
            poses[k] = body.pose
        for k, point in enumerate(points, len(bodies)):
            poses[k] = _UNTURNED
            poses[k, :3, 3] = point.position
        seen: tuple[BodySighting | PointSighting, ...] = (*bodies, *points)
        if not np.isfinite(poses).all():
            return self._usable_of(sighting, poses)
        layout = self._layout(tuple([one.name for one in seen]), len(bodies))
        if not layout.names:
            return None, list(layout.refused)
        covariances = layout.covariances
        stated = [row for row, k in enumerate(layout.order) if seen[k].covariance is not None]
        if stated:
            covariances = covariances.copy()
            for row in stated:
                given = np.asarray(seen[layout.order[row]].covariance)
                covariances[row, : len(given), : len(given)] = given
            if not _made_regular(covariances):
                return self._usable_of(sighting, poses)
            for row in stated:
                covariances[row, _THREE, _THREE] += layout.beside[row]
        return Measured(
            1e-9 * sighting.stamp_ns,
            layout.names,
            layout.sections,
            layout.fractions,
            layout.offsets,
            poses if layout.as_seen else poses[np.array(layout.order)],
            covariances,
            layout.sizes,
        ), list(layout.refused)

    def _usable_of(self, sighting: Sighting, poses: Array) -> tuple[Measured | None, list[str]]:
        """Return as `measured`, without entries that are not finite or whose covariance is bad."""
        refused: list[str] = []
        bodies: list[BodySighting] = []
        points: list[PointSighting] = []
        seen: tuple[BodySighting | PointSighting, ...] = (*sighting.bodies, *sighting.points)
        for k, one in enumerate(seen):
            if not np.isfinite(poses[k]).all():
                why = f'{one.name!r} is not finite'
            elif not _has_covariance(one):
                why = f'the covariance of {one.name!r} is invalid: expected no negative variance'
            else:
                if isinstance(one, BodySighting):
                    bodies.append(one)
                else:
                    points.append(one)
                continue
            if one.name not in self._passed_over:
                refused.append(why)
        rest = Sighting(sighting.stamp_ns, sighting.frame_id, tuple(bodies), tuple(points))
        measured, others = self.measured(rest)
        return measured, refused + others

    def _layout(self, names: tuple[str, ...], bodies: int) -> _Layout:
        """Return the layout of bodies followed by points; cached, since sensors repeat names."""
        key = (names, bodies)
        if key not in self._layouts:
            if len(self._layouts) >= _KEPT:
                self._layouts.clear()
            self._layouts[key] = self._laid_out(names, bodies)
        return self._layouts[key]

    def _laid_out(self, names: tuple[str, ...], bodies: int) -> _Layout:
        places = self._places
        refused = tuple(
            f'{name!r} has no place on the arm'
            for name in names
            if name not in places and name not in self._passed_over
        )
        order = [k for k, name in enumerate(names) if name in places]
        order.sort(key=lambda k: places[names[k]].section + places[names[k]].fraction)
        at = [places[names[k]] for k in order]
        inside = np.array([0.0 < place.fraction < 1.0 for place in at])
        beside = np.where(inside, self._noise.shape_m**2, 0.0)
        covariances = np.tile(self._body, (len(at), 1, 1))
        covariances[:, _THREE, _THREE] += beside[:, None]
        return _Layout(
            tuple(names[k] for k in order),
            tuple(order),
            order == list(range(len(names))),
            np.array([place.section for place in at], dtype=np.int64),
            np.array([place.fraction for place in at]),
            np.array([place.offset for place in at]),
            covariances,
            beside,
            np.array([6 if k < bodies else 3 for k in order], dtype=np.int64),
            refused,
        )


def _has_covariance(one: BodySighting | PointSighting) -> bool:
    """Return whether the covariance of a sighting is valid, or not stated."""
    return one.covariance is None or _made_regular(np.array(one.covariance, dtype=float)[None])


def _made_regular(covariances: Array) -> bool:
    """
    Add the least noise to covariances (n, m, m) that are singular, in place.

    Return whether all are valid covariances; if not, they may be unchanged.
    """
    if not np.isfinite(covariances).all():
        return False
    values = np.linalg.eigvalsh(covariances)
    if (values[:, 0] < -_ROUNDING * values[:, -1]).any():
        return False
    exact = values[:, 0] < LEAST_NOISE_M**2
    covariances[exact] += LEAST_NOISE_M**2 * np.eye(covariances.shape[-1])
    return True
