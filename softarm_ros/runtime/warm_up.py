"""Compile every kernel once, so that nothing compiles while an arm moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.models.factory import warm_up as warm_up_models
from softarm_ros.runtime.assembly import build_plant

if TYPE_CHECKING:
    from softarm_ros.rigs.schema import Rig


def warm_up(rig: Rig) -> None:
    """Call all models and the plant of a rig once; results are cached on disk by numba."""
    warm_up_models()
    plant = build_plant(rig, seed=0)
    plant.step(np.zeros(len(rig.actuators)), 0.02)
    plant.poll_poses()
    plant.true_centerline(5)
