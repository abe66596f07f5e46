"""Runs one identification and reports its result."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.baselines import baselines
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.identification.common import all_parameters, spelled_out, usual_groups
from softarm_ros.cli.identification.drives import describe as describe_drives
from softarm_ros.cli.identification.fit import Fit, chosen, untold
from softarm_ros.cli.identification.identified import identified
from softarm_ros.cli.identification.intervals import intervals
from softarm_ros.cli.identification.learn import Learned, learn_best, require_learnable
from softarm_ros.cli.identification.recordings import Recorded, read_recordings
from softarm_ros.cli.identification.written import files_of, write
from softarm_ros.cli.measured_run import MeasuredRun, commands_followed
from softarm_ros.cli.prediction import Prediction, corrected_by, ignored_load, predict
from softarm_ros.cli.read_run import file_of
from softarm_ros.cli.score import Errors, Score, distances, score
from softarm_ros.cli.work_bar import Show, show_nothing
from softarm_ros.models.identifiable import Parameter
from softarm_ros.rigs.field_values import values_of
from softarm_ros.rigs.schema import Rig
from softarm_ros.whole_file import require_writable

MOST_ROWS = 600
MOST_PREDICTED = 20000
_WORSE = 1.01  # of other errors, below which errors are no larger than they, but for noise


@dataclass(frozen=True)
class Asked:
    """Options of `softarm identify`."""

    data: tuple[Path, ...]
    groups: tuple[str, ...] = ()
    hold_out: str = 'blocks'
    rows: str | None = None
    residual: tuple[tuple[str, ...], ...] = ()  # choices of features
    most_rows: int = MOST_ROWS
    output: Path | None = None
    prior_factor: float = 1.0
    group_factors: Mapping[str, float] = field(default_factory=dict)
    stood_s: float = 0.0
    most_predicted: int = MOST_PREDICTED

    def wider(self, parameters: Sequence[Parameter]) -> list[Parameter]:
        """Return parameters, their priors widened by the factor of the group or `prior_factor`."""
        return [p.wider(self.group_factors.get(p.group, self.prior_factor)) for p in parameters]


def run(rig: Rig, asked: Asked, show: Show = show_nothing) -> Iterator[str]:
    """
    Identify a rig from recordings; yield the lines of the report, and write the new rig file.

    `show` reports each computation between these lines, with its progress.

    Raises
    ------
    UsageError
        If options contradict each other, data cannot be read, or the new rig file is invalid.

    """
    rig = spelled_out(rig)
    if asked.output is not None:
        require_writable(asked.output)
        if asked.output.exists() and not asked.output.is_file():  # it would replace a device
            raise UsageError(f'--output {asked.output}: expected the name of a file')
    files_read = [file_of(path).resolve() for path in asked.data]
    for path in files_read:
        times = sum(path == other or path in other.parents for other in files_read)
        if times > 1:  # a bag by its folder, by its file, or by both
            raise UsageError(
                f'{path.name} is given {times} times; expected each recording once: its rows '
                'would count twice, or be predicted from themselves'
            )
    for features in asked.residual:  # identification takes minutes: fail before it
        require_learnable(features)
    if (
        asked.residual
        and asked.output is not None
        and any(re.match(r'model\b', setting) for setting in rig.settings)
    ):
        raise UsageError(
            f'--residual corrects the model of the rig file, which --output keeps; expected '
            f'`model: {rig.default_model}` in the file instead of --model or --set'
        )
    show('reading recordings', None)
    recorded = read_recordings(rig, asked.data, asked.hold_out, asked.rows, stood_s=asked.stood_s)
    files = files_of([r.whole.source for r in recorded if len(r.train)])
    few, notes = _thinned(recorded, asked)
    yield (
        f'{rig.name}: {sum(len(r.train) for r in recorded)} rows of {files} identify, '
        f'{sum(len(r.test) for r in few)} are predicted (--hold-out {asked.hold_out})'
    )
    yield from notes
    for one in recorded:
        yield from (f'{one.whole.source}: {note}' for note in one.whole.notes)
    show('identifying', None)
    groups = asked.groups or usual_groups(rig)
    poses_tell = groups != ('none',)
    parameters = asked.wider(chosen(all_parameters(rig), groups)) if poses_tell else None
    after = identified(rig, recorded, parameters, asked.most_rows)
    if after.drives:
        yield from describe_drives(rig, after.drives)
    if after.found is not None:
        total = sum(len(r.train) for r in recorded)
        if after.found.rows < total:
            yield f'{after.found.rows} of the {total} rows are used in the search (--most-rows)'
        if after.found.refused:
            yield (
                f'warning: the model refuses {after.found.refused} of the {after.found.rows} rows '
                'of the search; they carry no information'
            )
        yield ''
        yield from describe(after.found)
    learned = None
    if asked.residual:
        show('learning what is left', None)
        learned = learn_best(
            after.rig, few, asked.residual, files,
            lambda rows: identified(rig, rows, parameters, asked.most_rows).rig,
        )  # fmt: skip
        yield ''
        yield (
            f'learned from {", ".join(learned.file.features)}: on rows it did not see, '
            f'{100 * learned.left:.0f} % of the error is left'
        )
        if not learned.helps:
            yield 'warning: the residual does not help and is left out'
            learned = None
    yield ''
    yield from table(rig, after.rig, learned, few, show)
    if asked.output is not None:
        note = f'[I] softarm identify, {asked.hold_out} held out: {files}'
        residual = None if learned is None else learned.file
        written = write(rig, asked.output, after.values, residual, note)
        if rig.residual is not None and learned is None:
            yield 'warning: the residual of the rig was learned with the previous values'
        yield f'written: {", ".join(str(path) for path in written)}'


def _thinned(recorded: Sequence[Recorded], asked: Asked) -> tuple[list[Recorded], list[str]]:
    """Return recordings with few enough rows to predict and to learn from, and notes about it."""
    most = asked.most_predicted
    tests, trains = (
        sum(len(rows) for rows in of) for of in zip(*((r.test, r.train) for r in recorded))
    )
    every, of_train = (max(1, -(-rows // most)) for rows in (tests, trains))
    few = [replace(r, train=r.train[::of_train], test=r.test[::every]) for r in recorded]
    notes = []
    if every > 1:
        notes.append(f'one in {every} of the {tests} rows held out is predicted')
    if of_train > 1 and (asked.residual or not tests):
        what = 'predicted' if not tests else 'learned from'
        notes.append(f'one in {of_train} of the {trains} rows that identify is {what}')
    return few, [f'{note} (--most-predicted {most})' for note in notes]


def describe(found: Fit) -> Iterator[str]:
    """Yield parameters with their 95 % intervals, and combinations the data do not determine."""
    ends = intervals(found)
    values, blocks = found.values, len(np.unique(found.block))
    yield f'{"parameter":<34}{"was":>12}{"found":>12}   95 % interval, by draws of {blocks} blocks'
    for k, parameter in enumerate(found.parameters):
        was, now = parameter.number(found.known), parameter.number(values)
        if parameter.change.startswith('turn'):
            now = parameter.spread * found.x[k]
        low, high = parameter.interval(now, *(ends[k] - found.x[k]))
        ends_text = f'{low:.5g} to {high:.5g} {parameter.unit}'
        yield f'{parameter.name:<34}{was:12.5g}{now:12.5g}   {ends_text}'
    combinations = untold(found)
    if combinations:
        yield ''
    for one in combinations:
        first, *others = one.shares
        text = first[0]
        for name, share in others:
            text += f' {"with" if share > 0.0 else "against"} {name} ({abs(share / first[1]):.1f})'
        yield f'warning: the data cannot tell {text}: {100 * one.left:.0f} % of the prior is left'


def table(
    rig: Rig,
    identified: Rig,
    learned: Learned | None,
    recorded: Sequence[Recorded],
    show: Show = show_nothing,
) -> Iterator[str]:
    """Yield errors on the rows `test` (or `train`, if no file has any), beside baselines."""
    held = any(len(one.test) for one in recorded)
    head = f'{"":<48}{"RMS":>9}{"95 % interval":>20}'
    yield head + ('' if held else '   (rows identified from)')
    none: list[str] = []
    worse: dict[str, list[str]] = {'mean pose': [], 'as it was': []}
    for one in recorded:
        rows = one.test if held else one.train
        if not len(rows):
            continue
        scores = _scores(rig, identified, learned, one, rows, show)
        for name, entry, ends in scores:
            for i, (errors, (low, high)) in enumerate(zip(entry.errors, ends)):
                known = f'{low:8.2f} to {high:.2f} {errors.unit}'
                yield (
                    f'{one.whole.source[:22] if name == "mean pose" and i == 0 else "":<23}'
                    f'{name if i == 0 else "":<23}{errors.what:<12}{errors.rms:8.2f}'
                    f'   {known if np.isfinite(low) else "    none"}'
                    + (f'  ({errors.rows} of {len(rows)} rows)' if errors.rows < len(rows) else '')
                )
            yield from (f'{"":<23}{note}' for note in entry.notes)
        by = {name: entry.errors for name, entry, _ in scores}
        last = list(by)[-1]
        if all(np.isnan(errors.rms) for errors in by[last]):  # every row is refused
            none.append(one.whole.source)
            continue
        for name, sources in worse.items():
            if larger(by[last], by[name]):
                sources.append(one.whole.source)
    if none:
        yield (
            f'warning: no row of {", ".join(none)} is predicted: the identified model refuses '
            'them all'
        )
    if any(worse.values()):
        told = [f'worse than {name}: {", ".join(by)}' for name, by in worse.items() if by]
        commands = len(np.unique(np.vstack([r.whole.asked[r.train] for r in recorded]), axis=0))
        yield (
            f'warning: predicted {"; ".join(told)}: {commands} different commands are too few '
            'for these parameters, or the arm has changed'
        )


def larger(errors: Sequence[Errors], others: Sequence[Errors]) -> bool:
    """
    Return whether errors exceed others by more than noise.

    Compared are the sums of the RMS errors in the first unit: of positions, if there are any.
    """
    own, other = (
        sum(one.rms for one in each if one.unit == errors[0].unit) for each in (errors, others)
    )
    return not own <= _WORSE * other  # a sum that is NaN counts as larger


def errors_of(
    rig: Rig, identified: Rig, learned: Learned | None, one: Recorded, rows: NDArray[np.int64]
) -> Iterator[tuple[str, Errors, float, float]]:
    """Yield each predictor's name, errors and 95 % interval of their RMS, on given rows."""
    for name, entry, ends in _scores(rig, identified, learned, one, rows):
        for errors, (low, high) in zip(entry.errors, ends):
            yield name, errors, low, high


