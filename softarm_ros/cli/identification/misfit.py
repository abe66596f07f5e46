"""Errors of a model's predictions as a function of its parameters, and their slope."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.identification.jumping_commands import jump_period_s, spread_rows
from softarm_ros.cli.identification.recordings import Recorded, Rows
from softarm_ros.cli.identification.robust_loss import RobustLoss
from softarm_ros.cli.prediction import predict
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel
from softarm_ros.models.identifiable import Parameter, moved_by
from softarm_ros.rigs.field_values import values_of, with_values
from softarm_ros.rigs.schema import Rig

ERROR_SHARE = 0.01  # of the arm's length: error of a good model
ERROR_AXIS = 0.03  # of an axis, likewise
CORRELATION_S = 0.25  # rows of a moving arm closer than this carry the same information
REFUSED = 10.0  # in these units, where a model refuses a row
STEP = 1e-3  # of finite differences, in spreads
SNAP = 0.5  # change of an error over one step, above which a row has snapped to another rest

Blocks = NDArray[np.int64]


class Errors(ABC):
    """
    Errors (n,) as a function of parameters x (k,), in units of a good model's error.

    Attributes
    ----------
    bounds : (k, 2)
        Bounds of x.
    block, row : (n,)
        Block and row of each error; blocks err independently.
    refused : (n,)
        Substitute for each error in a row that the model refuses.
    loss : RobustLoss
        Loss of the errors; by default, each error is a point by itself.

    """

    def __init__(
        self,
        bounds: Array,
        block: Blocks,
        row: Rows,
        refused: Array,
        loss: RobustLoss | None = None,
    ) -> None:
        self.bounds, self.block, self.row, self.refused = bounds, block, row, refused
        self.loss = RobustLoss.of_numbers(len(block)) if loss is None else loss
        # Cached: the search needs errors and slope at the same x, and again at its start and end.
        self._last: tuple[bytes, Array] | None = None
        self._last_slope: tuple[bytes, Array] | None = None
        self._edges = False

    def __len__(self) -> int:
        return len(self.block)

    @abstractmethod
    def _errors(self, x: Array, asked: NDArray[np.bool_]) -> Array:
        """Return the errors (n,) as `at` does; errors with `asked` False may be NaN."""

    def at(self, x: Array) -> Array:
        """
        Return the errors; NaN in rows that the model refuses.

        Raises
        ------
        ValueError
            If x is no possible arm: it would buckle, or its cables leave a bend free.

        """
        key = x.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self._errors(x, np.ones(len(self), bool))
        return self._last[1]

    def begin(self, x: Array) -> None:
        """
        Begin a search at x (k,): a refused row counts no less than the worst error there.

        Otherwise a search that begins with large errors would end where the model refuses rows.

        Raises
        ------
        ValueError
            If x is no possible arm.

        """
        worst = np.nanmax(np.abs(self.at(x)), initial=0.0)
        self.refused = np.maximum(self.refused, worst)

    def filled(self, x: Array) -> Array:
        """Return finite errors (n,) for the search, even for refused rows and impossible arms."""
        if np.any((x < self.bounds[:, 0]) | (x > self.bounds[:, 1])):
            return np.full(len(self), self.refused.max())
        try:
            found = self.at(x)
        except ValueError:
            return np.full(len(self), self.refused.max())
        return np.where(np.isnan(found), self.refused, found)

    def near(self, x: Array, base: Array) -> Array:
        """Return the errors (n,) as `at` does, without the rows refused in `base` (n,)."""
        return self._errors(x, np.isfinite(base))

    def rough(self, x: Array) -> bool:
        """Return whether x (k,) is at an edge: rows snap or are refused there or one step away."""
        self.slope(x)
        return self._edges

    def slope(self, x: Array) -> Array:
        """
        Return the derivatives (n, k) by finite differences.

        The slope is zero for rows that the model refuses at x or one step away: a refusal shows no
        way out. It is also zero for rows that snap to another rest: an arm may have several under
        one command.
        """
        key = x.tobytes()
        if self._last_slope is not None and self._last_slope[0] == key:
            return self._last_slope[1].copy()  # the search scales it in place
        base = self.at(x)
        columns = np.empty((len(base), len(x)))
        self._edges = bool(np.isnan(base).any())
        for k in range(len(x)):
            step = STEP if x[k] + STEP <= self.bounds[k, 1] else -STEP
            moved = x.copy()
            moved[k] += step
            try:
                there = self.near(moved, base)
            except ValueError:
                step = -step
                moved[k] = x[k] + step
                there = self.near(moved, base)
            self._edges |= bool(np.isnan(there).any())
            change = np.nan_to_num(there - base)
            snapped = np.isin(self.row, self.row[np.abs(change) > SNAP])
            self._edges |= bool(snapped.any())
            columns[:, k] = np.where(snapped, 0.0, change) / step
        self._last_slope = key, columns
        return columns.copy()


class Misfit(Errors):
    """
    Errors of the points and axes that a rig predicts for the rows `train` of recordings.

    Attributes
    ----------
    known : dict
        The rig's values of the fields that the parameters change.
    jump_period_s : float, optional
        Sampling period of commands that jump [s], if the delay is a parameter.

    """

    def __init__(
        self,
        rig: Rig,
        recorded: Sequence[Recorded],
        parameters: Sequence[Parameter],
        most_rows: int,
    ) -> None:
        self._rig, self._parameters = rig, tuple(parameters)
        self.known = values_of(rig, list(dict.fromkeys(f for p in parameters for f in p.fields)))
        delayed = any(p.group == 'delay' for p in parameters)
        self.jump_period_s = jump_period_s(recorded) if delayed else None
        jump = self.jump_period_s is not None
        thin = zip(recorded, _thinned(recorded, most_rows, jump=jump))
        self._recorded = [(one, rows) for one, rows in thin if len(rows)]
        self._scale = ERROR_SHARE * rig.model().rest_length_m
        self._weights = [_weight(one, rows) for one, rows in self._recorded]
        self._widths = [
            3 * (len(one.whole.points) + len(one.whole.axes)) for one, _ in self._recorded
        ]
        sizes = [width * len(rows) for width, (_, rows) in zip(self._widths, self._recorded)]
        super().__init__(
            np.array([p.bounds(self.known) for p in parameters]).reshape(-1, 2),
            self._blocks(),
            np.repeat(
                np.arange(sum(len(rows) for _, rows in self._recorded)),
                np.repeat(self._widths, [len(rows) for _, rows in self._recorded]),
            ),
            REFUSED * np.repeat(self._weights, sizes),
            RobustLoss(np.repeat(self._weights, sizes), np.arange(sum(sizes)) // 3),
        )

    def _errors(self, x: Array, asked: NDArray[np.bool_]) -> Array:
        changed = with_values(self._rig, moved_by(self._parameters, self.known, x))
        models: dict[tuple[tuple[str, float], ...], tuple[Rig, ArmModel]] = {}
        parts, first = [], 0
        for (one, rows), weight, width in zip(self._recorded, self._weights, self._widths):
            last = first + width * len(rows)
            kept = asked[first:last].reshape(-1, width).any(axis=1)
            first = last
            errors = np.full((len(rows), width), np.nan)
            parts.append(errors)
            if not kept.any():
                continue
            run = one.seen_by(changed, rows[kept])
            around = tuple(run.around.items())
            if around not in models:
                then = run.as_it_was(changed)
                models[around] = (then, then.physics())
            found = predict(*models[around], run, strict=False)
            each = [(found.points[n] - v) / self._scale for n, v in run.points.items()]
            each += [
                np.where(np.isfinite(v), found.axes[n] - v, 0.0) / ERROR_AXIS
                for n, v in run.axes.items()
            ]
            count = int(kept.sum())
            errors[kept] = weight * np.concatenate([e.reshape(count, -1) for e in each], axis=1)
        return np.concatenate([part.ravel() for part in parts])

    def _blocks(self) -> Blocks:
        parts, first = [], 0
        for (one, rows), width in zip(self._recorded, self._widths):
            block = one.blocks(rows)
            parts.append(np.repeat(block + first, width))
            first += int(block.max()) + 1
        return np.concatenate(parts)


def _thinned(recorded: Sequence[Recorded], most: int, *, jump: bool) -> list[Rows]:
    total = sum(len(r.train) for r in recorded)
    every = max(1, -(-total // most))
    return [spread_rows(r.train, every) if jump else r.train[::every] for r in recorded]


def _weight(recorded: Recorded, rows: Rows) -> float:
    """Return the root of the share of independent information in a row."""
    time = recorded.whole.time_s
    if time is None or len(rows) < 2:
        return 1.0
    spacing = float(np.median(np.diff(time[rows])))
    return float(min(1.0, spacing / CORRELATION_S) ** 0.5)
