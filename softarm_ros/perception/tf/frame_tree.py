"""Poses of frames along chains of transforms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import matrix_from_quaternion
from softarm_ros.perception.captured import MAX_NORM_ERROR, MAX_RANGE_M, CorruptFrameError

LONGEST_CHAIN = 64


@dataclass(frozen=True)
class FrameTransform:
    """
    Pose of a child frame in its parent frame, as in a geometry_msgs/TransformStamped.

    Position (3,) [m], quaternion x, y, z, w; the stamp [ns] is irrelevant for static transforms.
    """

    stamp_ns: int
    parent: str
    child: str
    position: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]

    def link(self) -> Link:
        """
        Return the transform as a link of a chain.

        Raises
        ------
        CorruptFrameError
            If it is not finite, too far or not a rotation; the message names frame and limit.

        """
        farthest = max(map(abs, self.position))
        if not (all(map(math.isfinite, self.position)) and farthest <= MAX_RANGE_M):
            raise CorruptFrameError(
                f'{self.child}: at {self.position} m (limit {MAX_RANGE_M:g} m)'
            )
        norm = math.sqrt(sum(part * part for part in self.quaternion))
        if not abs(norm - 1.0) <= MAX_NORM_ERROR:  # rejects nan as well
            raise CorruptFrameError(
                f'{self.child}: quaternion of norm {norm:g} (limit 1 +- {MAX_NORM_ERROR:g})'
            )
        return Link(self.parent, pose(matrix_from_quaternion(self.quaternion), self.position))


@dataclass(frozen=True)
class Link:
    """Parent of a frame, and the frame's pose (4, 4) in it."""

    parent: str
    pose: Array


@dataclass(frozen=True)
class Chain:
    """Chain from a frame: the last frame, the pose (4, 4) in it, and the frames passed."""

    last: str
    pose: Array
    passed: tuple[str, ...]


def chain_to(frame: str, child: str, links: Mapping[str, Link]) -> Chain:
    """Follow parents from a child up to `frame`, or as far as links (by child) exist."""
    last, X, passed = child, np.eye(4), []
    for _ in range(LONGEST_CHAIN):
        link = links.get(last)
        if last == frame or link is None:
            break
        passed.append(last)
        last, X = link.parent, link.pose @ X
    return Chain(last, X, tuple(passed))
