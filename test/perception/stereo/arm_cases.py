"""An arm of two sections with four markers, in front of two emulated cameras."""

import numpy as np

from softarm_ros.emulation.stereo_camera_server import StereoCameraServer, cameras_around
from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.geometry.section_curve import along_sections
from softarm_ros.perception.stereo.config import StereoCamerasConfig

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
    return StereoCameraServer(config or a_config(), SECTIONS, seed, cameras_around(LENGTH_M))


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


def centreline(tips):
    """Return points (29, 3) from the base through both sections."""
    f = np.linspace(0.0, 1.0, 15)
    return np.concatenate([along_sections(tips, k, f)[min(k, 1) :, :3, 3] for k in range(2)])


# Markers of a rigid disk at each section's end, which protrude from an arm of 12 mm radius.
BALLS = [[-0.024, 0.012, 0.0], [-0.01, 0.022, -0.03], [0.01, 0.022, 0.0], [0.024, 0.012, -0.03]]
DISKS = [{'name': s, 'section': s, 'markers': BALLS} for s in SECTIONS]


def disk_config(**changes):
    given = {'points': [], 'bodies': DISKS, 'marker_diameter_m': 0.006, 'spacing_m': 0.14}
    return a_config(**(given | changes))


def model_of(tips, config):
    """Return the exact position (3,) of each marker, by name, for these section tips."""
    places = config.marker_places(SECTIONS)
    found = {}
    for name, place in places.items():
        at = along_sections(tips, place.section, np.array([place.fraction]))[0]
        found[name] = (at @ place.offset)[:3, 3]
    return found
