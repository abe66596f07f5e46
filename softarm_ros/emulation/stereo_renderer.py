"""
Render an arm for a pair of cameras: a tube with bright balls, with lens, window, blur and noise.

Balls are drawn with their exact outline (off the axis, a ball is no circle in the image) and
partial coverage of edge pixels. Nearer objects hide farther ones; the arm hides its own markers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.emulation.drawing_kernels import add_noise, paint_arm
from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.cameras import SIDES, Side, StereoCameras
from softarm_ros.perception.stereo.images import Image, opencv

_OUTLINE = 16  # points on the outline of a ball
_RIM_PX = 6  # reach of the blur
_NOISE_BANK = 7  # spare pixels by which the bank of noise is shifted at random


@dataclass(frozen=True)
class ArmLooks:
    """The appearance of the arm, and the blur and noise of the cameras' sensors."""

    tube_radius_m: float = 0.012
    marker_diameter_m: float = 0.008
    background_grey: float = 30.0
    tube_grey: float = 75.0
    marker_grey: float = 225.0
    blur_px: float = 0.7
    noise_grey: float = 3.0


class StereoRenderer:
    """
    Draws the images of an arm that both cameras take.

    Parameters
    ----------
    cameras : StereoCameras
        With the pose of the base, and the window if there is one.
    looks : ArmLooks
    seed : int
        Seed of the noise.

    """

    def __init__(self, cameras: StereoCameras, looks: ArmLooks, seed: int) -> None:
        self.cameras = cameras
        self.looks = looks
        self._random = np.random.default_rng(seed)
        cv2 = opencv()
        self._bank = {side: self._noise(cameras.camera(side).size) for side in SIDES}
        self._ground: dict[Side, Image] = {
            side: cv2.convertScaleAbs(cv2.max(bank + np.float32(looks.background_grey), 0.0))
            for side, bank in self._bank.items()
        }
        # Draw an arm in the middle of the image, to load compiled code before the first exposure.
        glass = cameras.window
        wet_m = 0.0 if glass is None else (glass.distance_m + glass.thickness_m) / glass.normal[2]
        line = np.array([[0.0, 0.0, wet_m + 0.5], [0.0, 0.01, wet_m + 0.5]])
        self._seen('left', line, line, np.empty((0, 4, 3)), np.zeros(2, dtype=np.int64))

    def draw(
        self, centreline_B: Array, markers_B: Array, boxes_B: Sequence[Array] = ()
    ) -> tuple[Image, Image]:
        """
        Return the left and the right image.

        Parameters
        ----------
        centreline_B : (n, 3)
            Points from base to tip, in the base frame [m].
        markers_B : (m, 3)
            Centres of the balls [m].
        boxes_B
            Corners (4, 3) of rectangles that hide the arm, such as a hand or a frame.

        """
        X_LB = self.cameras.base_pose()
        line, balls = (p @ X_LB[:3, :3].T + X_LB[:3, 3] for p in (centreline_B, markers_B))
        boxes = (
            np.array(boxes_B, dtype=np.float64).reshape(-1, 4, 3) @ X_LB[:3, :3].T + X_LB[:3, 3]
        )
        left, right = (
            self._seen(side, line, balls, boxes, self._random.integers(0, _NOISE_BANK, 2))
            for side in SIDES
        )
        return left, right

    def _seen(
        self, side: Side, line: Array, balls: Array, boxes: Array, noise_at: NDArray[np.int64]
    ) -> Image:
        """Return one image; its noise starts at column and row `noise_at` of the bank."""
        cv2 = opencv()
        width, height = self.cameras.camera(side).size
        x, y = noise_at
        shown: Image = self._ground[side][y : y + height, x : x + width].copy()
        which = SIDES.index(side)
        matrices, lenses, poses, window = self.cameras.numbers
        looks = self.looks
        # Only the part with outlines needs more than the background and its noise.
        image, left, top = paint_arm(
            line,
            balls,
            self._away(balls, poses[which][:3, 3]),
            boxes,
            matrices[which],
            lenses[which],
            poses[which],
            window,
            (width, height),
            (looks.tube_radius_m, 0.5 * looks.marker_diameter_m),
            (looks.background_grey, looks.tube_grey, looks.marker_grey),
            _OUTLINE,
            _RIM_PX,
        )
        if image.size == 0:
            return shown
        if looks.blur_px > 0.0:
            image = cv2.GaussianBlur(image, (0, 0), looks.blur_px)
        rows, columns = image.shape
        add_noise(
            image,
            self._bank[side][y + top : y + top + rows, x + left : x + left + columns],
            shown[top : top + rows, left : left + columns],
        )
        return shown

    def _away(self, balls: Array, eye: Array) -> Array:
        """Return the way (m, 3) to each ball (m, 3) from where its rays to an eye (3,) start."""
        window = self.cameras.window
        if window is None:
            return balls - eye
        # Rays in water start near the point where the ray to the centre leaves the glass. Moving
        # their start back behind that point gives the cone of rays its true width.
        starts, rays = window.rays_in_water(eye, window.directions_to(eye, balls))
        path = np.linalg.norm(balls - starts, axis=1, keepdims=True)
        dry = np.linalg.norm(starts - eye, axis=1, keepdims=True)
        return rays * (path + dry * window.water / window.air)

    def _noise(self, size: tuple[int, int]) -> NDArray[np.float32]:
        shape = (size[1] + _NOISE_BANK, size[0] + _NOISE_BANK)
        return self._random.normal(0.0, self.looks.noise_grey, shape).astype(np.float32)
