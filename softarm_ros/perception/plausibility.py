"""
Check that the pose of a body that a sensor reports is plausible.

Motion capture may confuse markers: a body turns by 180 degrees from one frame to the next (flip),
two bodies exchange their names (swap), a body is found in a reflection (jump). None of these may
move an arm. A pose that cannot follow from the last accepted one is rejected. After a flip the
position is still used, because it hardly depends on the identity of the markers; the flip lasts
until the body is seen in its former orientation again, however long that takes.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import quaternion_from_matrix
from softarm_ros.perception.config import PlausibilityConfig

_NO_TWIST = 0.05  # cosine of half of 174 degrees; no twist is defined for larger bends


@dataclass(frozen=True)
class Verdict:
    """
    Usable parts of a pose.

    Attributes
    ----------
    position, orientation : bool
        Whether each may be used.
    fault : str
        '' or one of `flip`, `swap`, `jump`, `reach`.
    text : str
        Description of the fault, with numbers.

    """

    position: bool = True
    orientation: bool = True
    fault: str = ''
    text: str = ''


@dataclass
class _Track:
    """Believed pose of a body, and contradictory observations."""

    time_s: float
    position: Array
    rotation: Array | None = None
    turned_s: float = -np.inf
    flip: Array | None = None  # rotation in the body's own frame while it is seen flipped
    elsewhere: list[tuple[float, Array]] = field(default_factory=list)  # first and last rejected


ACCEPTED = Verdict()


class Plausibility:
    """
    Follows the bodies of an arm from frame to frame; poses are in the base frame.

    Parameters
    ----------
    config
        Limits of speed, turn and reach.

    """

    def __init__(self, config: PlausibilityConfig) -> None:
        self.config = config
        self._tracks: dict[str, _Track] = {}
        self._max_turn = np.radians(config.max_turn_deg)

    def judge(self, time_s: float, poses: Mapping[str, Array]) -> dict[str, Verdict]:
        """
        Return the verdict on each body's pose (4, 4), by name.

        `poses` are those of the bodies' cross-sections: at rest all have the orientation of the
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
        within = {name: pose for name, pose in poses.items() if name not in verdicts}
        swapped = self._swapped(time_s, within, strays)
        for name, partner in swapped.items():
            self._tracks[name].time_s = time_s
            self._tracks[name].elsewhere.clear()
            verdicts[name] = Verdict(False, False, 'swap', f'exchanged with {partner!r}')
        for name, why in strays.items():
            if name in swapped:
                continue
            settled = self._settled(time_s, self._tracks[name], poses[name][:3, 3])
            unseen = self._unseen_at(time_s, name, poses)
            if unseen:
                text = f'is where {unseen!r} should be, which is not seen'
                verdicts[name] = Verdict(False, False, 'swap', text)
            elif not settled:
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
                # The body stays elsewhere: passing time must not make this plausible.
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
        """Return pairs of exchanged bodies, each near the other's place; both ways round."""
        found: dict[str, str] = {}
        moved = [name for name, pose in sorted(poses.items()) if self._moved(name, pose)]
        for a, b in itertools.combinations(moved, 2):
            if a in found or b in found:
                continue
            if not (a in strays and b in strays) and not self._reversed(time_s, a, b, poses):
                continue
            if self._near(time_s, self._tracks[a], poses[b][:3, 3]) and self._near(
                time_s, self._tracks[b], poses[a][:3, 3]
            ):
                found[a], found[b] = b, a
        return found

    def _moved(self, name: str, pose: Array) -> bool:
        """Return whether a body has moved from its last position by more than the margin."""
        track = self._tracks.get(name)
        if track is None:
            return False
        return float(np.linalg.norm(pose[:3, 3] - track.position)) > self.config.margin_m

    def _reversed(self, time_s: float, a: str, b: str, poses: Mapping[str, Array]) -> bool:
        """Return whether two bodies have changed sides within a short time."""
        first, second = self._tracks[a], self._tracks[b]
        if time_s - min(first.time_s, second.time_s) > self.config.recover_s:
            return False
        at, beside = poses[a][:3, 3], poses[b][:3, 3]
        return float(np.dot(at - beside, first.position - second.position)) < 0.0

    def _unseen_at(self, time_s: float, name: str, poses: Mapping[str, Array]) -> str:
        """Return the unseen body that a stray is taken for, or ''; update its position."""
        position = poses[name][:3, 3]
        away_m = float(np.linalg.norm(position - self._tracks[name].position))
        for other, track in self._tracks.items():
            if other in poses or time_s - track.time_s > self.config.recover_s:
                continue
            if float(np.linalg.norm(position - track.position)) < away_m and self._near(
                time_s, track, position
            ):
                track.time_s, track.position = time_s, position.copy()
                return other
        return ''

    def _settled(self, time_s: float, track: _Track, position: Array) -> bool:
        """Record a position elsewhere; return whether the body has stayed there long enough."""
        seen = track.elsewhere
        if seen and not self._within(time_s - seen[-1][0], seen[-1][1], position):
            seen.clear()
        seen[1:] = [(time_s, position.copy())]
        return time_s - seen[0][0] >= self.config.recover_s

    # -- orientations

    def _accept(self, time_s: float, name: str, pose: Array) -> Verdict:
        """Accept a position; return whether the orientation may be used as well."""
        rotation = pose[:3, :3]
        track = self._tracks.setdefault(name, _Track(time_s, pose[:3, 3].copy()))
        unseen_s, track.turned_s = time_s - track.turned_s, time_s
        track.time_s, track.position = time_s, pose[:3, 3].copy()
        track.elsewhere.clear()
        if unseen_s > self.config.recover_s:
            track.rotation = track.flip = None  # it may have any orientation now
        why = self._too_bent(rotation)
        if track.rotation is None:
            why = self._twisted(rotation) or why
            if not why:
                track.rotation = rotation.copy()
            return Verdict(True, False, 'flip', why) if why else ACCEPTED
        turned = _angle(track.rotation, rotation)
        if turned <= self._max_turn:
            track.rotation, track.flip = rotation.copy(), None
            return Verdict(True, False, 'flip', why) if why else ACCEPTED
        # The body did not turn: its markers were confused. While this lasts, it appears turned by
        # a constant rotation in its own frame, so its true orientation can be followed.
        believed = None if track.flip is None else rotation @ track.flip.T
        if believed is None or _angle(track.rotation, believed) > self._max_turn:
            track.flip = track.rotation.T @ rotation
        else:
            track.rotation = believed
        text = f'turned by {np.degrees(turned):.0f} degrees between two frames'
        return Verdict(True, False, 'flip', why or text)

    def _twisted(self, rotation: Array) -> str:
        """
        Return why a body that was not seen before probably appears flipped, or ''.

        One that is followed may twist further: sections that bend far in different directions
        twist the bodies beyond them, but never from one frame to the next.
        """
        twist = np.degrees(twist_of(rotation))
        if abs(twist) <= self.config.max_twist_deg:
            return ''
        return (
            f'first seen twisted by {twist:.0f} degrees against the base '
            f'(limit {self.config.max_twist_deg:g}, plausibility.max_twist_deg: raise it if '
            'the sections bend so far in different directions)'
        )

    def _too_bent(self, rotation: Array) -> str:
        """Return why an arm cannot bring a body into this orientation, or ''."""
        bend = np.degrees(np.arccos(np.clip(rotation[2, 2], -1.0, 1.0)))
        if bend > self.config.max_bend_deg:
            limit = f'{self.config.max_bend_deg:g}, plausibility.max_bend_deg'
            return f'bent by {bend:.0f} degrees (limit {limit})'
        return ''


def twist_of(rotation: Array) -> float:
    """
    Return the twist [rad], -pi to pi, of a rotation (3, 3) about its own z axis.

    The rotation is this twist followed by a bend about an axis across z. For a bend by about 180
    degrees, the twist is undefined and 0 is returned.
    """
    _, _, z, w = quaternion_from_matrix(rotation)
    if np.hypot(z, w) < _NO_TWIST:
        return 0.0
    return float(2.0 * np.arctan2(z if w >= 0.0 else -z, abs(w)))


def _angle(first: Array, second: Array) -> float:
    """Return the angle [rad] between two orientations (3, 3)."""
    cosine = 0.5 * (float(np.sum(first * second)) - 1.0)
    return float(np.arccos(min(max(cosine, -1.0), 1.0)))
