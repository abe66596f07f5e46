"""Projection through the lens compared with OpenCV, and its inverse."""

import numpy as np
import pytest
from stereo_cases import BARREL, RATIONAL, a_camera, points_around

from softarm_ros.perception.stereo.camera import Camera, CameraError

LENSES = ((0.0, 0.0, 0.0, 0.0), BARREL, RATIONAL)


@pytest.mark.parametrize('lens', LENSES)
def test_projection_matches_opencv(lens):
    cv2 = pytest.importorskip('cv2')
    camera, points = a_camera(distortion=lens), points_around(1, 300, spread_m=0.25)
    theirs, _ = cv2.projectPoints(
        points, np.zeros(3), np.zeros(3), camera.matrix, np.array(camera.distortion)
    )
    assert np.abs(camera.project(points) - theirs.reshape(-1, 2)).max() < 1e-9


@pytest.mark.parametrize('lens', LENSES)
def test_direction_of_a_pixel_projects_back_to_the_pixel(lens):
    camera = a_camera(distortion=lens)
    x, y = np.meshgrid(np.linspace(-0.5, 1279.5, 41), np.linspace(-0.5, 959.5, 31))
    pixels = np.column_stack([x.ravel(), y.ravel()])
    rays = camera.directions(pixels)
    assert np.allclose(np.linalg.norm(rays, axis=1), 1.0)
    assert np.abs(camera.project(0.7 * rays) - pixels).max() < 1e-8


def test_points_behind_the_camera_or_folded_by_the_lens_have_no_pixel():
    camera = a_camera(distortion=(-0.4, 0.0, 0.0, 0.0))
    behind, folded, seen = [0.0, 0.1, -0.5], [2.0, 0.0, 1.0], [0.1, 0.0, 1.0]
    found = camera.project([behind, folded, seen])
    assert np.isnan(found[:2]).all()
    assert np.isfinite(found[2]).all()


def test_pixel_beyond_the_range_of_the_lens_has_no_direction():
    assert np.isnan(a_camera(distortion=(-0.4, 0.0, 0.0, 0.0)).directions([[5000.0, 480.0]])).all()


@pytest.mark.parametrize(
    ('change', 'says'),
    [
        ({'size': (0, 480)}, 'size'),
        ({'distortion': np.zeros(3)}, 'distortion has 3'),
        ({'distortion': np.array([0.1, np.nan, 0.0, 0.0])}, 'not finite'),
        ({'matrix': np.eye(4)}, 'shape'),
        ({'matrix': np.diag([-1.0, 1.0, 1.0])}, 'focal length'),
        ({'matrix': np.diag([400.0, 400.0, 2.0])}, 'skew, cx'),
        ({'matrix': [[400.0, 0.0, 320.0], [5.0, 400.0, 240.0], [0.0, 0.0, 1.0]]}, 'skew, cx'),
    ],
)
def test_invalid_camera_values_are_named(change, says):
    good = a_camera()
    fields = {'size': good.size, 'matrix': good.matrix, 'distortion': good.distortion} | change
    with pytest.raises(CameraError, match=says):
        Camera('left', **fields)
