"""Progress display of a computing command: a bar on a terminal's stderr, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from softarm_ros.cli.consoles import lasting
from softarm_ros.cli.text_output import printable

# Takes the name of the computation and the share done, None if unknown.
Show = Callable[[str, float | None], None]


def show_nothing(what: str, done: float | None) -> None:
    """Ignore progress; the default `Show`."""


class WorkBar:
    """
    Shows the name, progress and duration of a computation; a context manager.

    The bar is removed when the block ends, and while lines are printed.
    """

    def __init__(self) -> None:
        self._console = Console(file=lasting(sys.stderr))
        self._bar: Progress | None = None
        self._shown: tuple[str, bool] | None = None

    def __enter__(self) -> WorkBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()

    def show(self, what: str, done: float | None) -> None:
        """Show the name of a computation, and the share (0 to 1) done, if known."""
        if not self._console.is_terminal:
            return
        if self._bar is None:
            # Lines are printed to stdout, which may be a file: the bar must not redirect them.
            self._bar = Progress(
                TextColumn('{task.description}', markup=False),
                BarColumn(),
                TimeElapsedColumn(),
                console=self._console,
                transient=True,
                redirect_stdout=False,
            )
            self._bar.start()
        if self._shown != (what, done is None):
            self._shown = (what, done is None)
            for task in self._bar.task_ids:
                self._bar.remove_task(task)
            self._bar.add_task(printable(what), total=None if done is None else 1.0)
        if done is not None:
            self._bar.update(self._bar.task_ids[0], completed=done)

    def clear(self) -> None:
        """Remove the bar until something is shown again."""
        if self._bar is not None:
            self._bar.stop()
            self._bar, self._shown = None, None

    def between(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield lines for the caller to print; the bar is removed meanwhile."""
        for line in lines:
            self.clear()
            yield line
