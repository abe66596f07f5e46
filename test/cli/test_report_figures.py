"""Figures of reports: their lines, and the one module that makes figures."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from report_cases import (
    APPROACH,
    LAP,
    PERIOD_S,
    circle_record,
)

from softarm_ros.cli import report_figures
from softarm_ros.cli.report_comparison_figures import (
    mean_error_figure,
)
from softarm_ros.cli.report_figures import (
    actuators_figure,
    angle_and_direction,
    configuration_figure,
    lap_starts,
)
from softarm_ros.cli.report_paths import reference_path
from softarm_ros.cli.report_plotting import connected, runs_of
from softarm_ros.cli.report_tables import ComparisonRow


def test_figures_import_no_pyplot_and_change_no_global_settings(tmp_path):
    def settings():
        return {k: v for k, v in matplotlib.rcParams.items() if k != 'backend'}

    with pytest.MonkeyPatch.context() as patch:
        before = settings()
        patch.setitem(sys.modules, 'matplotlib.pyplot', None)  # an import of it would fail
        configuration_figure(circle_record((0.001,)), tmp_path / 'figure.png')
        mean_error_figure([ComparisonRow('a', (circle_record(),), 0.01)], tmp_path / 'bars.png')
    assert settings() == before


def test_direction_is_unwrapped_and_blank_when_nearly_straight():
    phi = np.linspace(0.3, 4.0 * np.pi, 200)
    theta = np.where(np.arange(200) < 20, np.deg2rad(0.99), np.deg2rad(1.01))
    theta[150] = np.nan
    angle, direction = angle_and_direction(theta * np.cos(phi), theta * np.sin(phi))
    np.testing.assert_allclose(angle, theta)
    assert np.all(np.isnan(direction[:20]))
    assert np.isnan(direction[150])
    shown_rows = np.isfinite(direction)
    assert np.count_nonzero(shown_rows) == 179
    np.testing.assert_allclose(direction[shown_rows], phi[shown_rows], atol=1e-9)


def of_an_arm_with(configuration_names, effort_unit):
    record = circle_record((0.001,))
    names = dict(configuration_names=configuration_names, effort_unit=effort_unit)
    return replace(record, info=replace(record.info, **names))


@pytest.fixture
def saved(monkeypatch, tmp_path):
    """Figures, before they are written."""
    figures = []
    kept = report_figures.save
    monkeypatch.setattr(
        report_figures, 'save', lambda figure, file: figures.append(figure) or kept(figure, file)
    )
    return figures


def test_coordinates_that_are_no_bending_are_not_drawn_in_degrees(saved, tmp_path):
    mixed = ('near_bend_x', 'near_bend_y', 'near_elongation', 'far_tension')
    for names in (mixed, ('a_tension', 'b_tension', 'c_tension', 'd_tension')):
        record = of_an_arm_with(names, 'N')
        configuration_figure(record, tmp_path / 'figure.png')
        *bending, other = saved[-1].axes
        assert [ax.get_ylabel().split()[-1] for ax in bending] == ['[deg]', '[deg]'][
            : len(bending)
        ]
        assert len(bending) == (2 if names is mixed else 0)
        assert other.get_ylabel() == 'coordinates [SI unit]'
        drawn = [line.get_ydata() for line in other.lines]
        first = 2 if names is mixed else 0
        np.testing.assert_array_equal(np.transpose(drawn), record.samples.configuration[:, first:])


@pytest.mark.parametrize(('unit', 'shown', 'factor'), [('Pa', 'kPa', 1e-3), ('N m', 'N m', 1.0)])
def test_efforts_are_drawn_in_their_unit(saved, tmp_path, unit, shown, factor):
    record = of_an_arm_with(circle_record().info.configuration_names, unit)
    actuators_figure(record, tmp_path / 'figure.png')
    effort = saved[-1].axes[-1]
    assert effort.get_ylabel() == f'effort [{shown}]'
    drawn = np.transpose([line.get_ydata() for line in effort.lines])
    np.testing.assert_allclose(drawn, factor * record.samples.effort)


def test_measured_lines_cross_empty_rows_and_break_at_drop_outs():
    time = 0.01 * np.arange(100)
    values = np.sin(time)
    values[1::2] = np.nan
    values[40:61] = np.nan
    t, v = connected(time, values)
    assert np.count_nonzero(np.isnan(v)) == 1
    assert np.flatnonzero(np.isnan(v)).tolist() == [20]
    kept = np.isfinite(v)
    np.testing.assert_array_equal(v[kept], values[np.isfinite(values)])
    np.testing.assert_array_equal(t[kept], time[np.isfinite(values)])
    t, v = connected(time, np.full((100, 3), np.nan))
    assert t.shape == (0,)
    assert v.shape == (0, 3)


def test_runs_of_equal_values_and_lap_starts_are_found():
    assert runs_of(np.array(['a', 'a', 'b', 'a'])) == [(0, 1), (2, 2), (3, 3)]
    assert runs_of(np.array([])) == []
    starts = lap_starts(circle_record().samples)
    expected = [(0, APPROACH * PERIOD_S), (1, (APPROACH + LAP) * PERIOD_S)]
    assert [k for k, _ in starts] == [k for k, _ in expected]
    np.testing.assert_allclose([t for _, t in starts], [t for _, t in expected])


def test_reference_comes_from_the_samples_if_the_record_has_no_path():
    record = circle_record(path=np.zeros((0, 3)))
    np.testing.assert_array_equal(
        reference_path(record), record.samples.reference[APPROACH : APPROACH + 2 * LAP]
    )


def test_only_report_plotting_makes_figures():
    """So that size, fonts and colours are the same in reports, studies and documentation."""
    root = Path(__file__).parents[2]
    home = root / 'softarm_ros' / 'cli' / 'report_plotting.py'
    sources = [*(root / 'softarm_ros').rglob('*.py'), *(root / 'reproduction').rglob('*.py')]
    makes = re.compile(r'pyplot|rcParams|(?<![\w.])Figure\(')
    others = [p for p in sources if p != home and makes.search(p.read_text(encoding='utf-8'))]
    assert makes.search(home.read_text(encoding='utf-8'))
    assert others == []
