"""The rows of a recording that `--rows` and `--every` choose."""

from __future__ import annotations

import numpy as np

from softarm_ros.cli.cli_errors import UsageError, number_of
from softarm_ros.cli.measured_run import MeasuredRun


def chosen_rows(run: MeasuredRun, rows: str | None, every: int) -> MeasuredRun:
    """
    Return every `every`-th of the chosen `rows` of a run: `FROM:TO` or ROW, separated by commas.

    Numbers followed by `s` are seconds from its start. Rows keep the order of the run, and each
    counts once, however often it is chosen.

    Raises
    ------
    UsageError
        If `rows` is invalid, or no row is left.

    """
    kept = np.arange(len(run))
    if rows is not None:
        try:
            kept = np.concatenate([kept[_slice(run, piece)] for piece in rows.split(',')])
        except (ValueError, IndexError):
            raise UsageError(
                f'--rows {rows!r}: expected pieces as 3000:, 5, 30s:60s (seconds of a run with '
                f'times), divided by commas; {run.source} has {len(run)} rows'
            ) from None
    kept = np.unique(kept)[::every]
    if not len(kept):
        raise UsageError(f'--rows {rows!r}: none of the {len(run)} rows of {run.source}')
    return run.rows(kept)


def _slice(run: MeasuredRun, piece: str) -> slice:
    first, colon, last = piece.partition(':')
    begin = _row(run, first) if first else 0
    if not colon:
        if not 0 <= begin < len(run):
            raise IndexError  # a slice would leave the row out silently
        return slice(begin, begin + 1)
    return slice(begin, _row(run, last) if last else len(run))


def _row(run: MeasuredRun, text: str) -> int:
    number = number_of(text.removesuffix('s'))
    if not text.endswith('s'):
        return int(text)
    if run.time_s is None:
        raise ValueError
    return int(np.searchsorted(run.time_s - run.time_s[0], number))
