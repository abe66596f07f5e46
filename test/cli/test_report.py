"""Reports: pages, figures, tables, files and folders, from records with known errors."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread
from rich.console import Console

from softarm_ros.cli.cli_errors import is_user_error
from softarm_ros.cli.report import (
    ComparisonRow,
    FolderError,
    error_table,
    prepare_folder,
    run_table,
    write_comparison,
    write_report,
)
from softarm_ros.cli.report_comparison_figures import (
    by_trajectory,
    mean_error_figure,
)
from softarm_ros.cli.report_figures import (
    angle_and_direction,
    configuration_figure,
    error_figure,
    lap_starts,
)
from softarm_ros.cli.report_paths import path_figure, reference_path
from softarm_ros.cli.report_plotting import PALETTE, connected, runs_of
from softarm_ros.runtime.events import Event
from softarm_ros.runtime.run_record import LoopTiming, RunInfo, RunRecord, SampleLog, Samples

ARM_LENGTH_M = 0.25
RADIUS_M = 0.1
PERIOD_S = 0.05
APPROACH, LAP = 40, 100  # rows
CABLES = tuple(f'{s}_{angle}' for s in ('proximal', 'distal') for angle in (0, 120, 240))
BENDS = tuple(f'{s}_bend_{a}' for s in ('proximal', 'distal') for a in 'xy')


def circle_record(lap_errors_m=(0.003, 0.001), seed=0, trajectory='circle', **changes):
    """Return a run whose tip is exactly `lap_errors_m[k]` off the reference in lap k."""
    laps = len(lap_errors_m)
    n = APPROACH + laps * LAP + 1
    turn = np.concatenate([np.zeros(APPROACH), np.arange(laps * LAP + 1) / LAP])
    lap = np.minimum(turn.astype(int), laps - 1)
    angle = 2.0 * np.pi * turn
    reference = np.stack([RADIUS_M * np.cos(angle), RADIUS_M * np.sin(angle), 0 * angle + 0.2], 1)
    offset = np.array(lap_errors_m)[lap]
    offset[:APPROACH] = 0.02
    tip = reference + offset[:, None] * np.array([2.0, 1.0, 2.0]) / 3.0
    tip[5::7] = np.nan  # a sensor slower than the loop
    blend = np.minimum(np.arange(n) / APPROACH, 1.0)
    bend = blend[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    command = 0.01 * np.cos(angle[:, None] - np.deg2rad(60.0) * np.arange(6)) * blend[:, None]
    phase = np.array(['approach'] * APPROACH + ['track'] * (laps * LAP) + ['done'])
    info = RunInfo(
        rig='cable_arm',
        backend='sim',
        model='cable_statics',
        controller='resolved_rate',
        trajectory=trajectory,
        open_loop=False,
        seed=seed,
        rate=0.0,
        direct=True,
        arm_length_m=ARM_LENGTH_M,
        actuator_names=CABLES,
        actuator_unit='m',
        configuration_names=BENDS,
    )
    samples = Samples(
        PERIOD_S * np.arange(n),
        phase,
        lap,
        reference,
        tip,
        np.hstack([bend, 0.8 * bend]),
        command,
        command + 1e-4,
        np.abs(command) * 100.0,
        np.full_like(tip, np.nan),
    )
    record = RunRecord(
        info,
        samples,
        LoopTiming(100.0, n, 2, None, None, 0.0411, 0.1234),
        (Event(1.25, 'warning', 'tracker', 'slow <b>'), Event(2.0, 'info', 'tracker', 'done')),
        PERIOD_S * (n - 1),
        True,
        reference[APPROACH : APPROACH + LAP],
    )
    return replace(record, **changes)


class Page(HTMLParser):
    """Tables as lists of rows of text; every address the page refers to; balance of tags."""

    VOID = frozenset({'meta', 'img', 'br', 'link', 'input', 'hr'})

    def __init__(self, file):
        super().__init__()
        self.text = file.read_text(encoding='utf-8')
        self.rows, self.references, self.tags, self.images, self.open = [], [], [], [], []
        self._cell = None
        self.feed(self.text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        values = dict(attributes)
        self.references += [v for k, v in attributes if k in ('src', 'href', 'srcset', 'action')]
        if tag == 'img':
            self.images.append(values)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == 'tr':
            self.rows.append([])
        if tag in ('td', 'th'):
            self._cell = ''

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ('td', 'th'):
            self.rows[-1].append(self._cell)
            self._cell = None

    def handle_data(self, data):
        if self._cell is not None:
            self._cell += data

    def row(self, label):
        return next(r for r in self.rows if r and r[0] == label)


def cut(record, rows):
    fields = record.samples.__dataclass_fields__
    return replace(
        record, samples=Samples(**{f: getattr(record.samples, f)[rows] for f in fields})
    )


def share_of_colour(png, colour):
    """Return the share of pixels of exactly this colour."""
    pixels = np.rint(255.0 * imread(png)[..., :3]).astype(int)
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return float(np.mean(np.all(pixels == wanted, axis=-1)))


def shown(table, width=80):
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return console.file.getvalue()


@pytest.fixture(scope='module')
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp('report') / 'new' / 'folder'
    record = circle_record()
    return record, write_report(record, folder)


@pytest.fixture(scope='module')
def comparison(tmp_path_factory):
    folder = tmp_path_factory.mktemp('comparison')
    rows = [
        ComparisonRow('baseline <i>', tuple(circle_record((e,), k) for k, e in SEEDS), 0.0592),
        ComparisonRow('tracked', (circle_record(),), None),
    ]
    return rows, write_comparison('Three <ways>', rows, folder, notes=('a < b',))


SEEDS = ((0, 0.010), (1, 0.012), (2, 0.017))  # mean 13 mm, sample standard deviation 3.61 mm


# -- one run ----------------------------------------------------------------------------------


def test_error_table_of_the_page_holds_the_errors_that_were_put_in(report):
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


def test_page_says_what_was_run_and_its_timing(report):
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


def test_summary_file_equals_the_record(report):
    record, file = report
    assert json.loads((file.parent / 'summary.json').read_text()) == record.summary()


def test_samples_file_holds_every_row_with_units_and_gaps(report):
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


@pytest.mark.parametrize(
    ('name', 'colours'),
    [
        ('path_3d', PALETTE[1:2]),  # measured
        ('error', PALETTE[:2]),  # while tracking; mean and maximum
        ('configuration', PALETTE[:2]),  # two sections
        ('actuators', PALETTE[:6]),  # six cables
    ],
)
def test_figures_have_a_line_of_its_colour_for_every_series(report, name, colours):
    for colour in colours:
        assert share_of_colour(report[1].parent / f'{name}.png', colour) > 3e-4, colour


def test_lines_are_there_although_measurements_are_missing_between_rows(report, tmp_path):
    """With every second row empty a plain plot would show nothing."""
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


def test_page_is_self_contained(report, comparison):
    for _, file in (report, comparison):
        page = Page(file)
        assert page.references
        assert all(r.startswith('data:image/png;base64,') for r in page.references)
        without_images = re.sub(r'base64,[A-Za-z0-9+/=]+', '', page.text)
        assert not re.search(r'https?://|//\w|url\(|@import', without_images)
        assert not {'script', 'link', 'iframe', 'object'} & set(page.tags)
        assert page.open == []


def test_embedded_images_are_the_files(report):
    page = Page(report[1])
    names = ('path_3d', 'error', 'configuration', 'actuators')
    assert len(page.images) == len(names)
    for image, name in zip(page.images, names):
        data = (report[1].parent / f'{name}.png').read_bytes()
        assert base64.b64decode(image['src'].split(',', 1)[1]) == data
        height, width = imread(io.BytesIO(data)).shape[:2]
        assert (image['width'], image['height']) == (str(width), str(height))
        assert image['alt']


def test_page_is_made_for_phone_and_paper(report):
    text = report[1].read_text(encoding='utf-8')
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
    assert '@media print' in text
    assert '<meta charset="utf-8">' in text


def test_neither_pyplot_nor_global_settings_are_touched(tmp_path):
    def settings():
        return {k: v for k, v in matplotlib.rcParams.items() if k != 'backend'}

    with pytest.MonkeyPatch.context() as patch:
        before = settings()
        patch.setitem(sys.modules, 'matplotlib.pyplot', None)  # an import of it would fail
        configuration_figure(circle_record((0.001,)), tmp_path / 'figure.png')
        mean_error_figure([ComparisonRow('a', (circle_record(),), 0.01)], tmp_path / 'bars.png')
    assert settings() == before


# -- odd records ------------------------------------------------------------------------------


def with_samples(record, **changes):
    return replace(record, samples=replace(record.samples, **changes))


def odd_records():
    record = circle_record()
    n = len(record.samples.time_s)
    nothing = {
        name: np.full_like(getattr(record.samples, name), np.nan)
        for name in ('reference', 'tip', 'configuration', 'command', 'position', 'effort')
    }
    return {
        'no rows': replace(
            record, samples=SampleLog(4, 6).finish(), path=np.zeros((0, 3)), completed=False
        ),
        'approach only': replace(cut(record, slice(0, APPROACH)), completed=False),
        'never measured': with_samples(record, tip=np.full((n, 3), np.nan)),
        'nothing finite': with_samples(replace(record, path=np.zeros((0, 3))), **nothing),
        'one row': cut(record, slice(APPROACH, APPROACH + 1)),
        'held, infinite tip, no duration': with_samples(
            replace(record, duration_s=float('nan')),
            tip=np.where(np.arange(n)[:, None] % 50 == 0, np.inf, record.samples.tip),
            phase=np.where(np.arange(n) // 20 == 4, 'held', record.samples.phase),
        ),
    }


@pytest.mark.parametrize('name', list(odd_records()))
def test_odd_records_still_give_a_report_that_says_so(name, tmp_path):
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


def test_comparison_of_runs_without_tracking_says_so(tmp_path):
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


def test_names_are_shown_as_they_are_everywhere(tmp_path):
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


# -- several runs -----------------------------------------------------------------------------


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


def test_comparison_summary_holds_every_run(comparison):
    rows, file = comparison
    found = json.loads((file.parent / 'summary.json').read_text())['rows']
    assert [r['label'] for r in found] == ['baseline <i>', 'tracked']
    assert found[0]['runs'] == [r.summary() for r in rows[0].records]
    assert found[0]['tracking_error_m']['mean'] == pytest.approx(0.013)
    assert found[0]['tracking_error_m']['spread'] == pytest.approx(np.sqrt(13e-6))
    assert found[1]['tracking_error_m']['spread'] is None


def test_comparison_figures_have_a_line_of_its_colour_for_every_run(comparison):
    folder = comparison[1].parent
    for name, runs in (('mean_error', 1), ('paths', 2), ('errors', 2)):
        for colour in PALETTE[:runs]:
            assert share_of_colour(folder / f'{name}.png', colour) > 1e-4


def test_different_trajectories_are_not_drawn_over_one_another(tmp_path):
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


def test_extra_figures_must_be_images(tmp_path):
    file = tmp_path / 'not.png'
    file.write_text('text')
    rows = [ComparisonRow('a', (circle_record((0.001,)),), None)]
    with pytest.raises(ValueError, match=r'not\.png: not a PNG image'):
        write_comparison('x', rows, tmp_path / 'out', extra_figures=[('caption', file)])
    with pytest.raises(ValueError, match='without rows'):
        write_comparison('x', [], tmp_path / 'out')


def test_warnings_of_all_seeds_are_told_once(comparison):
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


def test_single_runs_claim_no_spread():
    text = shown(error_table([ComparisonRow('a', (circle_record((0.004,)),), 0.0376)]))
    assert re.search(r'a +4\.00 +4\.00 +1\.60 +37\.6', text)
    assert '±' not in text
    assert 'lap 2' not in text


# -- figure helpers ---------------------------------------------------------------------------


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


def test_stretches_and_laps_are_found():
    assert runs_of(np.array(['a', 'a', 'b', 'a'])) == [(0, 1), (2, 2), (3, 3)]
    assert runs_of(np.array([])) == []
    starts = lap_starts(circle_record().samples)
    expected = [(0, APPROACH * PERIOD_S), (1, (APPROACH + LAP) * PERIOD_S)]
    assert [k for k, _ in starts] == [k for k, _ in expected]
    np.testing.assert_allclose([t for _, t in starts], [t for _, t in expected])


def test_reference_comes_from_the_samples_where_no_path_was_kept():
    record = circle_record(path=np.zeros((0, 3)))
    np.testing.assert_array_equal(
        reference_path(record), record.samples.reference[APPROACH : APPROACH + 2 * LAP]
    )


# -- folders ----------------------------------------------------------------------------------


def test_folder_is_created_with_its_parents_and_left_empty(tmp_path):
    folder = tmp_path / 'a' / 'b'
    prepare_folder(folder)
    assert list(folder.iterdir()) == []
    prepare_folder(folder)


def bad_folders(tmp_path):
    (tmp_path / 'file').write_text('mine')
    (tmp_path / 'page' / 'index.html').mkdir(parents=True)
    return {
        'file': (tmp_path / 'file', 'a file is in the way'),
        'below a file': (tmp_path / 'file' / 'sub', 'a file is in the way'),
        'page is a folder': (tmp_path / 'page', 'index.html in it is a folder'),
        'too long': (tmp_path / ('x' * 300), 'cannot be created'),
        'null byte': (tmp_path / 'a\0b', 'cannot be created'),
    }


@pytest.mark.parametrize(
    'name', ['file', 'below a file', 'page is a folder', 'too long', 'null byte']
)
def test_bad_folders_are_refused_in_one_line_that_names_them(name, tmp_path):
    folder, reason = bad_folders(tmp_path)[name]
    before = sorted(tmp_path.rglob('*'))
    with pytest.raises(FolderError) as caught:
        prepare_folder(folder)
    assert str(folder) in str(caught.value)
    assert reason in str(caught.value)
    assert '\n' not in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert is_user_error(caught.value)  # the command line shows the message, not a traceback
    assert sorted(tmp_path.rglob('*')) == before
    with pytest.raises(FolderError):
        write_report(circle_record((0.001,)), folder)


@pytest.mark.skipif(not Path('/proc/self').is_dir(), reason='needs a folder nobody may write to')
def test_existing_folder_that_cannot_be_written_is_refused():
    with pytest.raises(FolderError, match='report folder /proc/self: cannot be written'):
        prepare_folder(Path('/proc/self'))


@pytest.mark.skipif(
    not hasattr(os, 'geteuid') or os.geteuid() == 0, reason='the superuser may write anywhere'
)
def test_read_only_folder_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(FolderError, match='cannot be'):
            prepare_folder(tmp_path / 'sub')
        with pytest.raises(FolderError, match='cannot be written'):
            prepare_folder(tmp_path)
    finally:
        tmp_path.chmod(0o700)


def test_all_figures_come_from_one_module():
    """So that size, fonts and colours are the same in reports, studies and documentation."""
    root = Path(__file__).parents[2]
    home = root / 'softarm_ros' / 'cli' / 'report_plotting.py'
    sources = [*(root / 'softarm_ros').rglob('*.py'), *(root / 'reproduction').rglob('*.py')]
    makes = re.compile(r'pyplot|rcParams|(?<![\w.])Figure\(')
    others = [p for p in sources if p != home and makes.search(p.read_text(encoding='utf-8'))]
    assert makes.search(home.read_text(encoding='utf-8'))
    assert others == []
