"""Refraction compared with Snell's law, and both directions of ray tracing with each other."""

import numpy as np
import pytest

from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.window import FlatWindow

TILTED = np.array([0.05, -0.08, 1.0]) / np.linalg.norm([0.05, -0.08, 1.0])
ORIGIN = np.array([0.02, -0.01, 0.005])


def a_window(**changes):
    return FlatWindow(**({'normal': TILTED, 'distance_m': 0.08, 'thickness_m': 0.01} | changes))


@pytest.mark.parametrize('angle_deg', [0.0, 5.0, 20.0, 45.0, 70.0])
def test_ray_is_refracted_by_snells_law_and_shifted_by_the_glass(angle_deg):
    window = FlatWindow(np.array([0.0, 0.0, 1.0]), 0.1, 0.012, 1.0, 1.5, 1.33)
    angle = np.radians(angle_deg)
    starts, rays = window.rays_in_water(np.zeros(3), [[np.sin(angle), 0.0, np.cos(angle)]])
    in_glass, in_water = np.arcsin(np.sin(angle) / 1.5), np.arcsin(np.sin(angle) / 1.33)
    assert starts[0] == pytest.approx([0.1 * np.tan(angle) + 0.012 * np.tan(in_glass), 0, 0.112])
    assert rays[0] == pytest.approx([np.sin(in_water), 0.0, np.cos(in_water)], abs=1e-14)


def test_ray_traced_towards_a_point_passes_through_it():
    window = a_window()
    rng = np.random.default_rng(3)
    points = rng.uniform((-0.4, -0.4, 0.12), (0.4, 0.4, 0.9), (500, 3))
    points = points[points @ TILTED > 0.0901]
    starts, rays = window.rays_in_water(ORIGIN, window.directions_to(ORIGIN, points))
    along = np.einsum('ni,ni->n', points - starts, rays)
    assert along.min() > 0.0
    assert np.linalg.norm(starts + along[:, None] * rays - points, axis=1).max() < 1e-12


def test_light_takes_the_shortest_optical_path():
    """Fermat's principle: a path through other points of the faces is longer."""
    window, point = a_window(), np.array([0.2, -0.15, 0.5])
    start, _ = window.rays_in_water(ORIGIN, window.directions_to(ORIGIN, [point]))
    ray = window.directions_to(ORIGIN, [point])[0]
    dry = ORIGIN + ray * (window.distance_m - TILTED @ ORIGIN) / (ray @ TILTED)
    wet = start[0]

    def path(first, second):
        legs = (first - ORIGIN, second - first, point - second)
        indices = (window.air, window.glass, window.water)
        return sum(n * np.linalg.norm(leg) for n, leg in zip(indices, legs))

    shortest = path(dry, wet)
    e1 = np.cross(TILTED, (1.0, 0.0, 0.0))
    e1 /= np.linalg.norm(e1)
    for e in (e1, np.cross(TILTED, e1)):
        for a, b in ((1e-4, 0.0), (-1e-4, 0.0), (0.0, 1e-4), (0.0, -1e-4), (1e-4, 1e-4)):
            assert path(dry + a * e, wet + b * e) > shortest


def test_window_of_air_does_not_refract():
    window = a_window(air=1.0, glass=1.0, water=1.0)
    points = np.array([[0.1, 0.2, 0.5], [0.0, 0.0, 0.3]])
    straight = points - ORIGIN
    straight /= np.linalg.norm(straight, axis=1, keepdims=True)
    assert window.directions_to(ORIGIN, points) == pytest.approx(straight, abs=1e-14)


def test_point_before_the_window_and_ray_away_from_it_give_nan():
    window = a_window()
    assert np.isnan(window.directions_to(ORIGIN, [[0.0, 0.0, 0.05]])).all()
    starts, _ = window.rays_in_water(ORIGIN, [[1.0, 0.0, -0.5]])
    assert np.isnan(starts).all()


@pytest.mark.parametrize(
    ('change', 'says'),
    [
        ({'normal': np.array([0.0, 0.0, 0.5])}, 'normal has length 0.5'),
        ({'thickness_m': -0.001}, 'thickness_m = -0.001'),
        ({'distance_m': np.inf}, 'distance_m = inf'),
        ({'water': 0.9}, 'index of water = 0.9'),
    ],
)
def test_invalid_window_values_are_named(change, says):
    with pytest.raises(CameraError, match=says):
        a_window(**change)
