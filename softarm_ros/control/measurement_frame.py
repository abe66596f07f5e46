"""Pairs the tip and section poses that one camera frame measured, by their time stamp."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array

_KEPT = 32  # frames nobody has taken yet: superseded ones, and parts of late ones
_REMEMBERED = 128  # time stamps of frames that were used


@dataclass(frozen=True)
class MeasurementFrame:
    """
    Poses measured in one frame of the pose sensor.

    Attributes
    ----------
    stamp_ns : int
        Time of the measurement [ns]; an integer, so that equal stamps compare equal.
    position : (3,)
        Tip [m], base frame; may hold NaN.
    section_tips : (sections, 4, 4), optional
        Section poses of the same frame; None if there are none.

    """

    stamp_ns: int
    position: Array
    section_tips: Array | None = None


@dataclass
class FrameCounts:
    """Number of frames by outcome: complete, tip only, and so on."""

    complete: int = 0
    tip_only: int = 0
    superseded: int = 0
    expired: int = 0
    unpaired_sections: int = 0
    late: int = 0
    duplicate: int = 0

    @property
    def handed_out(self) -> int:
        """Number of frames used, with sections or without."""
        return self.complete + self.tip_only

    def text(self) -> str:
        """Return the counts in one line."""
        return ', '.join(f'{name} {count}' for name, count in vars(self).items() if count)


@dataclass
class _Open:
    """A tip that has not been handed out yet, and its time of arrival."""

    arrived_s: float
    frame: MeasurementFrame


@dataclass
class _Late:
    """Parts of a frame older than one already handed out, and when the first part arrived."""

    arrived_s: float
    position: Array | None = None
    section_tips: Array | None = None


class FramePairing:
    """
    Pairs tip and sections of one frame by time stamp and hands out each frame once, newest first.

    Until sections first arrive with a tip, no tip waits for them: where only tips are measured,
    nothing is delayed. After that, a tip waits for its sections for `wait_s` or until the next
    tip, and is then used without them. A part older than the frame last handed out is late: its
    frame is not handed out, but kept for `take_others`. A frame older than `max_age_s` has
    expired. Times are seconds of one clock.

    Parameters
    ----------
    wait_s : float
        Longest time for which a tip waits for its sections.
    max_age_s : float
        Longest time after its arrival at which a frame is still handed out.
    absent_s : float
        If sections are missing for longer, that is a problem and tips stop waiting for them.

    """

    def __init__(self, wait_s: float, max_age_s: float, absent_s: float) -> None:
        for name, value in (('wait_s', wait_s), ('max_age_s', max_age_s), ('absent_s', absent_s)):
            if not 0.0 <= value < np.inf:
                raise ValueError(f'{name} = {value}: expected a number >= 0')
        self.wait_s, self.max_age_s, self.absent_s = wait_s, max_age_s, absent_s
        self.counts = FrameCounts()
        self.forget()

    def forget(self) -> None:
        """Forget all frames after their clock was set; keep the counts."""
        self._superseded: deque[MeasurementFrame] = deque(maxlen=_KEPT)
        self._late: dict[int, _Late] = {}
        self._used: deque[int] = deque(maxlen=_REMEMBERED)
        self._tip: _Open | None = None
        self._sections: tuple[float, int, Array] | None = None
        # First and newest arrival of sections, and the newest stamp.
        self._arrived: tuple[float, float, int] | None = None
        self._handed_out_ns: int | None = None
        self._paired_s: float | None = None  # when sections last arrived with a tip
        # Arrival of the first and the newest tip without sections since then.
        self._missing_s: tuple[float, float] | None = None

    def on_tip(self, now_s: float, stamp_ns: int, position: Array) -> None:
        """Take a measured tip position (3,) [m]."""
        if self._is_late(stamp_ns):
            self._keep_late(now_s, stamp_ns, position=np.array(position, dtype=float))
            return
        held = self._tip
        if held is not None and stamp_ns == held.frame.stamp_ns:
            self.counts.duplicate += 1
            return
        if held is not None and stamp_ns < held.frame.stamp_ns:
            self.counts.late += 1
            self._keep_late(now_s, stamp_ns, position=np.array(position, dtype=float))
            return
        if held is not None:
            self.counts.superseded += 1
            self._superseded.append(held.frame)
            self._used.append(held.frame.stamp_ns)
            if held.frame.section_tips is None:
                self._note_missing(held.arrived_s)
        self._tip = _Open(now_s, MeasurementFrame(stamp_ns, np.array(position, dtype=float)))
        self._match(now_s)

    def on_sections(self, now_s: float, stamp_ns: int, section_tips: Array) -> None:
        """Take measured section tips (sections, 4, 4)."""
        first_s = now_s if self._arrived is None else self._arrived[0]
        self._arrived = (first_s, now_s, stamp_ns)
        if self._is_late(stamp_ns):
            self._keep_late(now_s, stamp_ns, section_tips=np.array(section_tips, dtype=float))
            return
        held = self._sections
        matched = self._tip is not None and self._tip.frame.section_tips is not None
        if (held is not None and stamp_ns == held[1]) or (
            matched and self._tip is not None and stamp_ns == self._tip.frame.stamp_ns
        ):
            self.counts.duplicate += 1
            return
        if held is not None and stamp_ns < held[1]:
            self.counts.late += 1
            self._keep_late(now_s, stamp_ns, section_tips=np.array(section_tips, dtype=float))
            return
        if held is not None:
            self.counts.unpaired_sections += 1
            self._keep_late(held[0], held[1], section_tips=held[2])  # its tip may still arrive
        self._sections = (now_s, stamp_ns, np.array(section_tips, dtype=float))
        self._match(now_s)

    def ready(self, now_s: float) -> bool:
        """Return whether `take` would return a frame."""
        return self._tip is not None and now_s >= self.ready_at_s()

    def ready_at_s(self) -> float:
        """Return when the newest tip may be used, with sections or without; inf without a tip."""
        if self._tip is None:
            return np.inf
        if self._tip.frame.section_tips is not None or not self._waits():
            return self._tip.arrived_s
        return self._tip.arrived_s + self.wait_s

    def take(self, now_s: float, *, wait: bool = True) -> MeasurementFrame | None:
        """
        Return the newest frame, once; None if there is none, it still waits or it has expired.

        With `wait` False, the tip does not wait for its sections.
        """
        if self._tip is None or (wait and not self.ready(now_s)):
            return None
        taken, self._tip = self._tip, None
        frame = taken.frame
        self._handed_out_ns = frame.stamp_ns
        self._used.append(frame.stamp_ns)
        held = self._sections
        if held is not None and held[1] <= frame.stamp_ns:
            self._sections = None
            self.counts.unpaired_sections += 1
            self._keep_late(held[0], held[1], section_tips=held[2])
        if now_s - taken.arrived_s > self.max_age_s:
            self.counts.expired += 1
            return None
        if frame.section_tips is None:
            self.counts.tip_only += 1
            self._note_missing(taken.arrived_s)
        else:
            self.counts.complete += 1
        return frame

    def take_others(self, now_s: float) -> list[MeasurementFrame]:
        """Return, once, superseded and late frames: of use to a filter, too old for a loop."""
        taken = list(self._superseded)
        self._superseded.clear()
        for stamp_ns, late in list(self._late.items()):
            waits = self._paired_s is not None and now_s - late.arrived_s < self.wait_s
            if late.position is None or (late.section_tips is None and waits):
                continue
            del self._late[stamp_ns]
            self._used.append(stamp_ns)
            taken.append(MeasurementFrame(stamp_ns, late.position, late.section_tips))
        return taken

    def problem(self) -> str | None:
        """
        Return a text if sections, which used to arrive, have been missing too long, else None.

        Time without tips does not count; missing tips are reported elsewhere.
        """
        if self._paired_s is None or self._missing_s is None:
            return None
        first_s, newest_s = self._missing_s
        absent = newest_s - first_s
        if absent <= self.absent_s:
            return None
        text = (
            f'section poses missing for {1e3 * absent:.0f} ms while tip poses come '
            f'(limit {1e3 * self.absent_s:.0f} ms)'
        )
        come = self._arrived is not None and self._arrived[1] > first_s + self.max_age_s
        return f'{text}; those that come have other stamps{self._apart()}' if come else text

    def unused_sections(self) -> str | None:
        """Return a text if sections have come for long, but never with a tip, else None."""
        if self._arrived is None or self._paired_s is not None or self._missing_s is None:
            return None
        first_s, newest_s, _ = self._arrived
        if newest_s - first_s <= self.absent_s:
            return None
        return (
            'section poses come, but none with the stamp of a tip pose, so they are not '
            f'used{self._apart()}'
        )

    def _apart(self) -> str:
        """Return by how much the newest stamps of sections and tip differ, as text, or ''."""
        newest_ns = self._handed_out_ns if self._tip is None else self._tip.frame.stamp_ns
        if self._arrived is None or newest_ns is None:
            return ''
        return f' (the newest by {1e-6 * (self._arrived[2] - newest_ns):+.3f} ms)'

    def _waits(self) -> bool:
        """Return whether sections are expected: some have arrived, and not too long ago."""
        if self._paired_s is None or self._tip is None:
            return False
        return self.problem() is None

    def _is_late(self, stamp_ns: int) -> bool:
        if self._handed_out_ns is None or stamp_ns > self._handed_out_ns:
            return False
        if stamp_ns == self._handed_out_ns:
            self.counts.duplicate += 1
        else:
            self.counts.late += 1
        return True

    def _keep_late(
        self,
        now_s: float,
        stamp_ns: int,
        position: Array | None = None,
        section_tips: Array | None = None,
    ) -> None:
        """Keep a part of a late frame, once, unless that frame was used."""
        if stamp_ns in self._used:
            return
        late = self._late.setdefault(stamp_ns, _Late(now_s))
        if late.position is None:
            late.position = position
        if late.section_tips is None:
            late.section_tips = section_tips
        while len(self._late) > _KEPT:
            del self._late[next(iter(self._late))]

    def _match(self, now_s: float) -> None:
        tip, sections = self._tip, self._sections
        if tip is None or sections is None:
            return
        arrived_s, stamp_ns, tips = sections
        if stamp_ns > tip.frame.stamp_ns:
            return  # the tip of this frame has not arrived yet
        self._sections = None
        if stamp_ns < tip.frame.stamp_ns or now_s - arrived_s > self.max_age_s:
            self.counts.unpaired_sections += 1
            self._keep_late(arrived_s, stamp_ns, section_tips=tips)
            return
        whole = MeasurementFrame(stamp_ns, tip.frame.position, tips)
        self._tip = _Open(tip.arrived_s, whole)
        self._paired_s, self._missing_s = now_s, None

    def _note_missing(self, arrived_s: float) -> None:
        first_s, _ = self._missing_s or (arrived_s, arrived_s)
        self._missing_s = (first_s, arrived_s)
