"""Bench for the muscles of the simulated arm before assembly: hung up, with weights below."""

from __future__ import annotations

import numpy as np

from softarm_ros.drivers.valve_config import ValveDriveConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.pam_arm.config import PamPlantConfig
from softarm_ros.plant.pam_arm.muscle_build import build_muscles
from softarm_ros.plant.pam_arm.muscle_kernels import hang_muscles
from softarm_ros.plant.pam_arm.relays import Relays
from softarm_ros.plant.pam_arm.valves import ValveBoard

_VALVE_STREAM, _RULER_STREAM = 103, 104
_AFTER_S = 0.1  # wait until the slowest valve has closed


class MuscleBench:
    """
    All muscles of an arm side by side, each with its own valves, weight and ruler.

    They are full at first. A weight swings out before the ruler is read: only its rest position
    matters.

    Parameters
    ----------
    config, drive
        Of the arm.
    count : int
        Number of muscles.
    seed : int
        Seed of all random numbers; the muscles are those of the arm with this seed.
    ruler_noise_m : float
        Standard deviation of one reading.

    """

    def __init__(
        self,
        config: PamPlantConfig,
        drive: ValveDriveConfig,
        count: int,
        seed: int,
        ruler_noise_m: float,
    ) -> None:
        self._build = build_muscles(config, count, seed)
        self._relays = Relays(count, config.relays, np.random.default_rng([seed, _VALVE_STREAM]))
        self._board = ValveBoard(drive, self._relays)
        self._ruler = np.random.default_rng([seed, _RULER_STREAM])
        self._noise, self._step_s = ruler_noise_m, config.time_step_s
        self._length = np.full(count, config.full_length_m)
        self._gas, self._folds = self._build.vented_N * self._length, self._length.copy()
        self._tension = np.zeros(count)
        self._now_s = 0.0

    def hang(self, force_N: float) -> None:
        """Hang a weight on every muscle, in place of the previous one."""
        self._tension[:] = force_N

    def open(self, inflate: bool, duration_s: float) -> None:
        """Open one valve of every muscle for a total duration, in pulses the board accepts."""
        drive, left = self._board.drive, round(duration_s * 1e3)
        longest, shortest = round(drive.longest_pulse_s * 1e3), round(drive.shortest_pulse_s * 1e3)
        while left > 0:
            # The remainder must not be too short for a pulse of its own.
            ticks = left if left <= longest else min(longest, left - shortest)
            for muscle in range(len(self._gas)):
                self._board.fire(self._now_s, muscle, inflate, ticks)
            self.wait(1e-3 * ticks + drive.guard_s + _AFTER_S)
            left -= ticks

    def read(self, readings: int) -> Array:
        """Return the mean of several readings of each ruler (m,) [m]."""
        self.wait(0.0)
        noise = self._noise * self._ruler.standard_normal((readings, len(self._length)))
        return np.asarray(self._length + self._build.offset + noise.mean(axis=0))

    def wait(self, duration_s: float) -> None:
        """Let time pass, at least one step, in which the weights come to rest."""
        steps = max(round(duration_s / self._step_s), 1)
        acting, stiffness = np.empty_like(self._gas), np.empty_like(self._gas)
        hang_muscles(
            self._gas, self._folds, self._length, self._tension, self._relays.open_s,
            self._relays.close_s, self._build.throttles, self._build.skeleton,
            self._build.limits, acting, stiffness, self._now_s, self._step_s, steps,
        )  # fmt: skip
        self._now_s += self._step_s * steps
