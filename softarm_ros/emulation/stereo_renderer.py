"""
A pair of cameras looks at an arm: a tube with bright balls, through lens, window, blur and noise.

Balls are drawn by the outline they really have (a ball seen off the axis is no circle), covered to
a fraction of each pixel; what is nearer hides what is behind it, the arm its own markers too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import exp_so3, log_so3
from softarm_ros.perception.stereo.cameras import SIDES, Side, StereoCameras
from softarm_ros.perception.stereo.images import Image, opencv

_OUTLINE = 16  # points on the outline of a ball
_FRACTION_BITS = 6
_NOISE_BANK = 7  # spare pixels, by which the bank of noise is shifted at random


@dataclass(frozen=True)
class ArmLooks:
    """What the arm looks like, and what the sensor of a camera adds."""

    tube_radius_m: float = 0.012
    marker_diameter_m: float = 0.008
    background_grey: float = 30.0
    tube_grey: float = 75.0
    marker_grey: float = 225.0
    blur_px: float = 0.7
    noise_grey: float = 3.0


class StereoRenderer:
    """
    Draws what both cameras see of an arm.

    Parameters
    ----------
    cameras : StereoCameras
        With the pose of the base, and the window if there is one.
    looks : ArmLooks
    seed : int
        Of the noise.

    """

    def __init__(self, cameras: StereoCameras, looks: ArmLooks, seed: int) -> None:
        self.cameras = cameras
        self.looks = looks
        self._random = np.random.default_rng(seed)
        self._bank = {side: self._noise(cameras.camera(side).size) for side in SIDES}

    def draw(
        self, centreline_B: Array, markers_B: Array, boxes_B: Sequence[Array] = ()
    ) -> tuple[Image, Image]:
        """
        Return the left and the right image.

        Parameters
        ----------
        centreline_B : (n, 3)
            From base to tip, in the base frame [m].
        markers_B : (m, 3)
            Middles of the balls.
        boxes_B
            Outlines (k, 3) of flat things before the arm, as a hand or a frame is: they hide.

        """
        X_LB = self.cameras.base_pose()
        line, balls = (p @ X_LB[:3, :3].T + X_LB[:3, 3] for p in (centreline_B, markers_B))
        boxes = [box @ X_LB[:3, :3].T + X_LB[:3, 3] for box in boxes_B]
        left, right = (self._seen(side, line, balls, boxes) for side in SIDES)
        return left, right

    def _seen(self, side: Side, line: Array, balls: Array, boxes: Sequence[Array]) -> Image:
        cv2 = opencv()
        width, height = self.cameras.camera(side).size
        X_LC = self.cameras.pose(side)
        image = np.full((height, width), self.looks.background_grey, dtype=np.float32)

        def depth(points: Array) -> Array:
            return (points - X_LC[:3, 3]) @ X_LC[:3, 2]

        middles = 0.5 * (line[1:] + line[:-1])
        drawn = [(z, 0, k) for k, z in enumerate(depth(middles))]
        drawn += [(z, 1, k) for k, z in enumerate(depth(balls))]
        drawn += [(float(z.mean()), 2, k) for k, z in enumerate(map(depth, boxes))]
        sides = self._tube_sides(side, line, X_LC[:3, 3])
        outlines = self._ball_outlines(side, balls, X_LC[:3, 3])
        for _, kind, k in sorted(drawn, reverse=True):  # the farthest first
            if kind == 1:
                _cover(image, outlines[k], self.looks.marker_grey)
                continue
            if kind == 0:
                corners = np.array([sides[0][k], sides[0][k + 1], sides[1][k + 1], sides[1][k]])
                grey = self.looks.tube_grey
            else:
                corners, grey = self.cameras.project(side, boxes[k]), self.looks.tube_grey
            if np.isfinite(corners).all():
                fixed = np.rint(corners * (1 << _FRACTION_BITS)).astype(np.int32)
                hull = cv2.convexHull(fixed.reshape(-1, 1, 2))
                cv2.fillConvexPoly(image, hull, grey, cv2.LINE_8, _FRACTION_BITS)
        if self.looks.blur_px > 0.0:
            image = cv2.GaussianBlur(image, (0, 0), self.looks.blur_px)
        x, y = self._random.integers(0, _NOISE_BANK, 2)
        image += self._bank[side][y : y + height, x : x + width]
        shown: Image = cv2.convertScaleAbs(cv2.max(image, 0.0))  # rounds, and stops at 255
        return shown

    def _tube_sides(self, side: Side, line: Array, eye: Array) -> tuple[Array, Array]:
        """Return where both edges of the tube (n, 2) appear."""
        along = np.gradient(line, axis=0)
        across = np.cross(along, line - eye)
        across *= self.looks.tube_radius_m / np.linalg.norm(across, axis=1, keepdims=True)
        return self.cameras.project(side, line + across), self.cameras.project(side, line - across)

    def _ball_outlines(self, side: Side, balls: Array, eye: Array) -> Array:
        """Return points (m, 16, 2) on the outline of each ball: where rays touch it."""
        radius = 0.5 * self.looks.marker_diameter_m
        window = self.cameras.window
        if window is None:
            away = balls - eye
            starts = np.broadcast_to(eye, balls.shape)
        else:
            # Rays in water come from near where the one to the middle leaves the glass, seen from
            # as far behind it as makes the cone of rays as wide as it is.
            starts, rays = window.rays_in_water(eye, window.directions_to(eye, balls))
            path = np.linalg.norm(balls - starts, axis=1, keepdims=True)
            dry = np.linalg.norm(starts - eye, axis=1, keepdims=True)
            away = rays * (path + dry * window.water / window.air)
        distance = np.linalg.norm(away, axis=1, keepdims=True)
        ray = away / distance
        first = np.cross(ray, (0.0, 1.0, 0.0))
        first /= np.linalg.norm(first, axis=1, keepdims=True)
        second = np.cross(ray, first)
        sine = radius / distance
        middle = balls - ray * (radius * sine)
        wide = radius * np.sqrt(1.0 - sine**2)
        turn = 2.0 * np.pi * np.arange(_OUTLINE) / _OUTLINE
        points = middle[:, None] + wide[:, None] * (
            np.cos(turn)[:, None] * first[:, None] + np.sin(turn)[:, None] * second[:, None]
        )
        shown = self.cameras.project(side, points.reshape(-1, 3))
        return shown.reshape(len(balls), _OUTLINE, 2)

    def _noise(self, size: tuple[int, int]) -> NDArray[np.float32]:
        shape = (size[1] + _NOISE_BANK, size[0] + _NOISE_BANK)
        return self._random.normal(0.0, self.looks.noise_grey, shape).astype(np.float32)


def _cover(image: NDArray[np.float32], outline: Array, grey: float) -> None:
    """Cover an ellipse, whose outline (n, 2) is evenly spaced, to a fraction of each pixel."""
    if not np.isfinite(outline).all():
        return
    centre = outline.mean(axis=0)
    # An ellipse is an affine picture of the unit circle, whose points have the variance 1/2.
    turn = 2.0 * np.pi * np.arange(len(outline)) / len(outline)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    shape = 2.0 * (outline - centre).T @ circle / len(outline)
    reach = np.abs(outline - centre).max(axis=0) + 1.5
    low = np.maximum(np.floor(centre - reach).astype(int), 0)
    high = np.minimum(np.ceil(centre + reach).astype(int) + 1, image.shape[::-1])
    if (low >= high).any():
        return
    y, x = np.mgrid[low[1] : high[1], low[0] : high[0]]
    inverse = np.linalg.inv(shape)
    u = inverse[0, 0] * (x - centre[0]) + inverse[0, 1] * (y - centre[1])
    v = inverse[1, 0] * (x - centre[0]) + inverse[1, 1] * (y - centre[1])
    r = np.maximum(np.hypot(u, v), 1e-9)
    # Distance to the outline in pixels, to first order: of (r - 1) by the length of its gradient.
    slope = np.hypot(u * inverse[0, 0] + v * inverse[1, 0], u * inverse[0, 1] + v * inverse[1, 1])
    covered = np.clip(0.5 - (r - 1.0) / (slope / r), 0.0, 1.0)
    part = image[low[1] : high[1], low[0] : high[0]]
    part += (covered * (grey - part)).astype(np.float32)


def along_sections(section_tips: Array, index: int, fraction: Array) -> Array:
    """
    Return poses (n, 4, 4) along a section, between the tips before and after it.

    Positions on the cubic with the tips' tangents, of the length of their chord; frames turn
    evenly from one to the other. It is drawn, not believed: what is drawn is the truth.

    Parameters
    ----------
    section_tips : (sections, 4, 4)
        In the base frame.
    index : int
        Of the section.
    fraction : (n,)
        0 at its base, 1 at its tip.

    """
    start = np.eye(4) if index == 0 else section_tips[index - 1]
    end = section_tips[index]
    t = np.asarray(fraction, dtype=np.float64)[:, None]
    chord = np.linalg.norm(end[:3, 3] - start[:3, 3])
    turn = log_so3(start[:3, :3].T @ end[:3, :3])
    angle = float(np.linalg.norm(turn))
    # Of an arc: its length by its chord.
    length = chord * (0.5 * angle / np.sin(0.5 * angle) if 1e-6 < angle < 6.0 else 1.0)
    p, q = start[:3, 3], end[:3, 3]
    u, v = length * start[:3, 2], length * end[:3, 2]
    poses = np.tile(np.eye(4), (len(t), 1, 1))
    poses[:, :3, 3] = (
        (2 * t**3 - 3 * t**2 + 1) * p
        + (t**3 - 2 * t**2 + t) * u
        + (3 * t**2 - 2 * t**3) * q
        + (t**3 - t**2) * v
    )
    for row, part in enumerate(t[:, 0]):
        poses[row, :3, :3] = start[:3, :3] @ exp_so3(part * turn)
    return poses
