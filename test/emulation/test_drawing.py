"""Compiled drawing against geometry: half planes, the width of a tube, tangent rays."""

import numpy as np
import pytest

from softarm_ros.emulation.drawing_kernels import (
    add_noise,
    ball_outlines,
    cover_ellipse,
    cover_hull,
    limits,
    paint,
    tube_edges,
    unit_circle,
)


def in_hull(corners, shape):
    """Return which pixel centres lie on the inner side of every edge of the hull of `corners`."""
    rows, columns = np.indices(shape)
    inside = np.ones(shape, dtype=bool)
    for i, a in enumerate(corners):
        for b in np.delete(corners, i, axis=0):
            normal = np.array([a[1] - b[1], b[0] - a[0]])
            away = (corners - a) @ normal
            if away.min() >= -1e-9:
                inside &= (columns - a[0]) * normal[0] + (rows - a[1]) * normal[1] >= 0.0
    return inside


@pytest.mark.parametrize('seed', range(8))
def test_cover_hull_fills_the_pixels_whose_centres_lie_inside(seed):
    corners = np.random.default_rng(seed).uniform(-6.0, 46.0, (4, 2))
    image = np.zeros((40, 36), dtype=np.float32)
    cover_hull(image, corners, 9.0)
    np.testing.assert_array_equal(image == 9.0, in_hull(corners, image.shape))


def test_adjacent_hulls_of_a_strip_leave_no_gap():
    left = np.column_stack([np.linspace(5.3, 21.7, 9), np.linspace(2.1, 37.2, 9)])
    right = left + np.array([6.5, -1.0])
    whole, pieces = (np.zeros((40, 40), dtype=np.float32) for _ in range(2))
    cover_hull(whole, np.array([left[0], right[0], right[-1], left[-1]]), 1.0)
    for k in range(8):
        cover_hull(pieces, np.array([left[k], left[k + 1], right[k], right[k + 1]]), 1.0)
    np.testing.assert_array_equal(pieces, whole)


def test_shapes_painted_later_hide_earlier_ones():
    turns = 2.0 * np.pi * np.arange(16) / 16
    ball = 20.0 + 5.0 * np.column_stack([np.cos(turns), np.sin(turns)])
    flat = np.array([[10.0, 18.0], [30.0, 18.0], [30.0, 22.0], [10.0, 22.0]])
    middle = {}
    for order in ((0, 1), (1, 0)):
        image = np.zeros((40, 40), dtype=np.float32)
        paint(image, np.array(order), flat[None], 1.0, ball[None], 2.0)
        middle[order] = image[20, 20], image[16, 20], image[20, 11]
    assert middle[(0, 1)] == (2.0, 2.0, 1.0)
    assert middle[(1, 0)] == (1.0, 2.0, 1.0)


@pytest.mark.parametrize('axes', [(6.0, 6.0), (12.0, 2.5), (0.4, 0.3)])
def test_edge_of_an_ellipse_fades_by_the_distance_of_a_pixel_to_it(axes):
    turns = unit_circle(16)
    turned = np.array([[0.8, -0.6], [0.6, 0.8]]) * axes
    image = np.zeros((40, 40), dtype=np.float32)
    cover_ellipse(image, turns @ turned.T + (20.3, 19.6), turns, 1.0)
    rows, columns = np.indices(image.shape)
    inverse = np.linalg.inv(turned)
    unit = np.stack([columns - 20.3, rows - 19.6], axis=-1) @ inverse.T
    r = np.linalg.norm(unit, axis=-1)
    slope = np.linalg.norm(unit @ inverse, axis=-1) / r
    np.testing.assert_allclose(image, np.clip(0.5 - (r - 1.0) / slope, 0.0, 1.0), atol=1e-6)


def test_shapes_with_nan_corners_are_not_painted():
    image = np.zeros((20, 20), dtype=np.float32)
    flats = np.array([[[2.0, 2.0], [9.0, 2.0], [9.0, 9.0], [np.nan, np.nan]]])
    paint(image, np.array([1, 0]), flats, 1.0, np.full((1, 16, 2), np.nan), 2.0)
    assert not image.any()
    assert limits(flats[0]).tolist() == [2.0, 2.0, 9.0, 9.0]
    assert not np.isfinite(limits(np.full((3, 2), np.nan))).any()


def test_tube_edges_lie_one_radius_from_the_line_across_the_view():
    line = np.column_stack([np.zeros(6), 0.01 * np.arange(6) ** 2, 0.1 * np.arange(6) + 1.0])
    eye, edges = np.array([0.7, -0.2, 0.1]), np.empty((12, 3))
    tube_edges(line, eye, 0.02, edges)
    along = np.gradient(line, axis=0)
    for edge, sign in ((edges[:6], 1.0), (edges[6:], -1.0)):
        across = edge - line
        assert np.linalg.norm(across, axis=1) == pytest.approx(0.02)
        assert np.einsum('ni,ni->n', across, along) == pytest.approx(0.0, abs=1e-15)
        assert np.einsum('ni,ni->n', across, line - eye) == pytest.approx(0.0, abs=1e-15)
        assert sign * np.einsum('ni,ni->n', across, np.cross(along, line - eye)).min() > 0.0


def test_rays_to_the_outline_of_a_ball_are_tangent_to_it():
    rng = np.random.default_rng(4)
    eye, balls = np.array([0.1, 0.0, -0.2]), rng.uniform(0.5, 1.5, (5, 3))
    outlines = np.empty((5, 16, 3))
    ball_outlines(balls, balls - eye, 0.03, outlines)
    rays = outlines - eye
    rays /= np.linalg.norm(rays, axis=2, keepdims=True)
    to = (balls - eye)[:, None]
    nearest = np.linalg.norm(np.cross(rays, to), axis=2)
    assert nearest == pytest.approx(np.full((5, 16), 0.03), abs=1e-12)


def test_add_noise_rounds_and_clips_to_0_and_255():
    image = np.array([[-3.0, 10.4, 10.6, 250.0]], dtype=np.float32)
    noise = np.array([[1.0, 0.0, 0.0, 9.0]], dtype=np.float32)
    shown = np.zeros((1, 4), dtype=np.uint8)
    add_noise(image, noise, shown)
    assert shown.tolist() == [[0, 10, 11, 255]]
