"""One exposure as a device reports it: with the device's names, frame and clock, in SI units."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

MAX_RANGE_M = 100.0  # no tracking volume is larger
MAX_NORM_ERROR = 1.0e-2  # of a quaternion of four floats; garbled data rarely are so close to 1
LONGEST_LATENCY_S = 10.0


class CorruptFrameError(ValueError):
    """Received data are not a frame, or hold impossible values; the message says which."""


@dataclass(frozen=True)
class CapturedBody:
    """Position (3,) [m], quaternion x, y, z, w and fit error [m], if sent, of a body."""

    name: str
    position: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]
    quality_m: float | None = None

    def check(self) -> None:
        """Raise `CorruptFrameError`, naming body, value and limit, if the pose is impossible."""
        _check_position(self.name, self.position)
        norm = math.sqrt(sum(part * part for part in self.quaternion))
        if not abs(norm - 1.0) <= MAX_NORM_ERROR:  # rejects nan as well
            raise CorruptFrameError(
                f'{self.name}: quaternion of norm {norm:g} (limit 1 +- {MAX_NORM_ERROR:g})'
            )


@dataclass(frozen=True)
class CapturedPoint:
    """Position (3,) [m] of a marker."""

    name: str
    position: tuple[float, float, float]

    def check(self) -> None:
        """Raise `CorruptFrameError`, naming marker, value and limit, if it is impossible."""
        _check_position(self.name, self.position)


@dataclass(frozen=True)
class CapturedFrame:
    """
    Data that a device sent about one exposure.

    Attributes
    ----------
    number : int
        The device's count of exposures.
    exposed_s, sent_s : float
        Times on the device's clock [s]; equal if the device does not report its own latency.
    arrived_s : float
        Time on this computer's monotonic clock [s].
    bodies, points
        Tracked bodies and markers.
    lost : tuple of str
        Bodies and markers that the device knows but does not see now.

    """

    number: int
    exposed_s: float
    sent_s: float
    arrived_s: float
    bodies: tuple[CapturedBody, ...] = ()
    points: tuple[CapturedPoint, ...] = ()
    lost: tuple[str, ...] = ()

    def of_arm(self, names: Collection[str]) -> CapturedFrame:
        """
        Return the frame with impossible bodies and markers counted as lost, and check the rest.

        A device may track other things than the arm, which must not stop it.

        Raises
        ------
        CorruptFrameError
            If a body or marker of the arm, one of `names`, or a time is impossible.

        """
        bodies = tuple(b for b in self.bodies if b.name in names or _possible(b))
        points = tuple(p for p in self.points if p.name in names or _possible(p))
        left_out = (
            *(body.name for body in self.bodies if body not in bodies),
            *(point.name for point in self.points if point not in points),
        )
        frame = replace(self, bodies=bodies, points=points, lost=(*self.lost, *left_out))
        frame.check()
        return frame

    def check(self) -> None:
        """Raise `CorruptFrameError`, naming field and limit, if a value is impossible."""
        latency = self.sent_s - self.exposed_s
        if not 0.0 <= latency <= LONGEST_LATENCY_S:  # rejects nan as well
            raise CorruptFrameError(
                f'sent {latency:g} s after the exposure (expected 0 to {LONGEST_LATENCY_S:g} s)'
            )
        if not abs(self.sent_s) < 1.0e12:
            raise CorruptFrameError(f'time stamp {self.sent_s:g} s')
        for body in self.bodies:
            body.check()
        for point in self.points:
            point.check()


def text_of_name(data: bytes) -> str:
    """
    Return a name that a device sent as text, in UTF-8 or the code page of western Windows.

    It never fails: the name of one body must not stop the poses of all others.
    """
    try:
        return data.decode('utf-8')
    except UnicodeDecodeError:
        return data.decode('cp1252', 'replace')


def _possible(seen: CapturedBody | CapturedPoint) -> bool:
    try:
        seen.check()
    except CorruptFrameError:
        return False
    return True


def _check_position(name: str, position: tuple[float, float, float]) -> None:
    farthest = max(map(abs, position))
    if not (all(map(math.isfinite, position)) and farthest <= MAX_RANGE_M):
        raise CorruptFrameError(f'{name}: at {position} m (limit {MAX_RANGE_M:g} m)')
