"""Compile every kernel once, so that nothing compiles while an arm moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.models.config import MODEL_NAMES
from softarm_ros.runtime.assembly import build_plant

if TYPE_CHECKING:
    from softarm_ros.rigs.schema import Rig


def warm_up(rig: Rig) -> None:
    """Call models and plant of a rig once; results are cached on disk by numba."""
    for name in MODEL_NAMES:
        model = rig.model(name)
        bend = np.full(len(model.configuration_names), 0.2)
        actuation = model.actuation_of(bend)
        model.actuation_jacobian(bend)
        model.tip_and_jacobian(bend)
        model.configuration_of(actuation)
        model.jacobian(actuation)
        shape = model.forward(actuation)
        shape.centerline(5)
        model.inverse(shape.tip[:3, 3], guess=actuation)
    plant = build_plant(rig, seed=0)
    plant.step(np.zeros(len(rig.actuators)), 0.02)
    plant.poll_poses()
    plant.true_centerline(5)
