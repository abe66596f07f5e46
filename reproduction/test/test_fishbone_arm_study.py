import math

import numpy as np
import pytest

from softarm_reproduction.experiment_page import write_page
from softarm_reproduction.fishbone_arm_experiments import _bending, _unit
from softarm_reproduction.fishbone_arm_figures import draw_ball, draw_module
from softarm_reproduction.fishbone_arm_study import (
    BALL_CENTRE_M,
    BALL_RADIUS_M,
    around_ball,
    as_printed,
    bending_loop,
    clearance,
    elastica,
    module_grid,
    predicted_module,
    strip_stiffness,
    unit_under_load,
)
from softarm_ros.cli.report_plotting import new_figure
from softarm_ros.rigs.loader import load_rig

RIG = as_printed(load_rig('fishbone_arm'))
# Corrected table of the paper: drop [mm] of elastica and of the rod with the strip's weight.
DROPS_MM = {
    0.05: (2.456, 2.494),
    0.15: (6.127, 6.164),
    0.25: (9.604, 9.638),
    0.35: (12.809, 12.841),
    0.45: (15.705, 15.734),
    0.55: (18.286, 18.312),
}
# Corrected table of the paper, weightless strips: O2 and O4 (along, up, aside) [mm].
MODULE_MM = {
    (5.0, 3.0): ((61.729, -0.025, 8.584), (122.380, 4.298, 22.824)),
    (5.0, 9.0): ((61.729, -0.025, 8.584), (120.383, 14.428, 22.405)),
    (10.0, 6.0): ((59.449, -0.093, 16.864), (114.570, 9.220, 44.302)),
}


def test_elastica_tends_to_the_beam_and_conserves_length():
    law = strip_stiffness(RIG)
    assert law == pytest.approx(0.0108675)
    small = 1e-4
    reach, drop = elastica(small, 0.05, law)
    assert drop == pytest.approx(small * 0.05**3 / (3.0 * law), rel=1e-5)
    assert reach == pytest.approx(0.05, rel=1e-6)
    assert elastica(0.0, 0.05, law) == (0.05, 0.0)
    reach, drop = elastica(50.0, 0.05, law)
    assert math.hypot(reach, drop) < 0.05 < reach + drop


def test_unit_matches_the_table_and_the_simulated_arm_differs_from_it():
    rows = unit_under_load(RIG)
    for row in rows:
        exact, heavy = DROPS_MM[row.mass_kg]
        assert 1e3 * row.elastica_m == pytest.approx(exact, abs=6e-4)
        assert 1e3 * row.rod_m == pytest.approx(exact, abs=1e-3)
        assert 1e3 * row.heavy_rod_m == pytest.approx(heavy, abs=1.5e-3)
        np.testing.assert_allclose(row.rod_shape[-1, 1:], row.heavy_rod_tip, atol=1e-9)
        np.testing.assert_allclose(row.simulated_shape[-1, 1:], row.simulated_tip, atol=1e-9)
        assert 1e-4 < row.error_m < 2e-3
    errors = [row.error_m for row in rows]
    assert errors == sorted(errors)


def test_module_with_weightless_strips_matches_the_table():
    light = tuple(
        s.model_copy(update={'profile': s.profile.model_copy(update={'density_kg_m3': 0.0})})
        for s in RIG.arm.segments
    )
    rig = RIG.with_arm(segments=light)
    for tensions, ends in MODULE_MM.items():
        tips = predicted_module(rig, tensions).section_tips[:, :3, 3]
        for tip, (along, up, aside) in zip(tips, ends):
            np.testing.assert_allclose(1e3 * tip, (aside, up, along), atol=2e-3)


def test_simulated_module_deviates_from_its_model_more_if_it_bends_more():
    rows = module_grid(RIG, 0)
    assert all(row.errors_m[0] < row.errors_m[1] for row in rows)
    gentle, hard = rows[0].errors_m[1], rows[-1].errors_m[1]
    assert 3e-4 < gentle < hard < 6e-3
    drawn = new_figure(3.0)
    draw_module(drawn, rows)
    assert len(drawn.axes) == 2 and all(len(ax.lines) == 12 for ax in drawn.axes)


def test_friction_loop_lies_around_the_closed_form_without_friction():
    loop = bending_loop(RIG, 0)
    np.testing.assert_allclose(loop.closed_form_rad, loop.rod_rad, rtol=1e-6)
    assert np.all(loop.unloading_rad > loop.loading_rad + 1e-3)
    assert np.all(np.diff(loop.loading_rad) > 0.0) and np.all(np.diff(loop.unloading_rad) > 0.0)
    middle = 0.5 * (loop.loading_rad + loop.unloading_rad)
    np.testing.assert_allclose(middle, loop.closed_form_rad, rtol=0.1)


def test_clearance_is_the_shortest_distance_minus_both_radii():
    x, y, z = BALL_CENTRE_M
    line = np.array([[[x - 0.2, y, z], [x, y + 0.07, z], [x, y, z - 0.3]]])
    expected = 0.07 - BALL_RADIUS_M - RIG.plant.outer_radius_m
    np.testing.assert_allclose(clearance(line, RIG.plant), [expected])


def test_the_arm_goes_around_the_ball_without_touching_it():
    (run,) = around_ball(load_rig('fishbone_arm'), (0,), open_loop=False)
    assert run.clearance_m > 0.003 and run.approach_clearance_m > 0.003
    angles = np.unwrap(np.arctan2(run.tips[:, 1], run.tips[:, 0]))
    assert abs(angles[-1] - angles[0]) == pytest.approx(2.0 * math.pi, abs=0.2)
    assert run.mean_m < 0.005 * RIG.model().rest_length_m
    drawn = new_figure(3.0)
    draw_ball(drawn, run, run)
    assert len(drawn.axes) == 2


def test_experiments_are_written_to_a_page_with_pictures(tmp_path):
    found = [_unit(RIG), _bending(RIG, 0)]
    assert found[0].rows[0].paper == 1.07 and found[0].rows[0].ratio == pytest.approx(0.8, abs=0.5)
    page = write_page('fishbone', 'lead', found, tmp_path)
    text = page.read_text('utf-8')
    assert 'largest tip error' in text and '0.0045 deg' in text
    assert {p.name for p in tmp_path.glob('*.png')} == {'unit_under_load.png', 'bending_loop.png'}
