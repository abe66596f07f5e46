"""Two cameras on one arm: projection of points to pixels, and rays of pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import inverse_pose
from softarm_ros.perception.stereo.camera import Camera, CameraError
from softarm_ros.perception.stereo.pair_kernels import project_through, rays_into
from softarm_ros.perception.stereo.window import FlatWindow

Side = Literal['left', 'right']
SIDES: tuple[Side, Side] = ('left', 'right')


@dataclass(frozen=True)
class StereoCameras:
    """
    A calibrated pair; points are in the frame of the left camera unless noted otherwise.

    Attributes
    ----------
    left, right : Camera
        The cameras; their frames have z along the view.
    X_RL : (4, 4)
        Pose of the left camera in the right one's frame: p_R = X_RL p_L [m].
    X_LB : (4, 4), optional
        Pose of the arm's base in the left camera's frame.
    window : FlatWindow, optional
        Window between both cameras and the arm.

    """

    left: Camera
    right: Camera
    X_RL: Array
    X_LB: Array | None = None
    window: FlatWindow | None = None

    @property
    def baseline_m(self) -> float:
        """Distance between the cameras' centres."""
        return float(np.linalg.norm(self.X_RL[:3, 3]))

    def camera(self, side: Side) -> Camera:
        """Return the camera of one side."""
        return self.left if side == 'left' else self.right

    def pose(self, side: Side) -> Array:
        """Return the pose (4, 4) of a camera in the left one's frame."""
        return self._poses[side]

    @cached_property
    def _poses(self) -> dict[Side, Array]:
        """Poses by side; cached, as each exposure needs them dozens of times."""
        poses: dict[Side, Array] = {'left': np.eye(4), 'right': inverse_pose(self.X_RL)}
        for each in poses.values():
            each.setflags(write=False)
        return poses

    def project(self, side: Side, points_L: ArrayLike) -> Array:
        """Project points (n, 3) to pixels (n, 2) of an image; nan if a point is not visible."""
        points = np.ascontiguousarray(points_L, dtype=np.float64).reshape(-1, 3)
        pixels = np.empty((len(points), 2))
        matrices, lenses, poses, window = self.numbers
        which = SIDES.index(side)
        project_through(points, matrices[which], lenses[which], poses[which], window, pixels)
        return pixels

    @cached_property
    def numbers(self) -> tuple[Array, Array, Array, Array]:
        """Matrices (2, 3, 3), lenses (2, 8), poses (2, 4, 4), window (8,): for compiled code."""
        both = [self.camera(side).numbers for side in SIDES]
        return (
            np.array([matrix for matrix, _ in both]),
            np.array([lens for _, lens in both]),
            np.array([self.pose(side) for side in SIDES]),
            np.empty(0) if self.window is None else self.window.numbers,
        )

    def rays(self, side: Side, pixels: ArrayLike) -> tuple[Array, Array]:
        """Return starts and directions (n, 3) of the rays of pixels, in the arm's medium."""
        given = np.ascontiguousarray(pixels, dtype=np.float64).reshape(-1, 2)
        starts, rays = np.empty((2, len(given), 3))
        matrices, lenses, poses, window = self.numbers
        which = SIDES.index(side)
        rays_into(given, matrices[which], lenses[which], poses[which], window, starts, rays)
        return starts, rays

    def base_pose(self) -> Array:
        """Return the pose (4, 4) of the arm's base in the left camera's frame."""
        if self.X_LB is None:
            raise CameraError(
                "the calibration has no pose of the arm's base: run softarm calibrate base"
            )
        return self.X_LB

    def swapped(self) -> StereoCameras:
        """Return the pair with exchanged images, as if plugs were in the wrong sockets."""
        return StereoCameras(
            Camera(self.left.name, self.right.size, self.right.matrix, self.right.distortion),
            Camera(self.right.name, self.left.size, self.left.matrix, self.left.distortion),
            inverse_pose(self.X_RL),
            None if self.X_LB is None else self.X_RL @ self.X_LB,
            None if self.window is None else _seen_from(self.window, self.X_RL),
        )


def _seen_from(window: FlatWindow, X_RL: Array) -> FlatWindow:
    """Return the window in the right camera's frame."""
    normal = X_RL[:3, :3] @ window.normal
    return FlatWindow(
        normal,
        window.distance_m + float(normal @ X_RL[:3, 3]),
        window.thickness_m,
        window.air,
        window.glass,
        window.water,
    )
