"""Nodes that schedule their own work, and the alternation of work and events in one executor."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence

from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.task import Future

_LOOK_S = 0.2  # longest time between two checks for signals
_EVENTS_S = 0.001


def _nothing() -> None:
    """Do nothing: the node is not in an executor yet."""


class SelfPaced:
    """A node that schedules its own work."""

    _due_s = 0.0
    _when_set: Callable[[], None] = staticmethod(_nothing)

    @property
    def due(self) -> float:
        """When the next work is due, on the monotonic clock [s]; 0: at once."""
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
        """Do the work that is due and set `due`; take a few milliseconds at most."""


class Turns:
    """
    Alternates between events and the nodes' own work.

    Timers could do the work, but if a timer is overdue each time the events executor returns, the
    executor starves subscriptions. Here events get at least `_EVENTS_S` after each piece of work.

    One call of the executor handles all events until work is due. The call also ends when a node
    sets its `due` anew: waking up at a time that was postponed costs more than another call.
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
        """Handle events until work is due, then do it; return earlier to check for signals."""
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
