"""What simulated cameras have to err by to be compared with emulated ones."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.rotations import log_so3
from softarm_ros.perception.stereo.config import StereoCamerasConfig
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_marker_expectation, sensor_config

_PLACES = 20  # configurations, over all that the rig can reach


def calibration_settings(rig: Rig, seed: int) -> tuple[str, ...]:
    """
    Return the settings (`field=value`) of the same error of calibration as emulated cameras have.

    The simulated sensor of the nominal machine knows its base exactly, drawn cameras do not. Empty
    for a rig that has none. Only what is rigid: the rest is 0.1 mm on the shipped arms (rms).
    """
    for name in rig.sensors.devices():
        config = sensor_config(rig, name)
        expectation = build_marker_expectation(rig, name)
        if not isinstance(config, StereoCamerasConfig) or expectation is None:
            continue
        from softarm_ros.emulation.camera_setup import calibration_error

        names = rig.model().configuration_names
        drawn = rig.sample_configurations(np.random.default_rng(0), _PLACES)
        places = [p for one in drawn for p in expectation.positions(names, one).values()]
        error = calibration_error(config, np.array(places), seed)
        turn_deg = np.degrees(log_so3(error[:3, :3])).round(6).tolist()
        shift_m = error[:3, 3].round(9).tolist()
        return (
            f'plant.pose_sensor.frame_turn_deg={turn_deg}',
            f'plant.pose_sensor.frame_shift_m={shift_m}',
        )
    return ()
