"""Nodes with work at times they set themselves, and turns of events and work in one executor."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence

from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.task import Future

_LOOK_S = 0.2  # the longest between two looks at the signals
_EVENTS_S = 0.001


def _nothing() -> None:
    """Nobody takes turns yet."""


class SelfPaced:
    """A node with work to do at times it sets itself."""

    _due_s = 0.0
    _when_set: Callable[[], None] = staticmethod(_nothing)

    @property
    def due(self) -> float:
        """When there is work to do next, on the monotonic clock [s]; 0: at once."""
        return self._due_s

    @due.setter
    def due(self, at_s: float) -> None:
        self._due_s = at_s
        self._when_set()

    def tell_when_set(self, when_set: Callable[[], None]) -> None:
        """Call a function whenever `due` is set from now on."""
        self._when_set = when_set

    @abstractmethod
    def work(self) -> None:
        """Do what is due, and set when that is the next time; a few milliseconds at most."""


class Turns:
    """
    Turns of events and nodes' own work.

    Timers would do for the work, but the events executor starves subscriptions when a timer is
    overdue each time it returns; here events get at least `_EVENTS_S` after each piece of work.

    All events until then are handled in one call of the executor. It ends when a node sets anew
    when its work is due: to wake for a time that has been put off costs more than the call.
    """

    def __init__(
        self,
        executor: Executor,
        nodes: Sequence[Node],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._executor = executor
        self._now_s = now_s
        self._paced = [node for node in nodes if isinstance(node, SelfPaced)]
        self._end: Future[None] = Future()
        for node in self._paced:
            node.tell_when_set(self._end_call)

    def take(self) -> None:
        """Handle events until work is due, then do it; return earlier to look at the signals."""
        events_until = self._now_s() + _EVENTS_S
        while (left := max(self._next_s(), events_until) - self._now_s()) > 0.0:
            self._end = Future()
            self._executor.spin_until_future_complete(self._end, min(left, _LOOK_S))
            if left > _LOOK_S:
                return
        now = self._now_s()
        for node in self._paced:
            if node.due <= now:
                node.work()

    def _next_s(self) -> float:
        return min((node.due for node in self._paced), default=float('inf'))

    def _end_call(self) -> None:
        if not self._end.done():
            self._end.set_result(None)
