"""An arm of two sections with four markers, before two emulated cameras."""

import numpy as np

from softarm_ros.emulation.stereo_camera_server import StereoCameraServer
from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.perception.stereo.config import StereoCamerasConfig
from softarm_ros.plant.mocap import PoseMeasurement

SECTIONS = ('first', 'second')
LENGTH_M = 0.28
POINTS = [
    {
        'name': f'{section}_{fraction}',
        'section': section,
        'fraction': fraction,
        'offset_m': (0, 0.016, 0),
    }
    for section in SECTIONS
    for fraction in (0.5, 1.0)
]
NAMES = [point['name'] for point in POINTS]


def a_config(**changes):
    given = {
        'rate_hz': 30.0,
        'left': 'http://127.0.0.1:1/left',
        'right': 'http://127.0.0.1:1/right',
        'base_calibration': 'cameras.yaml',
        'points': POINTS,
        'spacing_m': 0.09,
        'marker_diameter_m': 0.008,
        'timeout_s': 0.5,
    }
    return StereoCamerasConfig(**(given | changes))


def a_server(config=None, seed=1):
    return StereoCameraServer(config or a_config(), SECTIONS, seed, LENGTH_M)


def bent(bend=(0.3, -0.2)):
    """Return the section tips (2, 4, 4) of two equal arcs."""
    tips, X = [], np.eye(4)
    turn = np.array([*bend, 0.0])
    angle = np.linalg.norm(turn)
    chord = 0.14 * np.sin(0.5 * angle) / (0.5 * angle)
    for _ in SECTIONS:
        X = X @ pose(exp_so3(turn), chord * exp_so3(0.5 * turn)[:, 2])
        tips.append(X)
    return np.array(tips)


def measured(stamp_s, bend=(0.3, -0.2)):
    return PoseMeasurement(stamp_s=stamp_s, section_tips=bent(bend))
