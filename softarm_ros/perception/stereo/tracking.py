"""From two images of one exposure to named points in the base frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import inverse_pose
from softarm_ros.geometry.sightings import PointSighting
from softarm_ros.perception.stereo.cameras import StereoCameras
from softarm_ros.perception.stereo.config import StereoCamerasConfig
from softarm_ros.perception.stereo.detection import Marks, find_marks
from softarm_ros.perception.stereo.images import Image
from softarm_ros.perception.stereo.labelling import in_order, label
from softarm_ros.perception.stereo.matching import Candidates, candidates, unambiguous

# How fast a marker may have moved unseen: the gate opens by this.
_DRIFT_M_S = 0.3
_FORGOTTEN_S = 1.0


@dataclass(frozen=True)
class Seen:
    """
    What one exposure shows.

    Attributes
    ----------
    points : tuple of PointSighting
        In the base frame; a marker that is hidden, or that could be two, is not in it.
    marks : (Marks, Marks)
        Of the left and right image.
    pairs : int
        Pairs of marks whose rays meet.

    """

    points: tuple[PointSighting, ...]
    marks: tuple[Marks, Marks]
    pairs: int


class MarkerTracker:
    """
    Names what two images show, by where the markers are expected.

    That is what a model predicts, where one does (`expect`); else where they were, moved on with
    the velocity they had; at first, or after a second without any, their order along the arm.
    """

    def __init__(self, config: StereoCamerasConfig, cameras: StereoCameras) -> None:
        self._config = config
        self._cameras = cameras
        self._X_BL = inverse_pose(cameras.base_pose())
        self._names = [point.name for point in config.points]
        self._last: dict[str, tuple[int, Array, Array]] = {}  # stamp, position, velocity
        self._expected: tuple[int, Mapping[str, Array]] | None = None

    def expect(self, stamp_ns: int, positions_B: Mapping[str, Array]) -> None:
        """Take the model's prediction of where markers (3,) are at a time, in the base frame."""
        self._expected = (stamp_ns, dict(positions_B))

    def see(self, stamp_ns: int, left: Image, right: Image) -> Seen:
        """Return what two images of one exposure show."""
        looks = self._config.markers
        marks = find_marks(left, looks), find_marks(right, looks)
        return self.name(stamp_ns, marks)

    def name(self, stamp_ns: int, marks: tuple[Marks, Marks]) -> Seen:
        """Return what the marks of two images are."""
        found = self._in_base(
            candidates(self._cameras, *marks, marker_m=self._config.marker_diameter_m)
        )
        which = self._which(stamp_ns, found)
        points = []
        for name in self._names:
            if name in which:
                n = which[name]
                points.append(PointSighting(name, found.points[n], found.covariances[n]))
                self._remember(name, stamp_ns, found.points[n])
        return Seen(tuple(points), marks, len(found.left))

    def fits_swapped(self, marks: tuple[Marks, Marks]) -> bool:
        """Return whether marks that make no pairs make them with the cameras exchanged."""
        exchanged = candidates(
            self._cameras, marks[1], marks[0], marker_m=self._config.marker_diameter_m
        )
        return len(unambiguous(exchanged).left) >= min(2, len(self._names))

    def _which(self, stamp_ns: int, found: Candidates) -> dict[str, int]:
        if self._config.markers.kind == 'aruco':
            clear = unambiguous(found)
            return {name: found.names.index(name) for name in clear.names if name in self._names}
        expected, spread = self._predicted(stamp_ns)
        if expected:
            return label(found, expected, spread)
        clear = unambiguous(found)
        ordered = in_order(clear.points, self._names, np.zeros(3), self._config.spacing_m)
        numbers = list(zip(found.left.tolist(), found.right.tolist()))
        return {
            name: numbers.index((int(clear.left[n]), int(clear.right[n])))
            for name, n in ordered.items()
        }

    def _predicted(self, stamp_ns: int) -> tuple[dict[str, Array], dict[str, Array]]:
        expected, spread = {}, {}
        for name, (last_ns, position, velocity) in self._last.items():
            gone_s = 1e-9 * (stamp_ns - last_ns)
            if 0.0 < gone_s < _FORGOTTEN_S:
                expected[name] = position + gone_s * velocity
                wide = self._config.expected_within_m + _DRIFT_M_S * gone_s
                spread[name] = wide**2 * np.eye(3)
        if self._expected is not None:
            made_ns, positions = self._expected
            if abs(stamp_ns - made_ns) < 1e9 * _FORGOTTEN_S:
                late_s = 1e-9 * abs(stamp_ns - made_ns)
                wide = self._config.expected_within_m + _DRIFT_M_S * late_s
                for name in set(positions) & set(self._names):
                    expected[name] = np.asarray(positions[name], dtype=np.float64)
                    spread[name] = wide**2 * np.eye(3)
        return expected, spread

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
