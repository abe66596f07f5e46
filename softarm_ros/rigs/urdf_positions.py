"""Joint positions that give the chain of `rigs.urdf` the shape of the arm."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import Shape
from softarm_ros.rigs.schema import Rig

_SAMPLES = 400  # of the centreline


def rest_lengths(rig: Rig) -> Array:
    """Return the length of every section [m] at rest, by its share of the chords."""
    model = rig.model()
    tips = model.shape_of(model.rest_configuration).section_tips[:, :3, 3]
    if len(tips) != len(rig.section_names):
        raise ValueError(
            f'{rig.name}: the model has {len(tips)} section tips, '
            f'the rig file {len(rig.section_names)} sections'
        )
    chords = np.linalg.norm(np.diff(np.vstack([np.zeros(3), tips]), axis=0), axis=1)
    return np.asarray(model.rest_length_m * chords / np.sum(chords))


def chain_positions(shape: Shape, lengths: Array, links: int) -> Array:
    """Return the positions of all joints [rad, m] for a shape, in the order of their names."""
    line, tips = shape.centerline(_SAMPLES), shape.section_tips
    positions: list[float] = []
    frame, first = np.eye(4), 0
    for tip, length in zip(tips, lengths):
        # A section's part of the line ends exactly at its tip.
        last = first + int(np.argmin(np.sum((line[first:] - tip[:3, 3]) ** 2, axis=1)))
        part = np.vstack([frame[:3, 3], line[first + 1 : last], tip[:3, 3]])
        at = np.linspace(0.0, 1.0, links + 1)
        passed = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(part, axis=0), axis=1)))
        points = np.stack([np.interp(at, passed / passed[-1], axis) for axis in part.T], axis=1)
        turned = frame[:3, :3]
        for start, end in pairwise(points):
            step = end - start
            size = float(np.linalg.norm(step))
            x, y, z = turned.T @ (step / size)
            about_x, about_y = math.atan2(-y, z), math.asin(min(max(x, -1.0), 1.0))
            positions += [about_x, about_y, size - length / links]
            turned = turned @ _turn_x(about_x) @ _turn_y(about_y)
        positions += _turns(turned.T @ tip[:3, :3])
        frame, first = tip, last
    return np.array(positions)


def _turns(rotation: Array) -> list[float]:
    """Return the angles about x, y and z, applied in this order, of a rotation (3, 3)."""
    r = rotation
    about_y = math.asin(min(max(float(r[0, 2]), -1.0), 1.0))
    return [math.atan2(-r[1, 2], r[2, 2]), about_y, math.atan2(-r[0, 1], r[0, 0])]


def _turn_x(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def _turn_y(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
