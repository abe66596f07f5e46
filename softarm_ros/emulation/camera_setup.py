"""Set up the emulated cameras and their calibration, with its errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.emulation.stereo_camera_server import calibration_of, cameras_around
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import inverse_pose, pose
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.perception.stereo.calibration_file import CalibrationFile, read_calibration
from softarm_ros.perception.stereo.camera import Camera, CameraError
from softarm_ros.perception.stereo.cameras import SIDES, StereoCameras
from softarm_ros.perception.stereo.config import StereoCamerasConfig
from softarm_ros.perception.stereo.rigid_fit import rigid_fit
from softarm_ros.perception.stereo.triangulation import triangulate

# Typical errors of a calibration: at most those with the real images of docs/cameras.md.
_FOCAL = 2.0e-4  # share of the focal length
_CENTRE_PX = 0.2
_TURN_RAD = 1.0e-4  # of one camera relative to the other
_BASE_M, _BASE_RAD = 3.0e-4, 5.0e-4


def setup_of(
    config: StereoCamerasConfig, sections: int, seed: int
) -> tuple[StereoCameras, CalibrationFile]:
    """
    Return the true cameras, and the calibration file for the driver.

    If `base_calibration` is a file that describes emulated cameras (`made_up`), it is the
    driver's calibration, and the true cameras differ from it by typical errors, drawn with
    `seed`. Without the file, a pair is placed around an arm with single points and is known
    exactly.

    Raises
    ------
    EmulationError
        If the file cannot be used, or is not there although bodies are seen; the message says why.

    """
    file = Path(config.base_calibration).expanduser()
    if not file.is_file():
        if config.bodies:  # of unknown distance from each other, so of unknown places
            raise EmulationError(
                f'base_calibration = {str(file)!r}: no such file; it places emulated cameras that '
                'see bodies. Give its full path, or copy it beside the rig file as that path says'
            )
        cameras = cameras_around(_length_m(config, sections))
        return cameras, calibration_of(cameras)
    try:
        believed = read_calibration(file)
        cameras = believed.stereo_cameras()
        cameras.base_pose()
    except CameraError as error:
        raise EmulationError(f'emulated cameras: {error}') from None
    if not believed.made_up:
        raise EmulationError(
            f'{file}: of a real pair of cameras; emulated ones are placed by a file with '
            'made_up: true'
        )
    return disturbed(cameras, seed), believed.model_copy(update={'made_up': False})


def disturbed(cameras: StereoCameras, seed: int) -> StereoCameras:
    """Return cameras that differ from `cameras` by typical errors of a calibration."""
    random = np.random.default_rng([seed, 7])

    def turned(sd_rad: float, sd_m: float) -> np.ndarray:
        return pose(exp_so3(random.normal(0.0, sd_rad, 3)), random.normal(0.0, sd_m, 3))

    def other(camera: Camera) -> Camera:
        matrix = camera.matrix.copy()
        matrix[[0, 1], [0, 1]] *= 1.0 + random.normal(0.0, _FOCAL)
        matrix[:2, 2] += random.normal(0.0, _CENTRE_PX, 2)
        return Camera(camera.name, camera.size, matrix, camera.distortion)

    return StereoCameras(
        other(cameras.left),
        other(cameras.right),
        turned(_TURN_RAD, 0.0) @ cameras.X_RL,
        cameras.base_pose() @ turned(_BASE_RAD, _BASE_M),
        cameras.window,
    )


def calibration_error(config: StereoCamerasConfig, places_B: Array, seed: int) -> Array:
    """
    Return the rigid motion (4, 4) by which calibration errors move what the cameras measure.

    The measured position of a place is this motion applied to the place, except for noise and
    errors that are not rigid (a wrong focal length stretches).

    Parameters
    ----------
    config
        Configuration of the driver, with the path of `base_calibration` resolved.
    places_B : (n, 3)
        Typical marker positions, in the base frame [m]; three or more.
    seed
        Seed of the cameras, as for `setup_of`.

    """
    actual, file = setup_of(config, 1, seed)
    believed = file.stereo_cameras()
    X_LB = actual.base_pose()
    seen = [actual.project(side, places_B @ X_LB[:3, :3].T + X_LB[:3, 3]) for side in SIDES]
    found = triangulate(believed, *seen).points
    X_BL = inverse_pose(believed.base_pose())
    error, _ = rigid_fit(places_B, found @ X_BL[:3, :3].T + X_BL[:3, 3])
    return error


def _length_m(config: StereoCamerasConfig, sections: int) -> float:
    """Return the length of the arm [m], estimated from its markers."""
    reach = {point.section for point in config.points} - {'base'}
    per_section = len([p for p in config.points if p.section in reach]) / max(len(reach), 1)
    return config.spacing_m * max(per_section, 1.0) * sections
