import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError
from scipy.integrate import quad

from softarm_ros.control.path import build_path, plane_axes
from softarm_ros.control.trajectory import Trajectory
from softarm_ros.control.trajectory_config import TrajectoryConfig

ADAPTER = TypeAdapter(TrajectoryConfig)
SHAPES = {
    'circle': dict(type='circle', center=(0.01, 0, 0.18), radius=0.1, normal=(0.2, 0, 1)),
    'line': dict(type='line', start=(0.1, 0, 0.1), end=(-0.1, 0.05, 0.1)),
    'square': dict(type='square', center=(0, 0, 0.1), side=0.1),
    'cardioid': dict(type='cardioid', center=(0, 0, 0.1), size=0.03, start_angle_deg=30),
    'open waypoints': dict(
        type='waypoints', points=[(0, 0, 0.1), (0.1, 0, 0.12), (0.1, 0.1, 0.2), (0, 0.1, 0.1)]
    ),
    'closed waypoints': dict(
        type='waypoints',
        points=[(0, 0, 0.1), (0.1, 0, 0.1), (0.1, 0.1, 0.2), (0, 0.1, 0.1)],
        closed=True,
    ),
    'waypoints there and back': dict(
        type='waypoints', points=[(0, 0, 0.1), (0.1, 0, 0.1), (0.02, 0.01, 0.1), (0, 0.1, 0.1)]
    ),
    'closed waypoints there and back': dict(
        type='waypoints', points=[(0, 0, 0.1), (0.1, 0, 0.1), (0, 0, 0.11)], closed=True
    ),
}


def make(name, **extra):
    return ADAPTER.validate_python({**SHAPES[name], **extra})


def timed(name, laps=1, speed=0.03):
    return Trajectory(make(name, speed=speed), max_acceleration=0.1, max_jerk=0.5, laps=laps)


@pytest.mark.parametrize('name', SHAPES)
@pytest.mark.parametrize('laps', [1, 2])
def test_velocity_is_the_derivative_of_position_and_keeps_its_bounds(name, laps):
    trajectory = timed(name, laps)
    dt = 2e-3
    times = np.arange(0.0, trajectory.duration_s + 0.1, dt)
    samples = [trajectory.sample(t) for t in times]
    position = np.array([s.position for s in samples])
    velocity = np.array([s.velocity for s in samples])
    difference = (position[2:] - position[:-2]) / (2 * dt)
    np.testing.assert_allclose(velocity[1:-1], difference, atol=2e-6)
    assert np.linalg.norm(velocity, axis=1).max() == pytest.approx(0.03, rel=1e-6)
    np.testing.assert_allclose(velocity[[0, -1]], 0.0, atol=1e-12)
    # Only tangential acceleration is bounded; a jump of direction at speed would show here.
    change = np.linalg.norm(np.diff(velocity, axis=0), axis=1) / dt
    assert change.max() < 0.2


@pytest.mark.parametrize('name', SHAPES)
def test_laps_are_counted_and_progress_ends_at_one(name):
    trajectory = timed(name, laps=3)
    laps = [trajectory.sample(t).lap for t in np.linspace(0.0, trajectory.duration_s, 500)]
    assert laps == sorted(laps)
    assert set(laps) == {0, 1, 2}
    assert trajectory.sample(trajectory.duration_s).progress == 1.0


def test_an_open_path_runs_back_in_the_second_lap():
    trajectory = timed('line', laps=2)
    config = make('line')
    end = trajectory.sample(trajectory.duration_s)
    middle = trajectory.sample(trajectory.duration_s / 2)
    np.testing.assert_allclose(end.position, config.start, atol=1e-9)
    np.testing.assert_allclose(middle.position, config.end, atol=1e-9)


def test_a_closed_smooth_path_does_not_stop_between_laps():
    trajectory = timed('circle', laps=2)
    halfway = trajectory.sample(trajectory.duration_s / 2)
    assert np.linalg.norm(halfway.velocity) == pytest.approx(0.03, rel=1e-9)


def test_the_square_rests_in_its_corners():
    trajectory = timed('square')
    corner = trajectory.sample(trajectory.duration_s / 4)
    np.testing.assert_allclose(corner.velocity, 0.0, atol=1e-9)


def test_trajectory_stops_only_at_waypoints_where_it_turns_back():
    path = build_path(make('waypoints there and back'))
    assert len(path.pieces) == 2 and not path.periodic
    trajectory = timed('waypoints there and back')
    times = np.linspace(0.0, trajectory.duration_s, 4001)
    samples = [trajectory.sample(t) for t in times]
    away = [np.linalg.norm(s.position - (0.1, 0, 0.1)) for s in samples]
    at = int(np.argmin(away))
    assert away[at] < 1e-5
    assert np.linalg.norm(samples[at].velocity) < 1e-3
    for name in ('open waypoints', 'closed waypoints'):
        assert len(build_path(make(name)).pieces) == 1


