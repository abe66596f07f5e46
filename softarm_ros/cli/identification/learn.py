"""
Learns the residual of an identified model by ridge regression on features of the commands.

Penalty and features are chosen by cross-validation: for each fold, model and residual are fitted
to the other folds and predict this one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.identification.misfit import CORRELATION_S
from softarm_ros.cli.identification.recordings import Recorded
from softarm_ros.cli.measured_run import MeasuredRun, commands_followed
from softarm_ros.cli.prediction import predict
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.command_features import (
    command_features,
    groups_of_features,
    is_local,
    parsed,
)
from softarm_ros.models.residual import STILL, groups_of, in_scales
from softarm_ros.rigs.residual_file import ResidualFile
from softarm_ros.rigs.schema import Rig

PENALTIES = np.logspace(-4, 2, 13)  # per row of standardised features
FOLDS = 5
LEAST_GAIN = 0.01  # of the error; a smaller one is noise, the best of several penalties
_DIGITS = 8


@dataclass(frozen=True)
class Learned:
    """A residual, and the share of the error it leaves on rows it was not learned from."""

    file: ResidualFile
    penalty: float
    left: float
    left_by_fold: Array

    @property
    def helps(self) -> bool:
        """Whether it improves predictions of rows it was not learned from by `LEAST_GAIN`."""
        return self.left <= 1.0 - LEAST_GAIN


def require_learnable(features: Sequence[str]) -> None:
    """Raise UsageError if scikit-learn is not installed or a feature is unknown."""
    try:
        import sklearn.linear_model  # noqa: F401
    except ImportError:
        raise UsageError(
            '--residual needs scikit-learn: pip install "softarm_ros[learning]"'
        ) from None
    try:
        parsed(features)
    except ValueError as error:
        raise UsageError(f'--residual: {error}') from None


def learn_best(
    rig: Rig,
    recorded: Sequence[Recorded],
    choices: Sequence[Sequence[str]],
    source: str,
    again: Callable[[Sequence[Recorded]], Rig] | None = None,
) -> Learned:
    """
    Return the residual with the features that best predict unseen rows.

    Choices are compared on the same folds of the rows `train` as penalties. Because folds differ,
    an earlier choice stands unless a later one is better by more than the standard error of the
    difference over folds. Raises the errors of `learn`.
    """
    left = left_out(rig, recorded, again)
    found = [learn(rig, recorded, features, source, left) for features in choices]
    best = found[0]
    for other in found[1:]:
        gains = best.left_by_fold**2 - other.left_by_fold**2
        if gains.mean() > gains.std(ddof=1) / np.sqrt(len(gains)):
            best = other
    return best


def folds_of(recorded: Sequence[Recorded]) -> NDArray[np.int64]:
    """
    Return the fold of each row `train` of recordings, with the files concatenated.

    A fold is one or more of several files, or a fifth of the rows of a single file; of poses at
    rest, a fifth of the commands: repetitions of a command stay together.

    Raises
    ------
    UsageError
        If there is only one fold.

    """
    files = [one for one in recorded if len(one.train)]
    used = [one.train for one in files]
    if len(files) == 1:
        turn = np.arange(len(used[0]))
        if files[0].whole.time_s is None:
            commands = files[0].blocks(used[0])
            _, first, group = np.unique(commands, return_index=True, return_inverse=True)
            turn = np.argsort(np.argsort(first))[group]
        fold = turn * FOLDS // (turn.max() + 1)
    else:
        # The largest files first, each to the fold with the fewest rows.
        number, sizes = np.zeros(len(used), dtype=np.int64), np.zeros(min(FOLDS, len(used)))
        for i in np.argsort([-len(rows) for rows in used], kind='stable'):
            number[i] = np.argmin(sizes)
            sizes[number[i]] += len(used[i])
        fold = np.concatenate([np.full(len(rows), k) for rows, k in zip(used, number)])
    if len(np.unique(fold)) < 2:
        raise UsageError(f'--residual: {len(fold)} rows are too few to learn from')
    return np.asarray(fold, dtype=np.int64)


@dataclass(frozen=True)
class Left:
    """
    Errors that models leave on all rows `train`, as from `left_by_model`.

    Attributes
    ----------
    whole : (n, 6 sections)
        Errors of the rig identified from all rows, which the residual is to correct.
    without : (folds, n, 6 sections)
        Errors of the rigs identified without each fold.

    """

    whole: Array
    without: Array


def left_out(
    rig: Rig,
    recorded: Sequence[Recorded],
    again: Callable[[Sequence[Recorded]], Rig] | None = None,
) -> Left:
    """
    Return the errors left by a rig, and by those that `again` identifies without each fold.

    A model leaves smaller and different errors on rows it was fitted to. So a residual is judged
    on folds that neither model nor residual was fitted to. Without `again`, the rig must not have
    been fitted to any of these rows.
    """
    fold = folds_of(recorded)

    def left_by(one_rig: Rig) -> Array:
        used = [one for one in recorded if len(one.train)]
        return np.concatenate(
            [left_by_model(one_rig, one.seen_by(one_rig, one.train)) for one in used]
        )

    whole = left_by(rig)
    count = int(fold.max()) + 1
    if again is None:
        return Left(whole, np.stack([whole] * count))
    ends = np.cumsum([0, *(len(one.train) for one in recorded)])
    without = []
    for k in range(count):
        others = [fold[a:b] != k for a, b in itertools.pairwise(ends)]
        rest = [replace(one, train=one.train[kept]) for one, kept in zip(recorded, others)]
        without.append(left_by(again(rest)))
    return Left(whole, np.stack(without))


def learn(
    rig: Rig,
    recorded: Sequence[Recorded],
    features: Sequence[str],
    source: str,
    left: Left | None = None,
) -> Learned:
    """
    Return the residual of a rig's default model, learned from the rows `train`.

    The penalty is the one that best predicts unseen rows: each fold from the others (`folds_of`).

    Parameters
    ----------
    rig
        Identified rig.
    recorded
        Recordings to learn from.
    features
        See `command_features`.
    source
        Names of the recordings, noted in the residual file.
    left : Left, optional
        Errors to learn, from `left_out`; if not given, those of this rig for all folds.

    Raises
    ------
    UsageError
        If a feature is unknown, scikit-learn is not installed, or there are too few rows.

    """
    require_learnable(features)
    from sklearn.linear_model import Ridge

    limits = rig.actuator_limits()
    middle = 0.5 * (limits.position_min + limits.position_max)
    half = 0.5 * (limits.position_max - limits.position_min)
    groups = groups_of([getattr(actuator, 'section', None) for actuator in rig.actuators])
    fold = folds_of(recorded)
    inputs, share = [], 1.0
    for one in recorded:
        rows = one.train
        if not len(rows):
            continue
        run = one.whole
        commands, time, of_run = commands_followed(rig, run)
        rest = np.clip(-middle / half, -1.0, 1.0)
        u = (commands - middle) / half
        inputs.append(command_features(features, u, time, rest, groups)[of_run[rows]])
        if run.time_s is not None and len(rows) > 1:
            share = min(share, float(np.median(np.diff(run.time_s[rows]))) / CORRELATION_S)
    x = np.concatenate(inputs)
    left = left_out(rig, recorded) if left is None else left
    whole = np.isfinite(left.whole).all(axis=1) & np.isfinite(left.without).all(axis=(0, 2))
    x, y, without, fold = x[whole], left.whole[whole], left.without[:, whole], fold[whole]
    unseen = without[fold, np.arange(len(fold))]  # of each row, by the rig identified without it
    if len(x) < 2 * FOLDS or len(np.unique(fold)) < 2:
        raise UsageError(f'--residual: {len(x)} rows are too few to learn from')
    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale < 0.1 * STILL, 0.0, scale)
    z = in_scales(x - mean, scale)
    spread = np.sqrt(np.mean(y * y, axis=0))
    unit = np.where(spread > 0.0, spread, 1.0)
    parts = _parts(rig, features, groups, y)
    behind = _carried(len(rig.section_names)) if len(parts) > 1 else np.eye(y.shape[1])

    def ridged(y: Array, rows: NDArray[np.int64] | slice, penalty: float) -> Array:
        """Return weights (f + 1, outputs), fitted to each part's own share of the outputs."""
        own = np.linalg.solve(behind.T, y.T).T / unit
        weights = np.zeros((z.shape[1] + 1, y.shape[1]))
        for inputs_of, outputs_of in parts:
            chosen = np.ix_(np.arange(len(z))[rows], inputs_of)
            ridge = Ridge(alpha=penalty * len(chosen[0]))
            ridge.fit(z[chosen], own[rows][:, outputs_of])
            weights[0, outputs_of] = ridge.intercept_
            weights[np.ix_(inputs_of + 1, outputs_of)] = np.atleast_2d(ridge.coef_).T
        return np.asarray((weights * unit) @ behind)

    splits = [(k, np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in np.unique(fold)]
    ones = np.hstack([np.ones((len(z), 1)), z])
    predicted = []
    for penalty in map(float, PENALTIES):
        out = np.zeros_like(y)
        for k, train, test in splits:
            out[test] = ones[test] @ ridged(without[k], train, penalty)
        predicted.append(out)
    shares = [_share_left(out, unseen) for out in predicted]
    best = int(np.argmin(shares))
    penalty = float(PENALTIES[best])
    weights = ridged(y, slice(None), penalty)
    covariance = np.zeros((z.shape[1] + 1, z.shape[1] + 1))
    covariance[0, 0] = 1.0 / len(z)
    for inputs_of, _ in parts:
        information = z[:, inputs_of].T @ z[:, inputs_of]
        information += penalty * len(z) * np.eye(len(inputs_of))
        covariance[np.ix_(inputs_of + 1, inputs_of + 1)] = np.linalg.inv(information)
    covariance /= min(1.0, share)
    reach = float(np.einsum('ni,ij,nj->n', ones, covariance, ones).max())
    file = ResidualFile(
        learned_from=source,
        model=rig.default_model,
        actuators=rig.actuator_names,
        sections=rig.section_names,
        features=tuple(features),
        groups=groups,
        middle=_numbers(middle),
        half=_numbers(half),
        mean=_numbers(mean),
        scale=_numbers(scale),
        weights=tuple(_numbers(row) for row in weights),
        covariance=tuple(_numbers(row) for row in covariance),
        noise=_numbers(np.sqrt(np.mean((predicted[best] - unseen) ** 2, axis=0))),
        reach=reach,
        left=shares[best],
    )
    by_fold = [_share_left(predicted[best][rows], unseen[rows]) for *_, rows in splits]
    return Learned(file, penalty, shares[best], np.array(by_fold))


def _share_left(predicted: Array, left: Array) -> float:
    """
    Return the share of errors (n, 6 sections) left; positions and turns count equally.

    Errors are compared as lengths and angles, as in a score: small sideways errors count little.
    """
    squares, gone = (
        np.sum((values**2).reshape(len(left), -1, 2, 3), axis=(0, 1, 3))
        for values in (predicted - left, left)
    )
    seen = gone > 0.0
    return float(np.sqrt(np.mean(squares[seen] / gone[seen])))


Part = tuple[NDArray[np.int64], NDArray[np.int64]]


def _parts(rig: Rig, features: Sequence[str], groups: Sequence[int], left: Array) -> list[Part]:
    """Return (features, outputs) of each regression: all, or one section's features and turn."""
    if not is_local(features):
        return [(np.arange(len(groups_of_features(features, groups))), np.arange(left.shape[1]))]
    names = list(rig.section_names)
    owners = [getattr(actuator, 'section', None) for actuator in rig.actuators]
    by_section = left.reshape(len(left), len(names), 6)
    if None in owners or np.any(by_section[:, :, :3]):
        raise UsageError(
            '--residual local: expected sections with actuators of their own, and recordings of '
            'their turns alone (recording.section_turns)'
        )
    feature = groups_of_features(features, groups)
    index = list(dict.fromkeys(owners))
    return [
        (np.flatnonzero(feature == index.index(name)), 6 * k + np.arange(6))
        for k, name in enumerate(names)
        if name in index
    ]


def _carried(sections: int) -> Array:
    """Return how small turns of each section (row) turn the sections behind it (column)."""
    return np.asarray(np.kron(np.triu(np.ones((sections, sections))), np.eye(6)), dtype=float)


def left_by_model(rig: Rig, run: MeasuredRun) -> Array:
    """
    Return measured minus predicted (n, 6 sections), base frame: [m] and rotation vectors [rad].

    Zero for quantities that are not measured; NaN if the model refuses a row or markers were
    mistaken.
    """
    rig = run.as_it_was(rig)
    found = predict(rig, rig.physics(), run)
    names, turn = list(rig.section_names), run.mount.rotation
    errors = np.zeros((len(run), len(names), 6))
    seen = np.zeros(len(names))
    for name, place in run.places.items():
        k = names.index(place.section)
        errors[:, k, :3] += (run.points[name] - found.points[name]) @ turn
        seen[k] += 1.0
    errors[:, seen > 0.0, :3] /= seen[seen > 0.0, None]
    for name, measured in run.axes.items():
        predicted = found.axes[name]
        about = np.cross(predicted, measured)
        sine = np.linalg.norm(about, axis=1)
        angle = np.arctan2(sine, np.sum(predicted * measured, axis=1))
        about *= (angle / np.maximum(sine, 1e-12))[:, None]
        errors[:, names.index(name), 3:] = about @ turn
    return errors.reshape(len(run), -1)


def _numbers(values: Array) -> tuple[float, ...]:
    return tuple(float(f'{float(value):.{_DIGITS}g}') + 0.0 for value in values)
