"""Reports of several runs side by side, and their tables in the terminal."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from report_cases import (
    Page,
    assert_self_contained,
    circle_record,
    odd_records,
    share_of_colour,
    shown,
)

from softarm_ros.cli.report_comparison import write_comparison
from softarm_ros.cli.report_comparison_figures import (
    by_trajectory,
)
from softarm_ros.cli.report_plotting import PALETTE
from softarm_ros.cli.report_tables import ComparisonRow, error_table, run_table


@pytest.fixture(scope='module')
def comparison(tmp_path_factory):
    folder = tmp_path_factory.mktemp('comparison')
    rows = [
        ComparisonRow('baseline <i>', tuple(circle_record((e,), k) for k, e in SEEDS), 0.0592),
        ComparisonRow('tracked', (circle_record(),), None),
    ]
    return rows, write_comparison('Three <ways>', rows, folder, notes=('a < b',))


SEEDS = ((0, 0.010), (1, 0.012), (2, 0.017))  # mean 13 mm, sample standard deviation 3.61 mm


def test_comparison_states_which_runs_have_no_tracking(tmp_path):
    odd = odd_records()
    rows = [
        ComparisonRow('gone', (odd['no rows'],), 0.01),
        ComparisonRow('half', (odd['approach only'], circle_record()), None),
        ComparisonRow('none', (), None),
    ]
    page = Page(write_comparison('odd', rows, tmp_path))
    assert page.row('gone')[1:3] == ['no tracking samples', '–']
    assert page.row('gone')[-1] == '1 run, 1 stopped early, 1 without tracking'
    assert page.row('half')[2] == '3.00'
    assert page.row('none')[-1] == '0 runs'
    text = shown(error_table(rows))
    assert 'gone: 1 run, 1 stopped early, 1 without tracking' in text


def test_page_is_self_contained(comparison):
    assert_self_contained(comparison[1])


def test_comparison_table_shows_mean_spread_and_the_papers_value(comparison):
    page = Page(comparison[1])
    assert page.row('baseline <i>') == [
        'baseline <i>',
        '13.00 ± 3.61',
        '17.00',
        '–',
        '–',
        '5.20',
        '59.2 (5.92 cm)',
        '3 runs',
    ]
    tracked = page.row('tracked')
    assert '±' not in tracked[1]
    assert tracked[2:5] == ['3.00', '1.00', '1.00']
    assert tracked[6:] == ['–', '1 run']
    assert 'a &lt; b' in page.text


def test_comparison_summary_has_every_run(comparison):
    rows, file = comparison
    found = json.loads((file.parent / 'summary.json').read_text())['rows']
    assert [r['label'] for r in found] == ['baseline <i>', 'tracked']
    assert found[0]['runs'] == [r.summary() for r in rows[0].records]
    assert found[0]['tracking_error_m']['mean'] == pytest.approx(0.013)
    assert found[0]['tracking_error_m']['spread'] == pytest.approx(np.sqrt(13e-6))
    assert found[1]['tracking_error_m']['spread'] is None


def test_comparison_figures_have_a_line_in_the_colour_of_every_run(comparison):
    folder = comparison[1].parent
    for name, runs in (('mean_error', 1), ('paths', 2), ('errors', 2)):
        for colour in PALETTE[:runs]:
            assert share_of_colour(folder / f'{name}.png', colour) > 1e-4


def test_different_trajectories_have_separate_figures(tmp_path):
    line = circle_record((0.001,), trajectory='line')
    rows = [
        ComparisonRow('a', (circle_record((0.001,)),), None),
        ComparisonRow('b', (line,), None),
        ComparisonRow('c', (circle_record((0.002,)),), None),
    ]
    groups = [(title, [label for label, _ in runs]) for title, runs in by_trajectory(rows)]
    assert groups == [('circle', ['a', 'c']), ('line', ['b'])]
    page = Page(write_comparison('two paths', rows, tmp_path))
    assert len(page.images) == 5
    assert {p.name for p in tmp_path.glob('*.png')} == {
        'mean_error.png',
        'paths_1.png',
        'errors_1.png',
        'paths_2.png',
        'errors_2.png',
    }


def test_extra_figures_that_are_not_png_and_empty_comparisons_are_refused(tmp_path):
    file = tmp_path / 'not.png'
    file.write_text('text')
    rows = [ComparisonRow('a', (circle_record((0.001,)),), None)]
    with pytest.raises(ValueError, match=r'not\.png: not a PNG image'):
        write_comparison('x', rows, tmp_path / 'out', extra_figures=[('caption', file)])
    with pytest.raises(ValueError, match='without rows'):
        write_comparison('x', [], tmp_path / 'out')


def test_a_warning_of_several_seeds_is_listed_once(comparison):
    page = Page(comparison[1])
    found = [r for r in page.rows if 'slow <b>' in r]
    assert found == [
        ['baseline <i>', 'warning', 'slow <b>', '0, 1, 2'],
        ['tracked', 'warning', 'slow <b>', '0'],
    ]


# -- the terminal -----------------------------------------------------------------------------


def test_tables_fit_a_terminal_of_80_columns(comparison):
    rows, _ = comparison
    text = shown(error_table(rows))
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert '13.00 ± 3.61' in text
    assert '59.2' in text
    assert 'standard deviation over seeds' in text
    run = shown(run_table(circle_record()))
    assert re.search(r'after the first lap\W+1\.00\W+1\.00\W+1\.00\W+0\.40', run)
    assert '0.041 ms' in run
    assert 'missed cycles 2 of 241 (0.83 %)' in run


def test_the_table_of_a_single_run_shows_no_spread():
    text = shown(error_table([ComparisonRow('a', (circle_record((0.004,)),), 0.0376)]))
    assert re.search(r'a +4\.00 +4\.00 +1\.60 +37\.6', text)
    assert '±' not in text
    assert 'lap 2' not in text
