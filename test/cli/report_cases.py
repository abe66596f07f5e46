"""Run records with known errors, and readers of a report page, picture and terminal output."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
from matplotlib.image import imread
from rich.console import Console

from softarm_ros.runtime.events import Event
from softarm_ros.runtime.run_record import LoopTiming, RunInfo, RunRecord, SampleLog, Samples

ARM_LENGTH_M = 0.25
RADIUS_M = 0.1
PERIOD_S = 0.05
APPROACH, LAP = 40, 100  # rows
CABLES = tuple(f'{s}_{angle}' for s in ('proximal', 'distal') for angle in (0, 120, 240))
BENDS = tuple(f'{s}_bend_{a}' for s in ('proximal', 'distal') for a in 'xy')


def circle_record(lap_errors_m=(0.003, 0.001), seed=0, trajectory='circle', **changes):
    """Return a run with a tip error of exactly `lap_errors_m[k]` in lap k."""
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
    """Parses a page: table rows as text, referenced addresses, tags and their balance."""

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
    """Return the share of pixels with exactly this colour."""
    pixels = np.rint(255.0 * imread(png)[..., :3]).astype(int)
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return float(np.mean(np.all(pixels == wanted, axis=-1)))


def shown(table, width=80):
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return console.file.getvalue()


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


def assert_self_contained(file):
    """Check that a page needs no other file, and no network."""
    page = Page(file)
    assert page.references
    assert all(r.startswith('data:image/png;base64,') for r in page.references)
    without_images = re.sub(r'base64,[A-Za-z0-9+/=]+', '', page.text)
    assert not re.search(r'https?://|//\w|url\(|@import', without_images)
    assert not {'script', 'link', 'iframe', 'object'} & set(page.tags)
    assert page.open == []
