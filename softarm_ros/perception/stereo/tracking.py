"""Identification of points and disks in two images of one exposure, in the base frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import inverse_pose, pose
from softarm_ros.geometry.sightings import BodySighting, PointSighting
from softarm_ros.perception.stereo.cameras import SIDES, StereoCameras
from softarm_ros.perception.stereo.config import StereoCamerasConfig
from softarm_ros.perception.stereo.detection import Marks, find_marks, load_code
from softarm_ros.perception.stereo.disk_kernels import assign_disks
from softarm_ros.perception.stereo.disk_pose import disk_pose
from softarm_ros.perception.stereo.images import Image
from softarm_ros.perception.stereo.labelling import in_order, label
from softarm_ros.perception.stereo.matching import Candidates, candidates, unambiguous
from softarm_ros.perception.stereo.region_kernels import in_one_region, moved, regions_around
from softarm_ros.perception.stereo.triangulation import triangulate

# Speed at which the gate of an unseen marker widens.
_DRIFT_M_S = 0.3
_FORGOTTEN_S = 1.0
_DISK_FORGOTTEN_S = 0.15  # after a longer time, a disk may have turned too far
_TRACKED_M = 0.004  # error of the extrapolated position of a disk, in addition to the drift
# While markers are missing, whole images are searched after this number of pairs.
_SEARCH_EVERY = 6
_LARGEST_M = 0.02  # assumed diameter of a marker of unknown size
_TURNED = 0.2  # largest turn of a disk from its expected orientation [rad]
_RIM_PX = 6.0  # around a marker, for its background
_SUSPICIOUS_M = 0.03  # an unnamed point this near to a marker is a reflection on the arm

Predict = Callable[[], Mapping[str, Array] | None]


@dataclass(frozen=True)
class Seen:
    """
    Markers and bodies seen in one exposure.

    Attributes
    ----------
    points : tuple of PointSighting
        Markers in the base frame; hidden and ambiguous markers are omitted.
    marks : (Marks, Marks)
        Marks of the left and right image.
    pairs : int
        Number of pairs of marks whose rays meet.
    bodies : tuple of BodySighting
        Disks with three or more consistent markers.
    doubted : tuple of str
        Markers of disks that were found at impossible positions.
    strangers : (n, 3)
        Points near the arm that are not its markers [m].
    searched : bool
        Whether the whole images were searched.

    """

    points: tuple[PointSighting, ...]
    marks: tuple[Marks, Marks]
    pairs: int
    bodies: tuple[BodySighting, ...] = ()
    doubted: tuple[str, ...] = ()
    strangers: Array = field(default_factory=lambda: np.empty((0, 3)))
    searched: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of bodies and points."""
        return tuple(b.name for b in self.bodies) + tuple(p.name for p in self.points)


@dataclass(frozen=True)
class _Expected:
    """
    Expected positions of markers.

    Attributes
    ----------
    rows : dict
        Row of each marker in the arrays, by name.
    disk_rows : (m,)
        Row of each marker of the bodies, in their order; -1 if it is not expected anywhere.
    places : (n, 3)
        Positions in the base frame [m].
    reaches : (n,)
        Their standard deviations [m].

    """

    rows: dict[str, int]
    disk_rows: NDArray[np.int64]
    places: Array
    reaches: Array


