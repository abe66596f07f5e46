"""The study of the muscle arm: runs over points, use of the valves, loads, figures."""

from functools import cache

import numpy as np
import pytest

from softarm_reproduction import pam_arm_study as study
from softarm_reproduction.minimum_energy_study import curve_points
from softarm_ros.cli.report_plotting import new_figure
from softarm_ros.plant.pam_arm.valves import Pulse
from softarm_ros.rigs.arms.muscle import MuscleArm
from softarm_ros.rigs.loader import load_rig_of

RIG = load_rig_of(MuscleArm, 'pam_arm')


@cache
def run():
    return study.drive_points(RIG, 'circle', 0.5, 0)


def test_open_loop_points_are_missed_by_0_5_to_8_percent_of_the_length():
    errors = run().errors_percent
    assert errors.shape == (20,)
    np.testing.assert_allclose(
        errors / 100.0 * RIG.arm.backbone.length_m,
        np.linalg.norm(run().tips - curve_points('circle'), axis=1),
    )
    assert 0.5 < errors.mean() < 8.0 and errors.min() > 0.05
    # The model predicts a part of it, the arm adds to that.
    assert 0.0 < run().model_miss_m.mean() < 0.08


def test_valves_respect_relays_and_interlock_during_a_whole_run():
    use = study.valve_use([run()])
    assert use.pulses == len(run().pulses) > 300
    assert use.open_together == 0
    assert use.shortest_gap_s >= RIG.arm.valves.guard_s - 1e-9
    assert use.shortest_on_s >= RIG.arm.valves.shortest_pulse_s - 1e-9
    relays = RIG.plant.relays
    slack = 2.0 * relays.closing_spread_s + 3.0 * relays.jitter_s
    assert relays.shortest_delay_s - slack <= use.smallest_delay_s
    assert use.largest_delay_s <= relays.longest_delay_s + slack


def test_valves_that_are_open_together_are_counted():
    first = Pulse(0, True, 0.0, 0.02, 0.01, 0.04)
    later = Pulse(0, False, 0.03, 0.05, 0.035, 0.06)
    broken = study.PointRun(
        'circle', 0.0, 1.0, np.zeros((20, 3)), np.zeros((20, 3)), np.zeros(20), (first, later)
    )
    assert study.valve_use([broken]).open_together == 1


def test_load_in_newtons_becomes_a_tip_load_in_kilograms():
    assert study.with_load(RIG, 0.5).tip_load_kg == pytest.approx(0.5 / 9.81)


def test_load_increases_the_used_share_of_the_pull():
    free, loaded = (study.pull_share(RIG, 'circle', load) for load in (0.0, 0.5))
    # The range of commands leaves some gas in every bag.
    assert 0.8 < free < loaded < 0.95


def drawn(draw, *arguments):
    """Return the points (n, 2) of every line, by panel, of a figure with labelled axes."""
    figure = new_figure(3.0)
    draw(figure, *arguments)
    assert all(ax.get_xlabel() for ax in figure.axes)
    return [[line.get_xydata() for line in ax.lines] for ax in figure.axes]


def test_figures_show_the_tables_shapes_tips_and_errors():
    runs = [
        study.PointRun(
            c,
            0.0,
            1.0,
            curve_points(c),
            curve_points(c) + np.array([0.01, 0.0, 0.0]),
            np.zeros(20),
            (),
        )
        for c in study.CURVES
    ]
    ((*_, inflating),) = drawn(study.draw_table, RIG)
    table = RIG.arm.valves.table().inflating
    np.testing.assert_allclose(inflating, np.stack([table.x, 1e3 * table.y], axis=1))
    for curve, (*shapes, targets) in zip(study.CURVES, drawn(study.draw_shapes, RIG)):
        points = 1e3 * curve_points(curve)[:, [0, 2]]
        np.testing.assert_allclose(targets, points)
        np.testing.assert_allclose([shape[-1] for shape in shapes], points, atol=0.01)  # reached
    for curve, (targets, tips) in zip(study.CURVES, drawn(study.draw_points, runs)):
        points = 1e3 * curve_points(curve)[:, :2]
        np.testing.assert_allclose(targets[:-1], points)
        np.testing.assert_allclose(tips, points + np.array([10.0, 0.0]))
    for curve, (errors, mean) in zip(study.CURVES, drawn(study.draw_errors, runs)):
        np.testing.assert_allclose(errors[:, 1], 1.0)  # 10 mm of 1 m
        assert mean[0, 1] == study.PAPER_ERROR_PERCENT[curve]
