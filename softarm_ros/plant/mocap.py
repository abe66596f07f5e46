"""Simulated motion capture of the section tips."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import exp_so3, rotation_x, rotation_z
from softarm_ros.plant.config import MocapConfig
from softarm_ros.plant.faults import Faults, InjectedFault
from softarm_ros.plant.mocap_kernels import disturb_poses

_EARLY_S = 1e-9  # rounding of the clock must not shift a frame by a step

# The room's frame that an uncalibrated system reports in: turned and moved against the base.
ROOM_FRAME = 'room'
X_RB = pose(rotation_z(np.radians(90.0)) @ rotation_x(np.radians(15.0)), [0.02, -0.01, 0.03])
FUTURE_S, OLD_S = 0.5, 1.0  # by which faulty clocks are wrong
FLIP = pose(rotation_z(np.pi), np.zeros(3))


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

    Their base frame is calibrated wrongly, what they see is not quite the tip, and both wander.

    Every imperfection has its own random stream, and every frame draws from all of them whether
    it arrives or not: to switch one imperfection off leaves the others as they are.

    Parameters
    ----------
    config
        Rate, noise, delay, drop-outs, errors of calibration.
    seed
        Of all streams.

    """

    def __init__(self, config: MocapConfig, seed: int) -> None:
        self.config = config
        self.enabled = True
        streams = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(6)]
        self._position_noise, self._orientation_noise, self._dropouts = streams[:3]
        self._drifting, self._lateness, self._flips = streams[3:]
        turn = exp_so3(np.radians(config.frame_turn_deg))
        self._frame = pose(turn, np.array(config.frame_shift_m))
        self._marker = pose(np.eye(3), np.array(config.marker_offset_m))
        self._drift = config.drift_m * self._drifting.standard_normal(3)
        self._drifted_s = 0.0
        self._frames = 0
        self._blind_until_s = -np.inf
        self._under_way: deque[tuple[float, PoseMeasurement]] = deque()  # when each arrives
        # Kinds of faults there are now, each with the newest frame from before it.
        self._faults: dict[str, PoseMeasurement | None] = {}
        self._newest: PoseMeasurement | None = None  # as captured

    @property
    def next_frame_s(self) -> float:
        """Time of the next frame [s]."""
        return self._frames / self.config.rate_hz

    @property
    def next_arrival_s(self) -> float:
        """Time at which the next frame arrives that is under way, or is taken next [s]."""
        return (
            self._under_way[0][0] if self._under_way else self.next_frame_s + self.config.delay_s
        )

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
        flipped = self._flips.random(count) < self.config.flip_probability
        late_s = self.config.jitter_s * self._lateness.random()
        drift = self._drifted(now_s)
        seen = self._sees(now_s)
        if not (self.enabled and seen):
            return
        measured = disturb_poses(
            self._frame,
            section_tips,
            self._marker,
            shift,
            self.config.position_noise_m,
            drift,
            tilt,
            self.config.orientation_noise_rad,
        )
        if flipped.any():
            measured[flipped] = measured[flipped] @ FLIP
        self._under_way.append(
            (now_s + self.config.delay_s + late_s, PoseMeasurement(now_s, measured))
        )

    def poll(self, now_s: float) -> list[PoseMeasurement]:
        """Return the frames that have arrived since the last call, oldest first."""
        arrived = []
        while self._under_way:
            if self._under_way[0][0] > now_s + _EARLY_S:
                break
            arrived.append(self._delivered(self._under_way.popleft()[1]))
        return arrived

    def faults(self) -> Faults:
        """Return what can go wrong with cameras and their software."""

        def fault(name: str) -> InjectedFault:
            return InjectedFault((), lambda: self._break(name))

        kinds = ('freeze', 'room', 'mislabel', 'stuck', 'future', 'old')
        mend = InjectedFault((), self._faults.clear)
        return {f'cameras {kind}': fault(kind) for kind in kinds} | {'cameras mend': mend}

    def _break(self, fault: str) -> None:
        """Break something beside what is broken."""
        self._faults.setdefault(fault, self._newest)

    def _delivered(self, frame: PoseMeasurement) -> PoseMeasurement:
        """Return what the cameras' software makes of a frame."""
        self._newest = frame
        faults, tips, stamp_s = self._faults, frame.section_tips, frame.stamp_s
        if 'freeze' in faults:  # the last poses again, with fresh stamps
            tips = (faults['freeze'] or frame).section_tips
        if 'stuck' in faults:
            stamp_s = (faults['stuck'] or frame).stamp_s
        stamp_s += (FUTURE_S if 'future' in faults else 0.0) - (OLD_S if 'old' in faults else 0.0)
        # In the room's frame: said so (room), or called the base all the same (mislabel).
        if 'room' in faults or 'mislabel' in faults:
            tips = X_RB @ tips
        return PoseMeasurement(stamp_s, tips, ROOM_FRAME if 'room' in faults else None)

    def _drifted(self, now_s: float) -> Array:
        """Return the wandering (3,) [m] now: a random walk that forgets (Ornstein-Uhlenbeck)."""
        kept = math.exp(-(now_s - self._drifted_s) / self.config.drift_time_s)
        new = self.config.drift_m * math.sqrt(1.0 - kept * kept)
        self._drift = kept * self._drift + new * self._drifting.standard_normal(3)
        self._drifted_s = now_s
        return self._drift

    def _sees(self, now_s: float) -> bool:
        starts = self._dropouts.random() < self.config.dropout_probability
        duration = self._dropouts.exponential(1.0) * self.config.dropout_duration_s
        if now_s < self._blind_until_s:
            return False
        if starts:
            self._blind_until_s = now_s + duration
            return False
        return True
