"""Conversion of a Cosserat rod state to the `Shape` of `ArmModel`."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.rotations import log_so3
from softarm_ros.models.arm_model import Shape
from softarm_ros.models.cosserat.state import RodState


def shape_of_state(state: RodState) -> Shape:
    """Return the `Shape` of a state; its configuration holds the segments' rotation vectors."""
    per = state.nodes_per_segment
    turns = [
        log_so3(state.rotations[k * per].T @ state.rotations[(k + 1) * per - 1])
        if state.converged
        else np.full(3, np.nan)
        for k in range(len(state.config.segments))
    ]
    return Shape(state.tip, state.segment_tips, np.concatenate(turns), state.centerline)
