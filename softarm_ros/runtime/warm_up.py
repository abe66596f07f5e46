"""Compile every kernel once, so that nothing compiles while an arm moves."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.control.tracker import Tracker
from softarm_ros.geometry.rotations import matrix_from_quaternion, quaternion_from_matrix
from softarm_ros.models.arm_model import ArmModel, ModelError
from softarm_ros.runtime.assembly import build_emulated_arm, build_plant

_AWAY = 0.3

if TYPE_CHECKING:
    from softarm_ros.rigs.schema import Rig


def warm_up(rig: Rig, backend: str = 'sim') -> None:
    """
    Call all models and the plant of a rig once; results are cached on disk by numba.

    With `backend` 'emulated' its devices are started once as well, which builds their firmware.
    Up to minutes the first time, a few seconds afterwards.
    """
    matrix_from_quaternion(quaternion_from_matrix(np.eye(3)))
    for name in rig.model_names:
        _warm_up_model(rig, rig.model(name))
    plant = build_plant(rig, seed=0)
    model = rig.model()
    plant.step(model.actuation_of(model.rest_configuration), 0.02)
    plant.poll_poses()
    plant.true_centerline(5)
    if backend == 'emulated':
        with tempfile.TemporaryDirectory(prefix='softarm-') as folder:
            arm = build_emulated_arm(rig, seed=0)
            try:
                arm.start(Path(folder))
            finally:
                arm.close()


def _warm_up_model(rig: Rig, model: ArmModel) -> None:
    rest = model.rest_configuration
    somewhere = rig.sample_configurations(np.random.default_rng(0), 1)[0]
    # At rest some models take a short cut: once more near it.
    for configuration in (rest, rest + _AWAY * (somewhere - rest)):
        with contextlib.suppress(ModelError):
            shape = model.shape_of(configuration)
            shape.centerline(3)
            model.tips_of(configuration[None])
            model.observed_configuration(shape.section_tips)
            actuation = model.actuation_of(configuration)
            model.forward(actuation)
            model.jacobian(actuation)
            model.inverse(shape.tip[:3, 3], shape.tip[:3, :3], guess=actuation)
    tracker = Tracker(model, rig.tracker, rig.actuator_limits(), rig.configuration_limits())
    tracker.step(np.zeros(3), np.zeros(3), 1.0 / rig.tracker.rate_hz)
