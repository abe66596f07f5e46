"""The clock of timers that neither simulation nor time servers may change."""

from __future__ import annotations

from rclpy.clock import Clock, ClockType


def steady_clock() -> Clock:
    """Return the monotonic clock, which neither simulation nor time servers change."""
    return Clock(clock_type=ClockType.STEADY_TIME)