def _scores(
    rig: Rig,
    identified: Rig,
    learned: Learned | None,
    one: Recorded,
    rows: NDArray[np.int64],
    show: Show = show_nothing,
) -> list[tuple[str, Score, list[tuple[float, float]]]]:
    was, now = one.seen_by(rig, rows), one.seen_by(identified, rows)
    before, after = was.as_it_was(rig), now.as_it_was(identified)

    def predicted(rig_: Rig, run_: MeasuredRun, who: str) -> Prediction:
        looked_on = partial(show, f'predicting {one.whole.source} {who}')
        found = predict(rig_, rig_.physics(), run_, strict=False, show=looked_on)
        return replace(found, notes=(*found.notes, *ignored_load(rig_, None, run_, found)))

    predictions = [
        ('mean pose', baselines(rig, was)[1], was),
        ('as it was', predicted(before, was, 'as it was'), was),
        ('identified', predicted(after, now, 'identified'), now),
    ]
    if learned is not None:
        residual = learned.file.residual()
        commands, time, of_run = commands_followed(identified, one.whole)
        features = residual.remembered(commands, time)[of_run[rows]]
        prediction = corrected_by(identified, residual, features, predictions[-1][1], now)
        predictions.append(('identified + learned', prediction, now))
    blocks = one.blocks(rows)
    return [(n, score(p, run_), _spread(p, run_, blocks)) for n, p, run_ in predictions]