def test_waypoints_are_passed_through():
    path = build_path(make('open waypoints'))
    dense = path.sample(5000)
    for point in SHAPES['open waypoints']['points']:
        assert np.min(np.linalg.norm(dense - point, axis=1)) < 5e-5


@pytest.mark.parametrize('name', SHAPES)
def test_samples_are_evenly_spaced_in_arc_length(name):
    path = build_path(make(name))
    gaps = np.linalg.norm(np.diff(path.sample(4001), axis=0), axis=1)
    # Where the path turns back, a chord is shorter than its arc by up to the whole arc.
    cut = (len(path.pieces) - 1) * gaps.max()
    assert gaps.sum() == pytest.approx(path.length, rel=1e-4, abs=cut)
    if name != 'cardioid':  # around the cusp a chord is shorter than its arc
        corners = 4 if name == 'square' else len(path.pieces) - 1
        uneven = np.sum(np.abs(gaps / gaps.mean() - 1.0) > 1e-2)
        assert uneven <= corners


def test_cardioid_arc_length_matches_quadrature():
    size = 0.03

    def speed(t):
        return size * np.hypot(1 - np.cos(t), np.sin(t))

    path = build_path(make('cardioid'))
    assert path.length == pytest.approx(quad(speed, 0, 2 * np.pi)[0], rel=1e-9)
    half = quad(speed, 0, 1.3)[0]
    r = size * (1 - np.cos(1.3))
    distance = np.linalg.norm(path.pieces[0].at(half)[0] - [0, 0, 0.1])
    assert distance == pytest.approx(r, rel=1e-9)


def test_plane_axes_are_right_handed_and_default_to_base_axes():
    np.testing.assert_allclose(plane_axes((0, 0, 2), 0.0), np.eye(3)[:2], atol=1e-15)
    axes = plane_axes((0.3, -0.5, 0.2), 0.7)
    normal = np.array([0.3, -0.5, 0.2]) / np.linalg.norm([0.3, -0.5, 0.2])
    np.testing.assert_allclose(np.cross(axes[0], axes[1]), normal, atol=1e-12)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (dict(type='waypoints', points=[(0, 0, 0.1)]), 'at least 2'),
        (dict(type='waypoints', points=[(0, 0, 0.1), (0, 0, 0.1)]), 'points[0] and points[1]'),
        (dict(type='waypoints', points=[(0, 0, 0.1), (0, float('nan'), 0.1)]), 'finite'),
        (dict(type='waypoints', points=[(0, 0.1), (0, 0, 0.1)]), 'points'),
        (
            dict(type='waypoints', points=[(0, 0, 0.1), (0.1, 0, 0.1)], closed=True),
            'at least 3 distinct',
        ),
        (dict(type='line', start=(0, 0, 0.1), end=(0, 0, 0.1)), 'same point'),
        (dict(type='circle', center=(0, 0, 0.1), radius=-1), 'greater than 0'),
        (dict(type='circle', center=(0, 0, 0.1), radius=0.1, normal=(0, 0, 0)), 'length 0; exp'),
        (dict(type='circle', center=(0, 0, 0.1), radius=0.1, normal=(1e300, 0, 1)), 'length 1e'),
        (dict(type='circle', center=(0, 0, 0.1), radius=0.1, speed=1e-20), 'equal to 0.000001'),
        (dict(type='circle', center=(0, 0, 0.1), radius=0.1, speed=0), 'equal to 0.000001'),
        (dict(type='circle', center=(0, 0, 0.1), radius=0.1, sped=1), 'Extra inputs'),
        (dict(type='helix'), 'helix'),
        (dict(type='circle', center=(0, 0, 0.1), radius=0.1, laps=0), 'greater than or equal'),
        (dict(type='circle', center=(0, 0, 0.1), radius=0.1, frame='world'), 'base'),
    ],
)
def test_invalid_trajectories_are_refused_with_the_cause(change, message):
    with pytest.raises(ValidationError) as error:
        ADAPTER.validate_python(change)
    assert message in str(error.value)


@pytest.mark.parametrize('laps', [0, -1, 1001, 10**9])
def test_number_of_laps_outside_1_to_1000_is_refused(laps):
    """Each lap of a line is a motion of its own: 10^9 of them would fill the memory."""
    with pytest.raises(ValueError, match=rf'laps = {laps}: expected 1 to 1000'):
        timed('line', laps)
