"""The section of an arm to which each point of its centreline belongs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, Shape


def sections_along(line: Array, shape: Shape) -> NDArray[np.int64]:
    """Return the section index of each centreline point (n, 3); every section gets a point."""
    ends = shape.section_tips[:, :3, 3]
    k = np.arange(len(ends) - 1)
    # A section ends at the point nearest to its tip, but has at least one point.
    at = np.array([np.argmin(np.sum((line - end) ** 2, axis=1)) for end in ends[:-1]], dtype=int)
    at = np.minimum(np.maximum.accumulate(at - k) + k, len(line) - len(ends) + k)
    return np.searchsorted(at, np.arange(len(line)), side='left')


def sections_at_rest(model: ArmModel, points: int) -> NDArray[np.int64]:
    """Return the section index of each of n centreline points of the arm at rest."""
    rest = model.shape_of(model.rest_configuration)
    return sections_along(rest.centerline(points), rest)
