"""Nodes that schedule their own work, and the alternation of work and events in one executor."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence

from rclpy.executors import Executor
from rclpy.node import Node

_LOOK_S = 0.2  # longest time between two checks for signals
_EVENTS_S = 0.001


class SelfPaced:
    """
    A node that schedules its own work.

    Attributes
    ----------
    due : float
        When the next work is due, on the monotonic clock [s]; 0: at once.

    """

    due = 0.0

    @abstractmethod
    def work(self) -> None:
        """Do the work that is due and set `due`; take a few milliseconds at most."""


class Turns:
    """
    Alternates between events and the nodes' own work.

    Timers could do the work, but if a timer is overdue each time the events executor returns, the
    executor starves subscriptions. Here events get at least `_EVENTS_S` after each piece of work.

    One call of the executor handles one event, after which a node's `due` may be another.
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

    def take(self) -> None:
        """Handle events until work is due, then do it; return earlier to check for signals."""
        events_until = self._now_s() + _EVENTS_S
        while (left := max(self._next_s(), events_until) - self._now_s()) > 0.0:
            self._executor.spin_once(min(left, _LOOK_S))
            if left > _LOOK_S:
                return
        now = self._now_s()
        for node in self._paced:
            if node.due <= now:
                node.work()

    def _next_s(self) -> float:
        next_s = math.inf
        for node in self._paced:  # faster than `min` with a generator, at each event
            if node.due < next_s:
                next_s = node.due
        return next_s
