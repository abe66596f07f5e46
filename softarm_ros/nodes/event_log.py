"""The last events of a node, in the form its heartbeat carries."""

from __future__ import annotations

from collections import deque

from softarm_ros.nodes import conversions
from softarm_ros.runtime.events import Event

EVENTS_KEPT = 10
_REPEATED_S = 1.0


class EventLog:
    """Numbers events and keeps the last ones; observers recognise new events by the number."""

    def __init__(self) -> None:
        # Kept as diagnostic values: events are rare, heartbeats come ten times a second.
        self._values: deque[tuple[str, str]] = deque(maxlen=EVENTS_KEPT)
        self._last: Event | None = None
        self._count = 0

    def add(self, event: Event) -> bool:
        """Keep an event; return False if it repeats the last one within a second."""
        last = self._last
        if last and last.message == event.message and event.time_s - last.time_s < _REPEATED_S:
            return False
        self._count += 1
        self._last = event
        self._values.append(conversions.event_value(self._count, event))
        return True

    def values(self) -> dict[str, str]:
        """Return the events as diagnostic values."""
        return dict(self._values)
