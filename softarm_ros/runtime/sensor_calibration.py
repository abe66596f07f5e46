"""Give a simulated sensor the calibration error of a rig's emulated one, to compare them."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import log_so3
from softarm_ros.perception.config import PoseSensorConfig
from softarm_ros.perception.stereo.config import StereoCamerasConfig
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_marker_expectation, sensor_config

_PLACES = 20  # configurations, drawn over the whole range of the rig


def calibration_settings(rig: Rig, seed: int) -> tuple[str, ...]:
    """
    Return settings (`field=value`) with the calibration error of the emulated sensor.

    The simulated sensor of the nominal machine knows its base exactly; drawn cameras and a tracker
    whose base comes from a file do not. Empty if the rig has neither. Only the rigid part of the
    error is included: the rest of the cameras' error is 0.1 mm on the shipped arms (rms).
    """
    for name in rig.sensors.devices():
        error = _rigid_error(rig, name, seed)
        if error is None:
            continue
        turn_deg = np.degrees(log_so3(error[:3, :3])).round(6).tolist()
        shift_m = error[:3, 3].round(9).tolist()
        return (
            f'plant.pose_sensor.frame_turn_deg={turn_deg}',
            f'plant.pose_sensor.frame_shift_m={shift_m}',
        )
    return ()


def _rigid_error(rig: Rig, name: str, seed: int) -> Array | None:
    """Return the transform (4, 4) that displaces the emulated sensor's poses, or None."""
    config = sensor_config(rig, name)
    if not isinstance(config, StereoCamerasConfig):
        if not isinstance(config, PoseSensorConfig) or config.base_from != 'calibration':
            return None
        from softarm_ros.emulation.tracked_scene import base_error

        return base_error(config, seed)
    expectation = build_marker_expectation(rig, name)
    if expectation is None:
        return None
    from softarm_ros.emulation.camera_setup import calibration_error

    names = rig.model().configuration_names
    drawn = rig.sample_configurations(np.random.default_rng(0), _PLACES)
    places = [p for one in drawn for p in expectation.positions(names, one).values()]
    return calibration_error(config, np.array(places), seed)