class MarkerTracker:
    """
    Identifies the markers in two images by their expected positions.

    The expected position is the last one, extrapolated with the last velocity. For markers not
    seen recently, it is the prediction of a model, if there is one. At the start and without a
    model, the order along the arm identifies the markers. Images are searched around the expected
    positions, and as a whole while markers are missing.

    Parameters
    ----------
    config : StereoCamerasConfig
    cameras : StereoCameras
    predict : callable, optional
        Returns the predicted position (3,) of every marker now, in the base frame; called only for
        markers not seen recently.

    """

    def __init__(
        self, config: StereoCamerasConfig, cameras: StereoCameras, predict: Predict | None = None
    ) -> None:
        self.predict = predict
        self._config = config
        self._cameras = cameras
        self._X_LB = _plain(cameras.base_pose())
        self._X_BL = inverse_pose(self._X_LB)
        self._points = [point.name for point in config.points]
        self._bodies = {body.name: body.marker_names() for body in config.bodies}
        self._offsets = {
            body.name: np.array(body.markers, dtype=np.float64) for body in config.bodies
        }
        self._of_bodies = [name for names in self._bodies.values() for name in names]
        counts = [0, *map(len, self._bodies.values())]
        self._starts = np.cumsum(np.array(counts, dtype=np.int64))
        self._tolerances_m = np.array([_TURNED * _size(one) for one in self._offsets.values()])
        self._last: dict[str, tuple[int, Array, Array]] = {}  # stamp, position, velocity
        self._disks: dict[str, tuple[int, Array, Array]] = {}  # stamp, pose, velocity
        self._expected: tuple[int, Mapping[str, Array]] | None = None
        self._names: list[str] = []
        self._rows: dict[str, int] = {}
        self._disk_rows = np.full(len(self._of_bodies), -1, dtype=np.int64)
        self._since_search = _SEARCH_EVERY
        self._missing = True
        _load_code(cameras)

    def expect(self, stamp_ns: int, positions_B: Mapping[str, Array]) -> None:
        """Set predicted positions (3,) of markers at a time, in the base frame."""
        self._expected = (stamp_ns, dict(positions_B))

    def see(self, stamp_ns: int, left: Image, right: Image) -> Seen:
        """Return the markers and bodies in two images of one exposure."""
        expected = self._where(stamp_ns)
        wanted = len(self._points) + len(self._of_bodies)
        self._since_search += 1
        search = len(expected.rows) < wanted or (
            self._missing and self._since_search >= _SEARCH_EVERY
        )
        regions = None
        if search:
            self._since_search = 0
        else:
            regions = self._regions(expected)
        looks = self._config.markers
        parts = (None, None) if regions is None else (regions[0], regions[1])
        marks = find_marks(left, looks, parts[0]), find_marks(right, looks, parts[1])
        return replace(self._named(stamp_ns, marks, expected, regions), searched=search)

    def name(self, stamp_ns: int, marks: tuple[Marks, Marks]) -> Seen:
        """Return the markers and bodies for given marks of two images."""
        return self._named(stamp_ns, marks, self._where(stamp_ns), None)

    def fits_swapped(self, marks: tuple[Marks, Marks]) -> bool:
        """Return whether marks that form no pairs form pairs with the cameras exchanged."""
        exchanged = candidates(
            self._cameras, marks[1], marks[0], marker_m=self._config.marker_diameter_m
        )
        wanted = len(self._points) + 2 * len(self._bodies)
        return len(unambiguous(exchanged).left) >= min(2, wanted)

    # -- where markers are expected

    def _where(self, stamp_ns: int) -> _Expected:
        """Return the expected positions of markers; omit those without any information."""
        names: list[str] = []
        places: list[Array] = []
        reaches: list[float] = []
        for name, (last_ns, position, velocity) in self._last.items():
            gone_s = 1e-9 * (stamp_ns - last_ns)
            if 0.0 < gone_s < _FORGOTTEN_S:
                names.append(name)
                places.append((position + gone_s * velocity)[None])
                reaches.append(self._config.expected_within_m + _DRIFT_M_S * gone_s)
        for name, (last_ns, X, velocity) in self._disks.items():
            gone_s = 1e-9 * (stamp_ns - last_ns)
            if 0.0 < gone_s < _DISK_FORGOTTEN_S:
                names.extend(self._bodies[name])
                expected_X = X.copy()
                expected_X[:3, 3] += gone_s * velocity
                places.append(moved(self._offsets[name], expected_X))
                reaches.extend([_TRACKED_M + _DRIFT_M_S * gone_s] * len(self._bodies[name]))
        if len(names) < len(self._points) + len(self._of_bodies):
            predicted, wide = self._predicted(stamp_ns, set(names))
            names.extend(predicted)
            places.extend(
                np.array(one, dtype=np.float64).reshape(1, 3) for one in predicted.values()
            )
            reaches.extend([wide] * len(predicted))
        if names != self._names:  # usually, the markers are the same as in the last exposure
            self._names, self._rows = names, {name: row for row, name in enumerate(names)}
            self._disk_rows = np.array(
                [self._rows.get(name, -1) for name in self._of_bodies], dtype=np.int64
            )
        return _Expected(
            self._rows,
            self._disk_rows,
            np.concatenate(places) if places else np.empty((0, 3)),
            np.array(reaches, dtype=np.float64),
        )

    def _predicted(self, stamp_ns: int, known: set[str]) -> tuple[dict[str, Array], float]:
        """Return predictions of markers not known otherwise, and their standard deviation [m]."""
        late_s, positions = 0.0, None
        if self._expected is not None:
            late_s = 1e-9 * abs(stamp_ns - self._expected[0])
            positions = self._expected[1] if late_s < _FORGOTTEN_S else None
        wanted = [name for name in (*self._points, *self._of_bodies) if name not in known]
        if positions is None and self.predict is not None:
            late_s, positions = 0.0, self.predict()
        if positions is None:
            return {}, 0.0
        wide = self._config.expected_within_m + _DRIFT_M_S * late_s
        return {name: positions[name] for name in wanted if name in positions}, wide

    def _regions(self, expected: _Expected) -> Array:
        """Return search regions (2, n, 4) of both images, as from `regions_around`."""
        window = self._cameras.window
        return regions_around(
            expected.places,
            # Three standard deviations of the position, the marker's radius, and its rim.
            3.0 * expected.reaches,
            self._X_LB,
            0.6 * (self._config.marker_diameter_m or _LARGEST_M),
            _RIM_PX,
            1.0 if window is None else window.water / window.air,
            *self._cameras.numbers,
        )

    # -- what marks are

    def _named(
        self,
        stamp_ns: int,
        marks: tuple[Marks, Marks],
        expected: _Expected,
        regions: Array | None,
    ) -> Seen:
        found = candidates(
            self._cameras,
            *marks,
            marker_m=self._config.marker_diameter_m,
            together=None
            if regions is None
            else in_one_region(marks[0].pixels, marks[1].pixels, regions),
            X=self._X_BL,
        )
        which = self._which_points(found, expected)
        points = []
        for name in self._points:
            if name in which:
                n = which[name]
                points.append(PointSighting(name, found.points[n], found.covariances[n]))
                self._remember(name, stamp_ns, found.points[n])
        bodies: list[BodySighting] = []
        doubted: list[str] = []
        taken = set(which.values())
        for name, labels in self._which_disks(found, expected).items():
            self._see_disk(name, labels, stamp_ns, found, (points, bodies, doubted, taken))
        count = len(self._points) + len(self._bodies)
        self._missing = len(which) + len(bodies) < count
        return Seen(
            tuple(points),
            marks,
            len(found.left),
            tuple(bodies),
            tuple(doubted),
            self._strangers(found, taken, expected, {b.name for b in bodies} | set(which)),
        )

    def _which_disks(self, found: Candidates, expected: _Expected) -> dict[str, dict[int, int]]:
        """
        Return the index of each marker's point, by disk; no point belongs to two disks.

        Disks may look alike, and a disk that was hidden for a moment may have moved far. If two
        disks claim the same points, the disk that is nearer to its expected position gets them.
        """
        if not self._bodies:
            return {}
        labels = assign_disks(
            found.points,
            expected.places,
            expected.reaches,
            expected.disk_rows,
            self._starts,
            self._tolerances_m,
        ).tolist()
        each = iter(labels)
        return {
            name: {marker: n for marker, n in zip(range(len(names)), each) if n >= 0}
            for name, names in self._bodies.items()
        }

    def _see_disk(
        self,
        name: str,
        which: Mapping[int, int],
        stamp_ns: int,
        found: Candidates,
        seen: tuple[list[PointSighting], list[BodySighting], list[str], set[int]],
    ) -> None:
        """Add a disk, its markers and its doubted markers to `seen`, if its pose can be fitted."""
        points, bodies, doubted, taken = seen
        if not which:
            return
        names = self._bodies[name]
        markers, numbers = list(which), list(which.values())
        fit = disk_pose(
            self._offsets[name][markers],
            found.points[numbers],
            found.covariances[numbers],
            self._config.mounted_within_m,
        )
        if fit is None:
            return
        for k in fit.used:
            n = numbers[k]
            points.append(PointSighting(names[markers[k]], found.points[n], found.covariances[n]))
            taken.add(n)
        doubted.extend(names[markers[k]] for k in fit.doubted)
        bodies.append(BodySighting(name, fit.pose, fit.covariance))
        velocity = np.zeros(3)
        if name in self._disks:
            last_ns, before, slow = self._disks[name]
            gone_s = 1e-9 * (stamp_ns - last_ns)
            if 0.0 < gone_s < _DISK_FORGOTTEN_S:
                velocity = 0.5 * slow + 0.5 * (fit.pose[:3, 3] - before[:3, 3]) / gone_s
        self._disks[name] = (stamp_ns, pose(fit.pose[:3, :3], fit.pose[:3, 3]), velocity)

    def _which_points(self, found: Candidates, expected: _Expected) -> dict[str, int]:
        if not self._points:
            return {}
        if self._config.markers.kind == 'aruco':
            clear = unambiguous(found)
            return {n: found.names.index(n) for n in clear.names if n in self._points}
        known = {name: expected.rows[name] for name in self._points if name in expected.rows}
        if known:
            return label(
                found,
                {name: expected.places[n] for name, n in known.items()},
                {name: expected.reaches[n] ** 2 * np.eye(3) for name, n in known.items()},
            )
        if self._bodies:
            return {}
        clear = unambiguous(found)
        ordered = in_order(clear.points, self._points, np.zeros(3), self._config.spacing_m)
        numbers = list(zip(found.left.tolist(), found.right.tolist()))
        return {
            name: numbers.index((int(clear.left[n]), int(clear.right[n])))
            for name, n in ordered.items()
        }

    @staticmethod
    def _strangers(
        found: Candidates, taken: set[int], expected: _Expected, seen: set[str]
    ) -> Array:
        """
        Return points near the visible parts of the arm whose marks belong to no marker.

        Points near an unidentified disk are not included: they may be its own markers.
        """
        lefts, rights = found.left.tolist(), found.right.tolist()
        of_taken = {lefts[n] for n in taken}, {rights[n] for n in taken}
        left_over = [
            n
            for n in range(len(lefts))
            if lefts[n] not in of_taken[0] and rights[n] not in of_taken[1]
        ]
        near_by = [
            row
            for name, row in expected.rows.items()
            if name in seen or name.rpartition(':')[0] in seen
        ]
        if not near_by or not left_over:
            return np.empty((0, 3))
        places = expected.places[near_by]
        away = np.linalg.norm(found.points[left_over][:, None] - places[None], axis=2)
        near: Array = found.points[left_over][(away < _SUSPICIOUS_M).any(axis=1)]
        return near

    def _remember(self, name: str, stamp_ns: int, position: Array) -> None:
        velocity = np.zeros(3)
        if name in self._last:
            last_ns, before, slow = self._last[name]
            gone_s = 1e-9 * (stamp_ns - last_ns)
            if 0.0 < gone_s < _FORGOTTEN_S:
                velocity = 0.5 * slow + 0.5 * (position - before) / gone_s
        self._last[name] = (stamp_ns, position, velocity)


