"""Simulated motion capture of the section tips."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import rotation_x, rotation_z
from softarm_ros.plant.config import MocapConfig
from softarm_ros.plant.faults import Faults, InjectedFault
from softarm_ros.plant.mocap_kernels import disturb_poses

Array = NDArray[np.float64]

_EARLY_S = 1e-9  # rounding of the clock must not shift a frame by a step

# The room's frame that an uncalibrated system reports in: turned and moved against the base.
ROOM_FRAME = 'room'
X_RB = pose(rotation_z(np.radians(90.0)) @ rotation_x(np.radians(15.0)), [0.02, -0.01, 0.03])
FUTURE_S, OLD_S = 0.5, 1.0  # by which faulty clocks are wrong


@dataclass(frozen=True)
class PoseMeasurement:
    """
    One frame.

    Attributes
    ----------
    stamp_s
        Time of the measurement [s].
    section_tips : (sections, 4, 4)
        Measured pose of every section's tip in the base frame; the last one is the arm's.
    frame_id
        Frame the sensor says they are in; None: the base.

    """

    stamp_s: float
    section_tips: Array
    frame_id: str | None = None


class Mocap:
    """
    Cameras that see the section tips at a fixed rate, with noise, delay and drop-outs.

    Every imperfection has its own random stream, and every frame draws from all of them whether
    it arrives or not: to switch one imperfection off leaves the others as they are.

    Parameters
    ----------
    config
        Rate, noise, delay, drop-outs.
    seed
        Of all streams.

    """

    def __init__(self, config: MocapConfig, seed: int) -> None:
        self.config = config
        self.enabled = True
        streams = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3)]
        self._position_noise, self._orientation_noise, self._dropouts = streams
        self._frames = 0
        self._blind_until_s = -np.inf
        self._under_way: deque[PoseMeasurement] = deque()
        self._fault = ''
        self._last: PoseMeasurement | None = None  # delivered before the fault

    @property
    def next_frame_s(self) -> float:
        """Time of the next frame [s]."""
        return self._frames / self.config.rate_hz

    @property
    def next_arrival_s(self) -> float:
        """Time at which the next frame arrives that is under way, or is taken next [s]."""
        taken_s = self._under_way[0].stamp_s if self._under_way else self.next_frame_s
        return taken_s + self.config.delay_s

    def due(self, now_s: float) -> bool:
        """Return whether the next frame is to be taken now."""
        return now_s >= self.next_frame_s - _EARLY_S

    def capture(self, now_s: float, section_tips: Array) -> None:
        """Take a frame of the true poses (sections, 4, 4)."""
        while self.due(now_s):
            self._frames += 1
        count = len(section_tips)
        shift = self._position_noise.standard_normal((count, 3))
        tilt = self._orientation_noise.standard_normal((count, 3))
        seen = self._sees(now_s)
        if not (self.enabled and seen):
            return
        measured = disturb_poses(
            section_tips,
            self.config.position_noise_m * shift,
            self.config.orientation_noise_rad * tilt,
        )
        self._under_way.append(PoseMeasurement(now_s, measured))

    def poll(self, now_s: float) -> list[PoseMeasurement]:
        """Return the frames that have arrived since the last call, oldest first."""
        arrived = []
        while self._under_way:
            if self._under_way[0].stamp_s + self.config.delay_s > now_s + _EARLY_S:
                break
            arrived.append(self._delivered(self._under_way.popleft()))
        return arrived

    def faults(self) -> Faults:
        """Return what can go wrong with cameras and their software."""

        def fault(name: str) -> InjectedFault:
            return InjectedFault((), lambda: self._break(name))

        kinds = ('freeze', 'room', 'mislabel', 'stuck', 'future', 'old')
        return {f'cameras {kind}': fault(kind) for kind in kinds} | {'cameras mend': fault('')}

    def _break(self, fault: str) -> None:
        self._fault = fault

    def _delivered(self, frame: PoseMeasurement) -> PoseMeasurement:
        """Return what the cameras' software makes of a frame."""
        if not self._fault:
            self._last = frame
            return frame
        last = frame if self._last is None else self._last
        if self._fault == 'freeze':  # the last poses again, with fresh stamps
            return replace(frame, section_tips=last.section_tips)
        if self._fault == 'stuck':
            return replace(frame, stamp_s=last.stamp_s)
        if self._fault == 'future':
            return replace(frame, stamp_s=frame.stamp_s + FUTURE_S)
        if self._fault == 'old':
            return replace(frame, stamp_s=frame.stamp_s - OLD_S)
        # In the room's frame: said so (room), or called the base all the same (mislabel).
        name = ROOM_FRAME if self._fault == 'room' else None
        return replace(frame, section_tips=X_RB @ frame.section_tips, frame_id=name)

    def _sees(self, now_s: float) -> bool:
        starts = self._dropouts.random() < self.config.dropout_probability
        duration = self._dropouts.exponential(1.0) * self.config.dropout_duration_s
        if now_s < self._blind_until_s:
            return False
        if starts:
            self._blind_until_s = now_s + duration
            return False
        return True
