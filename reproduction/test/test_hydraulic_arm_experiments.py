"""The experiments of the hydraulic arm's paper: numbers, pages, figures."""

import numpy as np
import pytest

from softarm_reproduction.hydraulic_arm_figures import (
    draw_curvatures,
    draw_errors,
    draw_static,
    draw_workspace,
)
from softarm_reproduction.hydraulic_arm_study import (
    MotionError,
    coarse_statics,
    limit_poses,
    motion,
    motion_errors,
    static_poses,
    sweep_workspace,
    torque_controlled,
)
from softarm_reproduction.hydraulic_motions import Record
from softarm_ros.cli.report_plotting import new_figure
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.hydraulics.identified_arm import SET_B
from softarm_ros.rigs.arms.hydraulic import HydraulicArm
from softarm_ros.rigs.loader import load_rig_of


@pytest.fixture(scope='module')
def rig():
    return load_rig_of(HydraulicArm, 'hydraulic_arm')


@pytest.fixture(scope='module')
def ramps(rig):
    return motion_errors(rig, motion('4.3.2'), 0, (1, 5))


def test_workspace_is_a_shell_below_the_base_without_folds():
    found = sweep_workspace(levels=4, segments=5)
    assert len(found.tips) == 64 and found.lost == 0
    assert np.all(found.tips[:, 2] > 0.0)
    radius = np.linalg.norm(found.tips, axis=1)
    assert radius.max() < 0.41  # nowhere longer than the stretched section
    assert 0.5 < found.extent_m[0] < 0.6 and 0.5 < found.extent_m[1] < 0.6


def test_limit_poses_match_the_paper_except_for_its_misprint():
    two, one = limit_poses(5)
    assert two.length_m == pytest.approx(two.paper_length_m, abs=1e-4)
    assert two.angle_deg == pytest.approx(two.paper_angle_deg, abs=0.01)
    assert one.angle_deg == pytest.approx(one.paper_angle_deg, abs=0.01)
    assert one.radius_m == pytest.approx(one.paper_radius_m, abs=2e-4)
    assert one.length_m < two.length_m < one.paper_length_m


def test_poses_at_rest_need_more_than_one_segment(rig):
    poses = static_poses(rig, 0)
    assert [(p.actuator, p.torque_N_m) for p in poses[3:5]] == [(1, 2.0), (4, 0.5)]
    fine = np.array([p.sectional_m for p in poses])
    coarse = np.array([p.first_order_m for p in poses])
    assert 1e-3 < fine.max() < 0.05
    assert coarse[:, 1].max() > 2.0 * fine[:, 1].max()
    draw_static(new_figure(3.6), poses)


def test_the_plant_of_the_experiments_is_under_torque_control(rig):
    bare = torque_controlled(rig)
    assert bare.arm.preload_Pa == 0.0 and bare.arm.pressure_loop.gain == 0.0
    assert rig.arm.preload_Pa > 0.0 and rig.arm.pressure_loop.gain > 0.0
    assert bare.plant == rig.plant
    assert coarse_statics(bare).sections[0].length_m == SET_B[1].length_m


def test_motion_errors_are_those_of_equation_37(rig, ramps):
    for found, segments in zip(ramps, (1, 5)):
        assert found.segments == segments
        assert found.plant.shape == found.model.shape == (600, 2, 3)
        away = np.linalg.norm(found.plant - found.model, axis=2)
        assert found.sectional_m == away.max()
        assert found.cumulative_m == away.sum(axis=1).max()
        assert found.sectional_m < found.cumulative_m <= 2.0 * found.sectional_m
    coarse, fine = ramps
    assert 1e-3 < fine.sectional_m < 0.5 * coarse.sectional_m
    draw_errors(new_figure(3.6), [('4.3.2', fine)] * 2)


def test_constant_offset_is_the_sectional_error_and_half_the_cumulative_error():
    tips = np.random.default_rng(0).normal(size=(5, 2, 3))
    same = MotionError(1, np.arange(5.0), tips, tips + np.array([0.0, 0.003, 0.0]))
    np.testing.assert_allclose(same.sectional_m, 0.003)
    np.testing.assert_allclose(same.cumulative_m, 0.006)


def test_unknown_motions_are_refused():
    assert motion('3.2.1').duration_s == 4.0
    with pytest.raises(ModelError, match=r"'9\.9'"):
        motion('9.9')


def test_figures_have_lines_and_labels(ramps):
    figure = new_figure(3.6)
    draw_workspace(figure, sweep_workspace(levels=2, segments=1))
    assert [ax.get_xlabel() for ax in figure.axes] == ['x [mm]', 'x [mm]']
    figure = new_figure(3.6)
    pressures = np.ones((3, 6))
    record = Record(np.arange(3.0), np.ones((3, 2)), np.ones((3, 2, 3)), pressures, pressures)
    draw_curvatures(figure, [('one', record), ('two', record)])
    assert [len(ax.lines) for ax in figure.axes] == [2, 2]
