"""
Whether a body can be where a sensor says it is.

Motion capture takes one marker for another: a body turns by 180 degrees from one frame to the
next (flip), two bodies exchange their names (swap), a body is found in a reflection (jump). None
of it may move an arm. A pose that cannot follow from the last accepted one is rejected; a flip
leaves the position, which hardly depends on which marker is which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import quaternion_from_matrix
from softarm_ros.perception.config import PlausibilityConfig

_NO_TWIST = 0.05  # cosine of half a bend of 174 degrees


@dataclass(frozen=True)
class Verdict:
    """
    What may be used of a pose.

    Attributes
    ----------
    position, orientation : bool
        Whether each may be used.
    fault : str
        '' or one of `flip`, `swap`, `jump`, `reach`.
    text : str
        What was seen, with numbers.

    """

    position: bool = True
    orientation: bool = True
    fault: str = ''
    text: str = ''


@dataclass
class _Track:
    """Where a body is believed to be, and what speaks against it."""

    time_s: float
    position: Array
    rotation: Array | None = None
    elsewhere: list[tuple[float, Array]] = field(default_factory=list)  # first and last rejected
    turned: list[tuple[float, Array]] = field(default_factory=list)


ACCEPTED = Verdict()


class Plausibility:
    """
    Follows the bodies of an arm from frame to frame; poses are in the base frame.

    Parameters
    ----------
    config
        Limits.

    """

    def __init__(self, config: PlausibilityConfig) -> None:
        self.config = config
        self._tracks: dict[str, _Track] = {}
        self._cos_turn = 1.0 + 2.0 * np.cos(np.radians(config.max_turn_deg))
        self._cos_twist = np.cos(np.radians(config.max_twist_deg))

    def judge(self, time_s: float, poses: Mapping[str, Array]) -> dict[str, Verdict]:
        """
        Return what may be used of each body's pose (4, 4), by name.

        `poses` are of the cross-sections that the bodies sit on: at rest all are turned like the
        base.
        """
        verdicts: dict[str, Verdict] = {}
        strays: dict[str, str] = {}
        for name, pose in poses.items():
            fault, why = self._where(time_s, name, pose[:3, 3])
            if fault == 'jump':
                strays[name] = why
            elif fault:
                verdicts[name] = Verdict(False, False, fault, why)
        swapped = self._swapped(time_s, poses, strays)
        for name, why in strays.items():
            partner = swapped.get(name)
            if partner is not None:
                self._tracks[name].time_s = time_s
                self._tracks[name].elsewhere.clear()
                text = f'exchanged with {partner!r}'
                verdicts[name] = Verdict(False, False, 'swap', text)
            elif not self._settled(time_s, self._tracks[name], poses[name][:3, 3]):
                verdicts[name] = Verdict(False, False, 'jump', why)
        for name, partner in swapped.items():
            self._tracks[name].position = poses[partner][:3, 3].copy()
        for name, pose in poses.items():
            if name not in verdicts:
                verdicts[name] = self._accept(time_s, name, pose)
        return verdicts

    # -- positions

    def _within(self, duration_s: float, start: Array, end: Array) -> bool:
        allowed = self.config.max_speed_m_s * max(duration_s, 0.0) + self.config.margin_m
        return float(np.linalg.norm(end - start)) <= allowed

    def _near(self, time_s: float, track: _Track, position: Array) -> bool:
        if track.elsewhere:
            first_s, _ = track.elsewhere[0]
            last_s, last = track.elsewhere[-1]
            if self._within(time_s - last_s, last, position):
                # It goes on elsewhere: that does not become more likely with time.
                time_s = first_s
        return self._within(time_s - track.time_s, track.position, position)

    def _where(self, time_s: float, name: str, position: Array) -> tuple[str, str]:
        reach = self.config.reach_m
        distance = float(np.linalg.norm(position))
        if reach is not None and distance > reach:
            return 'reach', f'{distance:.3f} m from the base (limit {reach:g} m)'
        track = self._tracks.get(name)
        if track is None or self._near(time_s, track, position):
            return '', ''
        step = float(np.linalg.norm(position - track.position))
        return 'jump', f'{1e3 * step:.0f} mm in {1e3 * (time_s - track.time_s):.0f} ms'

    def _swapped(
        self, time_s: float, poses: Mapping[str, Array], strays: Mapping[str, str]
    ) -> dict[str, str]:
        """Return pairs of strays each of which is where the other should be, both ways round."""
        found: dict[str, str] = {}
        for a in strays:
            for b in strays:
                if a >= b or a in found or b in found:
                    continue
                if self._near(time_s, self._tracks[a], poses[b][:3, 3]) and self._near(
                    time_s, self._tracks[b], poses[a][:3, 3]
                ):
                    found[a], found[b] = b, a
        return found

    def _settled(self, time_s: float, track: _Track, position: Array) -> bool:
        """Note a position elsewhere; return whether the body has stayed there long enough."""
        seen = track.elsewhere
        if seen and not self._within(time_s - seen[-1][0], seen[-1][1], position):
            seen.clear()
        seen[1:] = [(time_s, position.copy())]
        return time_s - seen[0][0] >= self.config.recover_s

    # -- orientations

    def _accept(self, time_s: float, name: str, pose: Array) -> Verdict:
        """Take a position; return whether the orientation may be used as well."""
        rotation = pose[:3, :3]
        track = self._tracks.setdefault(name, _Track(time_s, pose[:3, 3].copy()))
        track.time_s, track.position = time_s, pose[:3, 3].copy()
        track.elsewhere.clear()
        twist = twist_of(rotation)
        if np.cos(twist) < self._cos_twist:
            text = f'twisted by {np.degrees(twist):.0f} degrees against the base'
            return Verdict(True, False, 'flip', text)
        turned = 0.0 if track.rotation is None else _angle(track.rotation, rotation)
        leaps = np.degrees(turned) > self.config.max_turn_deg
        if leaps and not self._turned(time_s, track, rotation):
            text = f'turned by {np.degrees(turned):.0f} degrees between two frames'
            return Verdict(True, False, 'flip', text)
        track.rotation = rotation.copy()
        track.turned.clear()
        return ACCEPTED

    def _turned(self, time_s: float, track: _Track, rotation: Array) -> bool:
        """Note an orientation; return whether the body has kept to it for long enough."""
        seen = track.turned
        if seen and np.degrees(_angle(seen[-1][1], rotation)) > self.config.max_turn_deg:
            seen.clear()
        seen[1:] = [(time_s, rotation.copy())]
        return time_s - seen[0][0] >= self.config.recover_s


def twist_of(rotation: Array) -> float:
    """
    Return the angle [rad], -pi to pi, of the part of a rotation (3, 3) that is about its own z.

    The rotation is a bend, about an axis across z, after this twist. A bend by about 180 degrees
    tells no twist; 0 is returned for it.
    """
    _, _, z, w = quaternion_from_matrix(rotation)
    if np.hypot(z, w) < _NO_TWIST:
        return 0.0
    return float(2.0 * np.arctan2(z if w >= 0.0 else -z, abs(w)))


def _angle(first: Array, second: Array) -> float:
    """Return the angle [rad] between two orientations (3, 3)."""
    cosine = 0.5 * (float(np.sum(first * second)) - 1.0)
    return float(np.arccos(min(max(cosine, -1.0), 1.0)))
