"""One exposure as a device reports it: its own names, frame, units of SI, and clock."""

from __future__ import annotations

import math
from dataclasses import dataclass

MAX_RANGE_M = 100.0  # no tracking volume is larger
MAX_NORM_ERROR = 1.0e-2  # of a quaternion sent as four floats; of what is garbled, hardly ever so
LONGEST_LATENCY_S = 10.0


class CorruptFrameError(ValueError):
    """What came is no frame, or holds what no device measures; says what."""


@dataclass(frozen=True)
class CapturedBody:
    """Position (3,) [m] and quaternion x, y, z, w of a body; `quality` [m]: its fit, if told."""

    name: str
    position: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]
    quality_m: float | None = None

    def check(self) -> None:
        """Raise `CorruptFrameError`, naming body, value and limit, if this cannot be a pose."""
        _check_position(self.name, self.position)
        norm = math.sqrt(sum(part * part for part in self.quaternion))
        if not abs(norm - 1.0) <= MAX_NORM_ERROR:  # nan neither
            raise CorruptFrameError(
                f'{self.name}: quaternion of norm {norm:g} (limit 1 +- {MAX_NORM_ERROR:g})'
            )


@dataclass(frozen=True)
class CapturedPoint:
    """Position (3,) [m] of a marker."""

    name: str
    position: tuple[float, float, float]


@dataclass(frozen=True)
class CapturedFrame:
    """
    What a device sent of one exposure.

    Attributes
    ----------
    number : int
        The device's count of exposures.
    exposed_s, sent_s : float
        On the device's clock [s]; equal where the device does not tell its own latency.
    arrived_s : float
        On this computer's monotonic clock [s].
    bodies, points
        What was tracked.
    lost : tuple of str
        Bodies that the device knows and does not see now.

    """

    number: int
    exposed_s: float
    sent_s: float
    arrived_s: float
    bodies: tuple[CapturedBody, ...] = ()
    points: tuple[CapturedPoint, ...] = ()
    lost: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise `CorruptFrameError`, naming the field and the limit, if this cannot be."""
        latency = self.sent_s - self.exposed_s
        if not 0.0 <= latency <= LONGEST_LATENCY_S:  # nan neither
            raise CorruptFrameError(
                f'sent {latency:g} s after the exposure (expected 0 to {LONGEST_LATENCY_S:g} s)'
            )
        if not abs(self.sent_s) < 1.0e12:
            raise CorruptFrameError(f'time stamp {self.sent_s:g} s')
        for body in self.bodies:
            body.check()
        for point in self.points:
            _check_position(point.name, point.position)


def _check_position(name: str, position: tuple[float, float, float]) -> None:
    farthest = max(map(abs, position))
    if not (all(map(math.isfinite, position)) and farthest <= MAX_RANGE_M):
        raise CorruptFrameError(f'{name}: at {position} m (limit {MAX_RANGE_M:g} m)')
