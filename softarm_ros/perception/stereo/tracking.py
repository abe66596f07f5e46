"""Identification of points and disks in two images of one exposure, in the base frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import inverse_pose, pose
from softarm_ros.geometry.sightings import BodySighting, PointSighting
from softarm_ros.perception.stereo.camera import Mask
from softarm_ros.perception.stereo.cameras import SIDES, Side, StereoCameras
from softarm_ros.perception.stereo.config import MarkedBody, StereoCamerasConfig
from softarm_ros.perception.stereo.detection import Marks, Region, find_marks, load_code
from softarm_ros.perception.stereo.disk_pose import disk_pose
from softarm_ros.perception.stereo.images import Image
from softarm_ros.perception.stereo.labelling import in_order, label, label_rigid
from softarm_ros.perception.stereo.matching import Candidates, candidates, unambiguous
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
    """Expected position (3,) of a marker, and its standard deviation `reach_m` [m]."""

    position: Array
    reach_m: float


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
        self._X_BL = inverse_pose(cameras.base_pose())
        self._points = [point.name for point in config.points]
        self._bodies: dict[str, MarkedBody] = {body.name: body for body in config.bodies}
        self._offsets = {
            body.name: np.array(body.markers, dtype=np.float64) for body in config.bodies
        }
        self._last: dict[str, tuple[int, Array, Array]] = {}  # stamp, position, velocity
        self._disks: dict[str, tuple[int, Array, Array]] = {}  # stamp, pose, velocity
        self._expected: tuple[int, Mapping[str, Array]] | None = None
        self._since_search = _SEARCH_EVERY
        self._missing = True
        _load_code(cameras)

    def expect(self, stamp_ns: int, positions_B: Mapping[str, Array]) -> None:
        """Set predicted positions (3,) of markers at a time, in the base frame."""
        self._expected = (stamp_ns, dict(positions_B))

    def see(self, stamp_ns: int, left: Image, right: Image) -> Seen:
        """Return the markers and bodies in two images of one exposure."""
        expected = self._where(stamp_ns)
        wanted = len(self._points) + sum(map(len, self._offsets.values()))
        self._since_search += 1
        search = len(expected) < wanted or (self._missing and self._since_search >= _SEARCH_EVERY)
        regions = None
        if search:
            self._since_search = 0
        else:
            boxes = [self._regions(side, expected) for side in SIDES]
            regions = (boxes[0], boxes[1])
        looks = self._config.markers
        lists = (None, None) if regions is None else tuple(map(_listed, regions))
        marks = find_marks(left, looks, lists[0]), find_marks(right, looks, lists[1])
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

    def _where(self, stamp_ns: int) -> dict[str, _Expected]:
        """Return the expected positions of markers; omit those without any information."""
        found: dict[str, _Expected] = {}
        for name, (last_ns, position, velocity) in self._last.items():
            gone_s = 1e-9 * (stamp_ns - last_ns)
            if 0.0 < gone_s < _FORGOTTEN_S:
                wide = self._config.expected_within_m + _DRIFT_M_S * gone_s
                found[name] = _Expected(position + gone_s * velocity, wide)
        for name, (last_ns, X, velocity) in self._disks.items():
            gone_s = 1e-9 * (stamp_ns - last_ns)
            if 0.0 < gone_s < _DISK_FORGOTTEN_S:
                places = self._offsets[name] @ X[:3, :3].T + X[:3, 3] + gone_s * velocity
                wide = _TRACKED_M + _DRIFT_M_S * gone_s
                for marker, place in zip(self._bodies[name].marker_names(), places):
                    found[marker] = _Expected(place, wide)
        for name, one in self._predicted(stamp_ns, found).items():
            found.setdefault(name, one)
        return found

    def _predicted(self, stamp_ns: int, known: Mapping[str, object]) -> dict[str, _Expected]:
        """Return the predictions of the markers that are not known otherwise."""
        late_s, positions = 0.0, None
        if self._expected is not None:
            late_s = 1e-9 * abs(stamp_ns - self._expected[0])
            positions = self._expected[1] if late_s < _FORGOTTEN_S else None
        wanted = [*self._points, *(m for b in self._bodies.values() for m in b.marker_names())]
        wanted = [name for name in wanted if name not in known]
        if positions is None and wanted and self.predict is not None:
            late_s, positions = 0.0, self.predict()
        if positions is None:
            return {}
        wide = self._config.expected_within_m + _DRIFT_M_S * late_s
        return {
            name: _Expected(np.asarray(positions[name], dtype=np.float64), wide)
            for name in wanted
            if name in positions
        }

    def _regions(self, side: Side, expected: Mapping[str, _Expected]) -> Array:
        """Return search regions (n, 4) in an image: from x, y, to x, y [px]; nan if invisible."""
        X_LB = inverse_pose(self._X_BL)
        places = np.array([one.position for one in expected.values()])
        places = places @ X_LB[:3, :3].T + X_LB[:3, 3]
        X_LC = self._cameras.pose(side)
        depth = np.maximum((places - X_LC[:3, 3]) @ X_LC[:3, 2], 1e-3)
        scale = self._cameras.camera(side).matrix[0, 0] / depth
        if self._cameras.window is not None:  # objects behind it appear nearer
            scale = scale * self._cameras.window.water / self._cameras.window.air
        # Three standard deviations of the position, the marker's radius, and its rim.
        reach = 3.0 * np.array([one.reach_m for one in expected.values()])
        radius = 0.6 * (self._config.marker_diameter_m or _LARGEST_M)
        half = (scale * (reach + radius) + _RIM_PX)[:, None]
        middle = self._cameras.project(side, places)
        return np.concatenate([np.floor(middle - half), np.ceil(middle + half) + 1.0], axis=1)

    # -- what marks are

    def _named(
        self,
        stamp_ns: int,
        marks: tuple[Marks, Marks],
        expected: Mapping[str, _Expected],
        regions: tuple[Array, Array] | None,
    ) -> Seen:
        found = self._in_base(
            candidates(
                self._cameras,
                *marks,
                marker_m=self._config.marker_diameter_m,
                together=None if regions is None else _together(marks, regions),
            )
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

    def _which_disks(
        self, found: Candidates, expected: Mapping[str, _Expected]
    ) -> dict[str, dict[int, int]]:
        """
        Return the index of each marker's point, by disk; no point belongs to two disks.

        Disks may look alike, and a disk that was hidden for a moment may have moved far. If two
        disks claim the same points, the disk that is nearer to its expected position gets them.
        """
        labels = {name: self._which_of_disk(name, found.points, expected) for name in self._bodies}
        settled: dict[str, dict[int, int]] = {}
        free = np.arange(len(found.left))
        while labels:
            away = {name: self._shift_m(name, of, found, expected) for name, of in labels.items()}
            nearest = min(away, key=lambda name: away[name])
            settled[nearest] = of_nearest = labels.pop(nearest)
            taken = list(of_nearest.values())
            free = np.setdiff1d(free, taken)
            for name, of_other in labels.items():
                if not set(taken).isdisjoint(of_other.values()):
                    again = self._which_of_disk(name, found.points[free], expected)
                    labels[name] = {marker: int(free[n]) for marker, n in again.items()}
        return {name: settled[name] for name in self._bodies}

    def _which_of_disk(
        self, name: str, points: Array, expected: Mapping[str, _Expected]
    ) -> dict[int, int]:
        """Return the index in points (n, 3) of each marker of a disk; empty if not seen."""
        names = self._bodies[name].marker_names()
        if not set(names) <= expected.keys():
            return {}
        offsets = self._offsets[name]
        size = float(np.linalg.norm(offsets - offsets.mean(axis=0), axis=1).max())
        which = label_rigid(
            points,
            np.array([expected[marker].position for marker in names]),
            3.0 * max(expected[marker].reach_m for marker in names),
            _TURNED * size,
        )
        return which if len(which) >= 3 else {}

    def _shift_m(
        self,
        name: str,
        labels: Mapping[int, int],
        found: Candidates,
        expected: Mapping[str, _Expected],
    ) -> float:
        """Return the distance of a disk from its expected position [m]; inf if not seen."""
        if not labels:
            return np.inf
        names = self._bodies[name].marker_names()
        places = np.array([expected[names[marker]].position for marker in labels])
        shift = (found.points[list(labels.values())] - places).mean(axis=0)
        return float(np.linalg.norm(shift))

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
        names = self._bodies[name].marker_names()
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

    def _which_points(
        self, found: Candidates, expected: Mapping[str, _Expected]
    ) -> dict[str, int]:
        if self._config.markers.kind == 'aruco':
            clear = unambiguous(found)
            return {n: found.names.index(n) for n in clear.names if n in self._points}
        known = {name: expected[name] for name in self._points if name in expected}
        if known:
            return label(
                found,
                {name: one.position for name, one in known.items()},
                {name: one.reach_m**2 * np.eye(3) for name, one in known.items()},
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
        found: Candidates,
        taken: set[int],
        expected: Mapping[str, _Expected],
        seen: set[str],
    ) -> Array:
        """
        Return points near the visible parts of the arm whose marks belong to no marker.

        Points near an unidentified disk are not included: they may be its own markers.
        """
        places = [
            one.position for name, one in expected.items() if name.rpartition(':')[0] in seen
        ]
        places += [one.position for name, one in expected.items() if name in seen]
        lefts = {int(found.left[n]) for n in taken}
        rights = {int(found.right[n]) for n in taken}
        left_over = [
            n
            for n in range(len(found.left))
            if int(found.left[n]) not in lefts and int(found.right[n]) not in rights
        ]
        if not places or not left_over:
            return np.empty((0, 3))
        away = np.linalg.norm(found.points[left_over][:, None] - np.array(places)[None], axis=2)
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

    def _in_base(self, found: Candidates) -> Candidates:
        R = self._X_BL[:3, :3]
        return replace(
            found,
            points=found.points @ R.T + self._X_BL[:3, 3],
            covariances=R @ found.covariances @ R.T,
        )


def _listed(regions: Array) -> list[Region]:
    """Return the finite regions (n, 4) as whole pixels."""
    somewhere = regions[np.isfinite(regions).all(axis=1)].astype(int)
    return [(int(a), int(b), int(c), int(d)) for a, b, c, d in somewhere]


def _together(marks: tuple[Marks, Marks], regions: tuple[Array, Array]) -> Mask:
    """Return which marks (left, right) lie in the regions of the same marker in both images."""
    inside = []
    for each, boxes in zip(marks, regions):
        x, y = each.pixels[:, 0, None], each.pixels[:, 1, None]
        with np.errstate(invalid='ignore'):
            inside.append(
                (x >= boxes[:, 0]) & (y >= boxes[:, 1]) & (x < boxes[:, 2]) & (y < boxes[:, 3])
            )
    both: Mask = np.asarray((inside[0][:, None] & inside[1][None]).any(axis=2), dtype=bool)
    return both


def _load_code(cameras: StereoCameras) -> None:
    """Load compiled code now, not at the first exposure."""
    load_code()
    corners = np.array([[0.0, 0.0, 1.0], [0.1, 0.0, 1.0], [0.0, 0.1, 1.0]])
    triangulate(cameras, *(cameras.project(side, corners) for side in SIDES))
    label_rigid(corners, corners, 0.1, 0.1)
    disk_pose(corners, corners, np.tile(np.eye(3), (3, 1, 1)), 0.0)
