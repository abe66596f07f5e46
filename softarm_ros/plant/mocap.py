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

_EARLY_S = 1e-9  # tolerance: rounding of the clock must not shift a frame by a step

# Frame of the room, in which an uncalibrated system reports: rotated and shifted from the base.
ROOM_FRAME = 'room'
X_RB = pose(rotation_z(np.radians(90.0)) @ rotation_x(np.radians(15.0)), [0.02, -0.01, 0.03])
FUTURE_S, OLD_S = 0.5, 1.0  # errors of faulty clocks
FLIP = pose(rotation_z(np.pi), np.zeros(3))


@dataclass(frozen=True)
class PoseMeasurement:
    """
    One frame of the pose sensor.

    Attributes
    ----------
    stamp_s
        Time of the measurement [s].
    section_tips : (sections, 4, 4)
        Measured pose of every section's tip in the base frame; the last one is the arm's.
    frame_id
        Frame that the sensor states for the poses; None: the base.

    """

    stamp_s: float
    section_tips: Array
    frame_id: str | None = None


class Mocap:
    """
    Cameras that measure the section tips at a fixed rate, with noise, delay and drop-outs.

    Their base frame is miscalibrated, their markers are not exactly at the tips, and the
    measurements drift.

    Every imperfection has its own random stream, and every frame draws from all streams whether it
    arrives or not, so switching one imperfection off does not change the others.

    Parameters
    ----------
    config
        Rate, noise, delay, drop-outs, errors of calibration.
    seed
        Seed of all streams.

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
        self._under_way: deque[tuple[float, PoseMeasurement]] = deque()  # with time of arrival
        # Present faults by kind, each with the newest frame from before it.
        self._faults: dict[str, PoseMeasurement | None] = {}
        self._newest: PoseMeasurement | None = None  # as captured

    @property
    def next_frame_s(self) -> float:
        """Time of the next frame [s]."""
        return self._frames / self.config.rate_hz

    @property
    def next_arrival_s(self) -> float:
        """Arrival time of the oldest frame under way, or else of the next one [s]."""
        return (
            self._under_way[0][0] if self._under_way else self.next_frame_s + self.config.delay_s
        )

    def due(self, now_s: float) -> bool:
        """Return whether the next frame is due."""
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
        """Return the possible faults of the cameras and their software."""

        def fault(name: str) -> InjectedFault:
            return InjectedFault((), lambda: self._break(name))

        kinds = ('freeze', 'room', 'mislabel', 'stuck', 'future', 'old')
        mend = InjectedFault((), self._faults.clear)
        return {f'cameras {kind}': fault(kind) for kind in kinds} | {'cameras mend': mend}

    def _break(self, fault: str) -> None:
        """Add a fault to the present ones."""
        self._faults.setdefault(fault, self._newest)

    def _delivered(self, frame: PoseMeasurement) -> PoseMeasurement:
        """Return a frame as the cameras' software delivers it, with the present faults."""
        self._newest = frame
        faults, tips, stamp_s = self._faults, frame.section_tips, frame.stamp_s
        if 'freeze' in faults:  # the last poses again, with fresh stamps
            tips = (faults['freeze'] or frame).section_tips
        if 'stuck' in faults:
            stamp_s = (faults['stuck'] or frame).stamp_s
        stamp_s += (FUTURE_S if 'future' in faults else 0.0) - (OLD_S if 'old' in faults else 0.0)
        # In the room's frame: reported as such (room), or wrongly as the base (mislabel).
        if 'room' in faults or 'mislabel' in faults:
            tips = X_RB @ tips
        return PoseMeasurement(stamp_s, tips, ROOM_FRAME if 'room' in faults else None)

    def _drifted(self, now_s: float) -> Array:
        """Return the drift (3,) [m] now: an Ornstein-Uhlenbeck process."""
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