def _spread(
    prediction: Prediction, run_: MeasuredRun, blocks: NDArray[np.int64], draws: int = 200
) -> list[tuple[float, float]]:
    """Return 95 % intervals of the RMS errors, by resampling blocks; NaN for a single block."""
    rng = np.random.default_rng(0)
    names, index = np.unique(blocks, return_inverse=True)
    chosen_blocks = rng.integers(0, len(names), (draws, len(names)))
    out = []
    for _, _, values in distances(prediction, run_):
        finite = np.isfinite(values)
        sums = np.bincount(index[finite], values[finite] ** 2, len(names))
        counts = np.bincount(index[finite], minlength=len(names))
        total = counts[chosen_blocks].sum(axis=1)
        if np.count_nonzero(counts) < 2:
            out.append((math.nan, math.nan))
            continue
        drawn = total > 0  # a model may refuse every row of the blocks drawn
        rms = np.sqrt(sums[chosen_blocks].sum(axis=1)[drawn] / total[drawn])
        low, high = np.percentile(rms, [2.5, 97.5])
        out.append((float(low), float(high)))
    return out


def listed(rig: Rig) -> Iterator[str]:
    """Yield a table of all parameters of a rig: group, name, value, prior."""
    rig = spelled_out(rig)
    usual = usual_groups(rig)
    yield f'{"group":<20}{"parameter":<38}{"value":>12}   expected within'
    for parameter in all_parameters(rig):
        value = parameter.number(values_of(rig, parameter.fields))
        known = (
            f'a factor of {np.exp(parameter.spread):.2f}'
            if parameter.change == 'factor'
            else f'{parameter.spread:.3g} {parameter.unit}'
        )
        group = parameter.group + ('' if parameter.group in usual else ' *')
        yield f'{group:<20}{parameter.name:<38}{value:12.5g}   {known}'
    yield '* identified only if named with --parameters'


def names_of(option: str, text: str | None) -> tuple[str, ...]:
    """Return the names of `a,b` of an option; UsageError if one is empty."""
    if text is None:
        return ()
    names = tuple(part.strip() for part in text.split(','))
    if not all(names):
        raise UsageError(f'{option} {text!r}: expected names separated by commas')
    return names
