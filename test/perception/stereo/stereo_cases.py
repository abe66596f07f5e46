"""A pair of cameras 0.3 m apart that look at a point 0.6 m in front of them."""

import numpy as np

from softarm_ros.geometry.poses import inverse_pose, pose
from softarm_ros.perception.stereo.camera import Camera
from softarm_ros.perception.stereo.cameras import StereoCameras

SIZE = (1280, 960)
BARREL = (-0.18, 0.06, 4e-4, -3e-4, -0.008)
RATIONAL = (0.31, -0.12, 3e-4, -2e-4, 0.02, 0.52, -0.05, 0.01)


def looking_at(eye, target):
    """Return the pose of a camera at `eye` that looks along z at `target`, image upright."""
    z = np.subtract(target, eye)
    z = z / np.linalg.norm(z)
    x = np.cross((0.0, 1.0, 0.0), z)
    x = x / np.linalg.norm(x)
    return pose(np.column_stack([x, np.cross(z, x), z]), eye)


def a_camera(name='left', distortion=BARREL, focal_px=1370.0, size=SIZE):
    width, height = size
    matrix = [[focal_px, 0.0, 0.503 * width], [0.0, 1.002 * focal_px, 0.495 * height], [0, 0, 1]]
    return Camera(name, size, np.array(matrix), np.array(distortion))


def a_pair(
    distortion=BARREL, window=None, baseline_m=0.3, distance_m=0.6, size=SIZE, focal_px=1370.0
):
    """Return two cameras, in the frame of the left one; the target lies straight ahead of it."""
    middle = (0.0, 0.0, distance_m)
    X_LR = looking_at((baseline_m, 0.0, 0.0), middle)
    return StereoCameras(
        a_camera('left', distortion, focal_px, size),
        a_camera('right', distortion, 1.01 * focal_px, size),
        inverse_pose(X_LR),
        window=window,
    )


def points_around(seed, count=50, distance_m=0.6, spread_m=0.1):
    rng = np.random.default_rng(seed)
    return rng.uniform(-spread_m, spread_m, (count, 3)) + np.array([0.0, 0.0, distance_m])
