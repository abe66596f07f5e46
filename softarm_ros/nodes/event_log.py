"""The last events of a node, as its heartbeat carries them."""

from __future__ import annotations

from collections import deque

from softarm_ros.nodes import conversions
from softarm_ros.runtime.events import Event

EVENTS_KEPT = 10
_REPEATED_S = 1.0


class EventLog:
    """Numbers events and keeps the last ones; observers tell by the number what is new."""

    def __init__(self) -> None:
        self._events: deque[tuple[int, Event]] = deque(maxlen=EVENTS_KEPT)
        self._count = 0

    def add(self, event: Event) -> bool:
        """Keep an event; return whether it is news, not the last one again within a second."""
        last = self._events[-1][1] if self._events else None
        if last and last.message == event.message and event.time_s - last.time_s < _REPEATED_S:
            return False
        self._count += 1
        self._events.append((self._count, event))
        return True

    def values(self) -> dict[str, str]:
        """Return the events as diagnostic values."""
        return conversions.event_values(dict(self._events))