def _plain(X: Array) -> Array:
    """Return a pose as compiled code takes it: contiguous and writable."""
    return np.array(X, dtype=np.float64, order='C')


def _size(offsets: Array) -> float:
    """Return the largest distance of markers (n, 3) from their middle [m]."""
    return float(np.linalg.norm(offsets - offsets.mean(axis=0), axis=1).max())


def _load_code(cameras: StereoCameras) -> None:
    """Load compiled code now, not at the first exposure."""
    load_code()
    corners = np.array([[0.0, 0.0, 1.0], [0.1, 0.0, 1.0], [0.0, 0.1, 1.0]])
    reaches, numbers, X_LB = np.full(3, 0.1), np.arange(3), _plain(cameras.base_pose())
    regions = regions_around(
        moved(corners, X_LB), reaches, X_LB, 0.01, _RIM_PX, 1.0, *cameras.numbers
    )
    pixels = [cameras.project(side, corners) for side in SIDES]
    triangulate(cameras, *pixels)
    in_one_region(pixels[0], pixels[1], regions)
    left, right = (
        Marks(each, np.tile(np.eye(2), (3, 1, 1)), np.ones(3), ('',) * 3) for each in pixels
    )
    candidates(cameras, left, right, X=inverse_pose(cameras.base_pose()))
    assign_disks(corners, corners, reaches, numbers, np.array([0, 3]), reaches[:1])
    disk_pose(corners, corners, np.tile(np.eye(3), (3, 1, 1)), 0.0)
