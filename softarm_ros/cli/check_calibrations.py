"""Warnings of `softarm check` about the calibration files that the sensors of a rig name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

import softarm_ros
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.perception.base_calibration_file import read_base
from softarm_ros.perception.config import PoseSensorConfig
from softarm_ros.perception.sensor import SensorError
from softarm_ros.perception.stereo.calibration_file import read_calibration
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.cameras import SIDES
from softarm_ros.perception.stereo.config import StereoCamerasConfig
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_marker_expectation, sensor_config


def lacking_calibrations(rig: Rig) -> Iterator[str]:
    """Yield a warning about each sensor whose calibration file is not there, or unusable."""
    for name in rig.sensors.devices():
        config = sensor_config(rig, name)
        file = config.base_calibration
        if file is None:
            continue
        field, path = f'sensors.{name}.base_calibration', Path(file).expanduser()
        if not path.is_file():
            yield (
                f'{field} = {file!r}: no such file, and the sensor does '
                'not start without it: softarm calibrate writes it; a relative path begins at '
                'the rig file'
            )
        elif trouble := _calibration_trouble(config, path):
            yield f'{field}: the sensor does not start with this file: {trouble}'


def unseen_at_rest(rig: Rig) -> Iterator[str]:
    """Yield a warning about each camera that, by its calibration, cannot see the arm at rest."""
    for name, config in rig.sensors.devices().items():
        if not isinstance(config, StereoCamerasConfig):
            continue
        file = Path(sensor_config(rig, name).base_calibration or '').expanduser()
        expected = build_marker_expectation(rig, name)
        try:
            cameras = read_calibration(file).stereo_cameras()
            X_LB = cameras.base_pose()
            places = {} if expected is None else expected.positions()
        except (CameraError, ModelError):  # warnings of their own
            continue
        needed = {body.name: (body.marker_names(), 3) for body in config.bodies}
        needed |= {point.name: ((point.name,), 1) for point in config.points}
        for side in SIDES:
            camera = cameras.camera(side)
            for seen, (markers, fewest) in needed.items():
                points = np.array([places[marker] for marker in markers])
                pixels = cameras.project(side, points @ X_LB[:3, :3].T + X_LB[:3, 3])
                shown = camera.shows(pixels)
                if np.count_nonzero(shown) >= fewest:
                    continue
                width, height = camera.size
                x, y = camera.matrix[:2, 2]
                yield (
                    f'sensors.{name}.base_calibration: by this file the {side} camera does not '
                    f'see {seen} at rest: it is {_where(pixels[~shown])} ({width} x {height} px, '
                    f'lens centre at {x:.0f}, {y:.0f}); check base, lens and pose of the cameras '
                    'in it'
                )


def _where(pixels: Array) -> str:
    """Return where markers are whose pixels (n, 2), nan if there is none, are not in the image."""
    projected = pixels[np.isfinite(pixels).all(axis=1)]
    if not len(projected):
        return 'behind it, or beyond the range of its lens'
    x, y = projected.mean(axis=0)
    return f'at {x:.0f}, {y:.0f} px, outside its image'


def _calibration_trouble(config: PoseSensorConfig, file: Path) -> str:
    """Return why a calibration cannot be used, or ''; the form of another package is unknown."""
    try:
        if isinstance(config, StereoCamerasConfig):
            read_calibration(file).stereo_cameras().base_pose()
        elif type(config).__module__.startswith(f'{softarm_ros.__name__}.'):
            read_base(file)
    except CameraError as error:
        return str(error) if str(file) in str(error) else f'{file}: {error}'
    except SensorError as error:
        return str(error)
    return ''
