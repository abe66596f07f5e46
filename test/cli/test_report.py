"""Reports of one run: page, files and figures, from records with known errors."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread
from report_cases import (
    ARM_LENGTH_M,
    Page,
    assert_self_contained,
    circle_record,
    odd_records,
    share_of_colour,
    shown,
)

from softarm_ros.cli.report import write_report
from softarm_ros.cli.report_comparison import write_comparison
from softarm_ros.cli.report_figures import (
    error_figure,
)
from softarm_ros.cli.report_paths import path_figure
from softarm_ros.cli.report_plotting import PALETTE
from softarm_ros.cli.report_tables import ComparisonRow, error_table, run_table
from softarm_ros.runtime.events import Event


@pytest.fixture(scope='module')
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp('report') / 'new' / 'folder'
    record = circle_record()
    return record, write_report(record, folder)


# -- one run ----------------------------------------------------------------------------------


def test_the_error_table_of_the_page_shows_the_known_errors(report):
    record, file = report
    page = Page(file)
    assert file.name == 'index.html'
    counts = [e.samples for e in record.lap_errors()]
    mean = (3.0 * counts[0] + 1.0 * counts[1]) / sum(counts)
    rms = np.sqrt((9.0 * counts[0] + 1.0 * counts[1]) / sum(counts))
    percent = 100.0 * mean / (1e3 * ARM_LENGTH_M)
    assert page.row('all laps')[1:] == [
        f'{mean:.2f}',
        f'{rms:.2f}',
        '3.00',
        f'{percent:.2f}',
        '1.20',
    ]
    assert page.row('after the first lap')[1:] == ['1.00', '1.00', '1.00', '0.40', '0.40']
    assert page.row('lap 1')[1:] == ['3.00', '3.00', '3.00', '1.20', '1.20']
    assert page.row('lap 2')[1:] == ['1.00', '1.00', '1.00', '0.40', '0.40']


def test_page_shows_run_information_timing_and_events(report):
    record, file = report
    page = Page(file)
    assert page.row('rig')[1] == 'cable_arm'
    assert page.row('model of the controller')[1] == 'cable_statics'
    assert page.row('control')[1] == 'closed loop'
    assert page.row('arm length')[1] == '250.00 mm'
    assert page.row('completed')[1] == 'yes'
    assert page.row('missed cycles')[1] == f'2 of {record.timing.cycles} (0.83 %)'
    assert page.row('pose to command, p50 / p99')[1] == 'not measured'
    assert page.row('computation of a cycle, p50 / p99')[1] == '0.041 / 0.123 ms'
    assert page.row('1.25') == ['1.25', 'warning', 'tracker', 'slow <b>']
    assert 'class="warning"' not in page.text


def test_summary_file_equals_the_summary_of_the_record(report):
    record, file = report
    assert json.loads((file.parent / 'summary.json').read_text()) == record.summary()


def test_samples_file_has_every_row_with_units_and_gaps(report):
    record, file = report
    with (file.parent / 'data.csv').open(newline='') as stream:
        rows = list(csv.DictReader(stream))
    s = record.samples
    assert len(rows) == len(s.time_s)
    assert [r['phase'] for r in rows] == s.phase.tolist()
    assert [int(r['lap']) for r in rows] == s.lap.tolist()
    tip = np.array([float(r['tip_y_m'] or 'nan') for r in rows])
    np.testing.assert_allclose(tip, s.tip[:, 1], rtol=1e-8)
    assert rows[5]['tip_y_m'] == rows[5]['error_m'] == ''
    for column, values in (
        ('error_m', s.error),
        ('distal_bend_y_rad', s.configuration[:, 3]),
        ('proximal_120_command_m', s.command[:, 1]),
        ('distal_0_position_m', s.position[:, 3]),
        ('distal_240_effort_N', s.effort[:, 5]),
    ):
        found = np.array([float(r[column] or 'nan') for r in rows])
        np.testing.assert_allclose(found, values, rtol=1e-8, atol=1e-12)


def test_columns_of_other_arms_state_their_units(tmp_path):
    record = circle_record()
    names = ('near_bend_x', 'near_bend_y', 'near_elongation', 'far_tension')
    info = replace(record.info, configuration_names=names, effort_unit='N m')
    page = write_report(replace(record, info=info), tmp_path)
    columns = (tmp_path / 'data.csv').read_text(encoding='utf-8').splitlines()[0].split(',')
    assert {'near_bend_x_rad', 'configuration_near_elongation', 'configuration_far_tension'} < {
        *columns
    }
    assert 'distal_240_effort_N_m' in columns
    assert 'all actuators [N m]' in page.read_text(encoding='utf-8')


@pytest.mark.parametrize(
    ('name', 'colours'),
    [
        ('path_3d', PALETTE[1:2]),  # measured
        ('error', PALETTE[:2]),  # while tracking; mean and maximum
        ('configuration', PALETTE[:2]),  # two sections
        ('actuators', PALETTE[:6]),  # six cables
    ],
)
def test_figures_have_a_line_in_the_colour_of_every_series(report, name, colours):
    for colour in colours:
        assert share_of_colour(report[1].parent / f'{name}.png', colour) > 3e-4, colour


def test_lines_are_drawn_across_rows_without_measurements(report, tmp_path):
    """Every second row is empty, so a plain plot would show nothing."""
    record, file = report
    tip = record.samples.tip.copy()
    tip[::2] = np.nan
    sparse = replace(record, samples=replace(record.samples, tip=tip))
    for name, draw, colour in (
        ('path_3d.png', path_figure, PALETTE[1]),
        ('error.png', error_figure, PALETTE[0]),
    ):
        full = share_of_colour(file.parent / name, colour)
        assert share_of_colour(draw(sparse, tmp_path / name), colour) > 0.8 * full > 0.0


def test_page_is_self_contained(report):
    assert_self_contained(report[1])


def test_embedded_images_equal_the_image_files(report):
    page = Page(report[1])
    names = ('path_3d', 'error', 'configuration', 'actuators')
    assert len(page.images) == len(names)
    for image, name in zip(page.images, names):
        data = (report[1].parent / f'{name}.png').read_bytes()
        assert base64.b64decode(image['src'].split(',', 1)[1]) == data
        height, width = imread(io.BytesIO(data)).shape[:2]
        assert (image['width'], image['height']) == (str(width), str(height))
        assert image['alt']


def test_page_has_viewport_print_style_and_charset(report):
    text = report[1].read_text(encoding='utf-8')
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
    assert '@media print' in text
    assert '<meta charset="utf-8">' in text


@pytest.mark.parametrize('name', list(odd_records()))
def test_reports_of_odd_records_state_missing_tracking_and_early_stops(name, tmp_path):
    record = odd_records()[name]
    page = Page(write_report(record, tmp_path))
    untracked = not np.any(record.samples.tracking)
    assert ('No tracking samples' in page.text) == untracked
    assert ('Stopped early' in page.text) == (not record.completed)
    assert len(page.images) == 4
    assert 'nan' not in re.sub(r'base64,[A-Za-z0-9+/=]+', '', page.text)
    json.loads((tmp_path / 'summary.json').read_text(), parse_constant=pytest.fail)
    with (tmp_path / 'data.csv').open() as stream:
        assert sum(1 for _ in stream) == 1 + len(record.samples.time_s)
    terminal = shown(run_table(record))
    assert ('no tracking samples' in terminal) == untracked
    assert ('STOPPED EARLY' in terminal) == (not record.completed)
    if untracked:
        assert page.row('all laps')[1:] == ['–'] * 5


@pytest.mark.parametrize('name', ['lap', 'step'])
def test_more_than_ten_laps_or_steps_are_only_in_the_report(tmp_path, name):
    def of(count):
        record = circle_record(0.001 * np.arange(1, count + 1))
        task = 'sort' if name == 'step' else None
        return replace(record, info=replace(record.info, task=task))

    assert f'│ {name} 10 ' in shown(run_table(of(10)))
    terminal = shown(run_table(of(11)))
    assert f'│ {name} ' not in terminal
    assert f'all {name}s' in terminal
    assert Page(write_report(of(11), tmp_path)).row(f'{name} 11')


def test_names_with_markup_are_shown_literally_everywhere(tmp_path):
    """Markup of HTML, of matplotlib's formulas and of the terminal is text in names."""
    nasty = '<script>alert("1")</script> $x_{ & [red]'
    record = circle_record()
    info = replace(
        record.info,
        rig=nasty,
        trajectory='../a $b\\c.yaml',
        actuator_names=('_a', '$x$', '日本', '<i>', 'a,"b"', r'$\frac$'),
        configuration_names=('q1', '_q2', '$q3', 'q4$'),
    )
    events = (Event(0.5, 'error', nasty, nasty),)
    record = replace(record, info=info, events=events)
    one = Page(write_report(record, tmp_path / 'one'))
    rows = [ComparisonRow(nasty, (record,), 0.01)]
    two = Page(write_comparison(nasty, rows, tmp_path / 'two', (nasty,), [(nasty, PNG(tmp_path))]))
    assert one.row('rig')[1] == two.row(nasty)[0] == nasty
    assert one.row('0.50') == ['0.50', 'error', nasty, nasty]
    for page in (one, two):
        assert 'script' not in page.tags
        assert page.open == []
    assert two.images[-1]['alt'] == nasty
    assert '[red]' in shown(error_table(rows), 200)
    assert '[red]' in shown(run_table(record), 200)
    with (tmp_path / 'one' / 'data.csv').open(newline='', encoding='utf-8') as stream:
        assert 'a,"b"_command_m' in next(csv.reader(stream))


def PNG(folder):
    file = folder / 'extra.png'
    file.write_bytes(
        base64.b64decode(
            'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJ'
            'RU5ErkJggg=='
        )
    )
    return file
