"""The track of two markers, from rows whose distance is known."""

import numpy as np
import pytest

from softarm_reproduction.stereo_real_study import track
from softarm_ros.geometry.poses import pose
from softarm_ros.perception.stereo.camera import Camera
from softarm_ros.perception.stereo.cameras import StereoCameras

K = np.array([[425.0, 0.0, 408.0], [0.0, 425.0, 300.0], [0.0, 0.0, 1.0]])
LENS = np.array([-0.32, 0.15, 0.0, 0.0, -0.04])


def test_track_gives_the_marker_distance_and_leaves_out_a_mismatched_row(tmp_path):
    cameras = StereoCameras(
        Camera('left', (840, 600), K, LENS),
        Camera('right', (840, 600), K, LENS),
        pose(np.eye(3), (-0.074, 0.0, 0.0)),
    )
    first = np.linspace((0.05, -0.02, 0.12), (0.03, 0.02, 0.13), 6)
    second = first + np.array([0.0, 0.022, 0.0])
    rows = np.hstack([cameras.project(s, p) for s in ('left', 'right') for p in (first, second)])
    rows[4, 6:8] += (0.0, 25.0)
    file = tmp_path / 'track.csv'
    np.savetxt(file, rows, delimiter=',', header='Lx1,Ly1,Lx2,Ly2,Rx1,Ry1,Rx2,Ry2')
    seen = track(cameras, file)
    assert seen.good.tolist() == [True, True, True, True, False, True]
    assert seen.distance_mm[seen.good] == pytest.approx(22.0, abs=1e-6)
