"""The papers' experiments, studies of measured arms, and benchmarks of softarm_ros."""

from __future__ import annotations

import sys
from types import TracebackType


def _report(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Report Ctrl-C in one word instead of a traceback."""
    if issubclass(kind, KeyboardInterrupt):
        print('interrupted', file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, traceback)


# So Python names a script while it looks for it: `python -m softarm_reproduction.goal_changes`.
if sys.argv[:1] == ['-m']:
    sys.excepthook = _report
