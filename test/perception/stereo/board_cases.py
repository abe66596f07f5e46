"""Rendered image pairs of a calibration board, placed all over the view and tilted."""

from functools import cache

import numpy as np
from stereo_cases import a_pair

from softarm_ros.emulation.board_images import board_image, pixel_rays
from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.perception.stereo.boards import Board
from softarm_ros.perception.stereo.cameras import SIDES
from softarm_ros.perception.stereo.window import FlatWindow

SMALL = (480, 360)
FOCAL_PX = 520.0
CHESSBOARD = Board('chessboard', 9, 6, 0.016)
CHARUCO = Board('charuco', 8, 6, 0.022, 0.016, '4X4_50')
WINDOW = FlatWindow(np.array([0.02, -0.03, 1.0]) / np.linalg.norm([0.02, -0.03, 1.0]), 0.12, 0.01)


@cache
def small_pair(window=False):
    return a_pair(
        size=SMALL, focal_px=FOCAL_PX, baseline_m=0.15, window=WINDOW if window else None
    )


@cache
def rays(side, window=False):
    return pixel_rays(small_pair(window), side)


def board_pose(place_m, tilt_rad):
    """Return the board's pose: chessboard centre at a place, turned by a rotation vector."""
    R = exp_so3(np.array(tilt_rad, dtype=float))
    return pose(R, np.array(place_m) - R @ (0.064, 0.04, 0.0))


def held(count, seed=3, depth_m=0.5):
    """Return poses of the board, spread over the whole view."""
    rng = np.random.default_rng(seed)
    spots = [(x, y) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    poses = []
    for n in range(count):
        x, y = spots[n % 9]
        place = (0.075 + 0.05 * x, 0.07 * y, depth_m + rng.uniform(-0.04, 0.06))
        poses.append(board_pose(place, rng.uniform(-0.5, 0.5, 3)))
    return poses


@cache
def _drawn(board, window, seed, depth_m):
    """Return the pairs drawn so far and the generator for further ones, which extend the list."""
    return [], np.random.default_rng(seed + 100)


def pairs_of_images(count, board=CHESSBOARD, window=False, seed=3, depth_m=0.5):
    pairs, rng = _drawn(board, window, seed, depth_m)
    for X in held(count, seed, depth_m)[len(pairs) :]:
        pairs.append(tuple(board_image(rays(side, window), board, X, rng) for side in SIDES))
    return pairs[:count]
