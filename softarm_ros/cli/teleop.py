"""Motion of a target by keys or a gamepad, independent of terminal and topics."""

from __future__ import annotations

import re

import numpy as np

from softarm_ros.geometry.arrays import Array

# Direction of each key, base frame.
KEYS: dict[str, tuple[float, float, float]] = {
    'w': (1.0, 0.0, 0.0),
    's': (-1.0, 0.0, 0.0),
    'a': (0.0, 1.0, 0.0),
    'd': (0.0, -1.0, 0.0),
    'r': (0.0, 0.0, 1.0),
    'f': (0.0, 0.0, -1.0),
}
HELD_S = 0.25  # time a key counts as held: terminals repeat keys but report no release
SILENT_S = 0.2  # a gamepad silent for longer than this has no effect
DEAD_ZONE = 0.1  # of a stick's deflection
LEAD_S = 1.5  # the target's lead over the reference is at most this times its speed
# A terminal sends an arrow as `ESC [ A`, F4 as `ESC O S`, Alt-w as `ESC w`.
_SPECIAL_KEY = re.compile(r'\x1b(\[\[?[\d;?]*.?|O.?|.)?', re.DOTALL)
_BEGUN_KEY = re.compile(r'\x1b(\[\[?[\d;?]*|O)?\Z')
_AXES = (1, 0, 4)  # as joy_node numbers them: left stick up, left; right stick up


class Typing:
    """Letters in a terminal's input, read piece by piece: a network may split a special key."""

    def __init__(self) -> None:
        self._begun = ''

    def letters(self, piece: str) -> str:
        """
        Return the keys in the next piece, in lower case, without arrow and function keys.

        The beginning of a special key waits for the next piece. If that is empty, it was the
        Escape key, and has no effect on later keys.
        """
        typed, self._begun = self._begun + piece, ''
        begun = _BEGUN_KEY.search(typed) if piece else None
        if begun is not None:
            typed, self._begun = typed[: begun.start()], begun[0]
        return _SPECIAL_KEY.sub('', typed).lower()


class TargetMover:
    """
    A target moved by keys or sticks.

    Sticks have no effect until they have been seen at rest, at the beginning, after each halt and
    after each silence of the gamepad. So a stick that is held or stuck, or an axis with another
    rest value, cannot move a starting arm, nor one whose gamepad is plugged in again.

    Parameters
    ----------
    start : (3,)
        Initial position [m].
    speed_m_s : float
        Speed of the target.

    """

    def __init__(self, start: Array, speed_m_s: float) -> None:
        self.target = np.array(start, dtype=float)
        self.speed_m_s = speed_m_s
        self._keys: dict[str, float] = {}
        self._stick, self._stick_s = np.zeros(3), -np.inf
        self._centred = False  # whether sticks were seen at rest since the last halt or silence

    def press(self, key: str, now_s: float) -> bool:
        """Handle a pressed key; return whether it moves the target."""
        if key not in KEYS:
            return False
        self._keys[key] = now_s
        return True

    def axes(self, values: list[float], now_s: float) -> None:
        """
        Handle the axes of a gamepad, each from -1 to 1; missing axes count as 0.

        A message without any axes does not show that the sticks are at rest; it is ignored.
        """
        if not values:
            return
        stick = np.array([values[i] if i < len(values) else 0.0 for i in _AXES])
        self._centred &= not self._silent(now_s)
        finite = np.isfinite(stick)
        stick = np.where(finite, np.clip(stick, -1.0, 1.0), 0.0)
        self._stick = np.where(np.abs(stick) > DEAD_ZONE, stick, 0.0)
        self._stick_s = now_s
        self._centred |= bool(finite.all()) and not self._stick.any()

    def _silent(self, now_s: float) -> bool:
        return now_s - self._stick_s > SILENT_S

    def refusal(self, now_s: float) -> str:
        """Return the reason why sticks are ignored now; '' if none are ignored."""
        if self._silent(now_s):
            if not self._stick.any():
                return ''
            silent_s = now_s - self._stick_s
            return f'gamepad silent for {silent_s:.1f} s; expected a message every {SILENT_S:g} s'
        if self._centred:
            return ''
        off = ', '.join(
            f'axis {i} = {v:.2f}' for i, v in zip(_AXES, self._stick, strict=True) if v
        )
        return f'sticks are ignored until they are released ({off or "axes that are not finite"})'

    def halt(self, reference: Array) -> None:
        """Set the target back to the reference (3,) [m]."""
        self._keys.clear()
        self._centred &= not self._stick.any()
        self.target = np.array(reference, dtype=float)

    def advance(self, now_s: float, period_s: float, reference: Array) -> Array:
        """Move the target by one period, close to the reference (3,) [m]; return it (3,) [m]."""
        way = np.zeros(3)
        for key, pressed_s in self._keys.items():
            if now_s - pressed_s <= HELD_S:
                way += KEYS[key]
        if self._centred and not self._silent(now_s):
            way += self._stick
        size = float(np.linalg.norm(way))
        if size > 1.0:
            way /= size
        self.target = self.target + self.speed_m_s * period_s * way
        ahead = self.target - reference
        far, most = float(np.linalg.norm(ahead)), LEAD_S * self.speed_m_s
        if far > most:
            self.target = reference + ahead * (most / far)
        return self.target
