"""The reach of a path is solved once per process, and anew if any of its inputs differs."""

from types import SimpleNamespace

import numpy as np
import pytest

from softarm_ros.control.controller import AnswerError
from softarm_ros.control.reach import check_reach, reaches_any
from softarm_ros.control.task_config import TaskConfig
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.assembly import (
    TrajectoryError,
    build_control_loop,
    build_tracker,
    build_trajectory,
    plan_trajectory,
)
from softarm_ros.runtime.task_plan import plan_stages

RIG = 'cable_arm'
OUTSIDE = 'type: line\nstart: [0.5, 0, 0.2]\nend: [0.5, 0.1, 0.2]\n'
LATE = 'type: line\nstart: [0.5, 0.0, 0.2]\nend: [0.08, 0.02, 0.2]\n'  # it begins out of reach


def fresh(loop):
    tracker = loop.tracker
    room = tracker.room
    return check_reach(tracker.model, room, tracker.configuration_limits, loop.trajectory.path)


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ('points', 'miss_m', 'nearest', 'start_configuration')
    )


@pytest.mark.parametrize(
    ('name', 'out_m', 'z_m'), [('trunk', 0.4, 0.2), ('hydraulic_arm', 0.9, 0.6)]
)
def test_nearest_reachable_point_lies_on_the_side_of_a_distant_point(name, out_m, z_m):
    """The unlimited solution of the model is beyond the limits and no guess for the next point."""
    rig = load_rig(name)
    model = rig.model()
    tracker = build_tracker(rig, model)
    angle = np.deg2rad([0.0, 120.0, 242.0])
    points = np.stack([out_m * np.cos(angle), out_m * np.sin(angle), np.full(3, z_m)], axis=1)
    path = SimpleNamespace(sample=lambda count: points[:count])
    reach = check_reach(model, tracker.room, tracker.configuration_limits, path, 3)
    assert (reach.miss_m > 0.1).all()
    np.testing.assert_allclose(np.linalg.norm(reach.nearest - points, axis=1), reach.miss_m)
    along = np.sum(reach.nearest[:, :2] * points[:, :2], axis=1)
    apart = np.linalg.norm(reach.nearest[:, :2], axis=1) * out_m
    assert (along > 0.97 * apart).all()  # within 14 degrees


@pytest.fixture
def path_file(tmp_path):
    def write(text):
        file = tmp_path / 'path.yaml'
        file.write_text(text)
        return str(file)

    return write


class Counting:
    """A model that counts the calls of its inverse."""

    def __init__(self, model):
        self.model, self.asked = model, 0

    def __getattr__(self, name):
        return getattr(self.model, name)

    def inverse(self, *arguments, **options):
        self.asked += 1
        return self.model.inverse(*arguments, **options)


def test_reach_of_an_equal_rig_is_not_solved_again():
    first = build_control_loop(load_rig(RIG), 'line_small')
    again = build_control_loop(load_rig(RIG), 'line_small', laps=3)
    assert again.reach is first.reach
    assert same(first.reach, fresh(again))
    with pytest.raises(ValueError, match='read-only'):
        first.reach.start_configuration[0] = 1.0


@pytest.mark.parametrize(
    ('settings', 'options'),
    [
        (['arm.actuators[0].position_max_m=0.012'], {}),
        (['arm.sections[0].length_m=0.08'], {}),
        (['arm.sections[1].max_bending_angle_deg=75'], {}),
        (['controller.pretension_m=0.0'], {}),
        (['trajectories.line_small.end=[0.05, 0.02, 0.22]'], {}),
        ([], {'model': 'constant_curvature'}),
        ([], {'open_loop': True}),
    ],
)
def test_reach_is_solved_anew_if_any_of_its_inputs_differs(settings, options):
    known = build_control_loop(load_rig(RIG), 'line_small').reach
    other = build_control_loop(load_rig(RIG, settings), 'line_small', **options)
    assert other.reach is not known
    assert same(other.reach, fresh(other))


def test_search_for_a_reachable_point_stops_at_the_first(path_file):
    rig = load_rig(RIG)
    for trajectory, least, most in (('line_small', 1, 1), (path_file(LATE), 2, 119)):
        loop = build_control_loop(rig, trajectory)
        model = Counting(loop.model)
        path, limits = loop.trajectory.path, loop.tracker.configuration_limits
        assert reaches_any(model, loop.tracker.room, limits, path)
        assert least <= model.asked <= most
        assert model.asked == 1 + np.argmax(loop.reach.reachable)


def test_planned_trajectory_without_a_reachable_point_is_refused(path_file):
    rig = load_rig(RIG)
    _, trajectory = plan_trajectory(rig, None, laps=2)
    assert trajectory.duration_s == build_trajectory(rig, None, 2).duration_s
    with pytest.raises(TrajectoryError, match=r'outside the workspace: 120 of 120 points'):
        plan_trajectory(rig, path_file(OUTSIDE))


def test_point_reached_by_another_solution_within_the_limits_is_reachable(path_file):
    """The trunk has six motors for three coordinates: others compensate one with less range."""
    rig = load_rig('trunk', ['arm.actuators[4].position_max_m=0.005'])
    free = rig.physics()
    tracker = build_tracker(rig, rig.model())
    model, room, limits = tracker.model, tracker.room, tracker.configuration_limits
    path = build_trajectory(rig, 'circle').path
    reach = check_reach(model, room, limits, path, 12)
    alone = [free.inverse(point).actuation[4] for point in reach.points]
    beyond = np.flatnonzero(np.array(alone) > room.position_max[4])
    assert 0 < len(beyond) < 12
    assert reach.miss_m.max() < 1e-6
    np.testing.assert_allclose(reach.nearest, reach.points, atol=1e-6)

    steps = [{'position_m': tuple(reach.points[beyond[0]].tolist())}]
    (stage,) = plan_stages(rig, model, TaskConfig.model_validate({'steps': steps}), room)
    np.testing.assert_array_equal(stage.position, reach.points[beyond[0]])

    # A point farther out is missed by its distance to the nearest point within the limits.
    far = path_file('type: circle\ncenter: [0, 0, 0.27]\nradius: 0.2\nspeed: 0.01\n')
    reach = check_reach(model, room, limits, build_trajectory(rig, far).path, 6)
    assert not reach.reachable.any()
    np.testing.assert_allclose(np.linalg.norm(reach.nearest - reach.points, axis=1), reach.miss_m)


@pytest.mark.parametrize(
    ('answer', 'said'), [(None, 'None'), (np.zeros(6), r'\[0.0, 0.0, 0.0, 0.0, 0.0, 0.0\]')]
)
def test_a_model_whose_inverse_is_no_solution_is_named(answer, said):
    rig = load_rig(RIG)
    model = rig.model()
    model.inverse = lambda *given, **named: answer
    path = build_trajectory(rig, None).path
    said = rf'^model cable_statics \(CableStaticsArm\) returned inverse {said}; expected an'
    with pytest.raises(AnswerError, match=said):
        check_reach(model, rig.actuator_limits(), rig.configuration_limits(), path, n=5)
