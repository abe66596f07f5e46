"""Progress display of a run: a progress bar on a terminal, lines elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from rich.console import Console

    from softarm_ros.nodes.run_monitor import RunMonitor

REFRESH_S = 0.2
LINE_S = 10.0


def run_bar(console: Console, *, auto_refresh: bool = True) -> Progress:
    """Return a bar with description, progress, `status` and time; shown only on terminals."""
    return Progress(
        TextColumn('{task.description}'),
        BarColumn(),
        TextColumn('{task.percentage:3.0f} %  {task.fields[status]}'),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
        auto_refresh=auto_refresh,
        transient=True,
    )


class RunView:
    """Shows phase, lap or step, and error of a run; a context manager."""

    def __init__(self, console: Console, label: str) -> None:
        self._console = console
        self._label = label
        self._next = 0.0
        self._next_line = 0.0
        self._last = ''
        self._bar = run_bar(console, auto_refresh=False)
        self._task = self._bar.add_task(label, total=1.0, status='starting nodes')

    def __enter__(self) -> RunView:
        self._bar.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._bar.stop()

    def update(self, monitor: RunMonitor) -> None:
        """Show the present state; frequent calls are cheap."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + REFRESH_S
        short, status = _status(monitor)
        if self._console.is_terminal:
            progress = float(monitor.value('tracker', 'progress', '0'))
            self._bar.update(self._task, completed=progress, status=status)
            self._bar.refresh()
        elif short != self._last or now >= self._next_line:
            self._next_line = now + LINE_S
            self._console.print(f'{self._label}: {status}', markup=False, highlight=False)
        self._last = short


def _status(monitor: RunMonitor) -> tuple[str, str]:
    """Return the part of the state that rarely changes, and the full text."""
    state = monitor.value('supervisor', 'state')
    if not state:
        return 'starting', 'starting nodes'
    if state != 'running':
        reason = monitor.value('supervisor', 'reason')
        if not reason or reason.startswith(state):  # as that of a wait does
            return state, reason or state
        return state, f'{state}: {reason}'
    phase = monitor.value('tracker', 'phase')
    if monitor.value('tracker', 'takes_goals') == 'true':
        goal = monitor.value('tracker', 'goal')
        return f'{phase} {goal}', f'{phase} {goal}' if goal else f'{phase}: no goal is under way'
    counts = monitor.value('tracker', 'counts', 'lap')
    short = f'{phase} {counts} {int(monitor.value("tracker", "lap", "0")) + 1}'
    error = monitor.value('tracker', 'error_mm', 'nan')
    return short, short if error == 'nan' else f'{short} error {float(error):.1f} mm'
