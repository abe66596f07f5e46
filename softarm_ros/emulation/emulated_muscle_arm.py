"""The muscle arm with the real valve firmware: its outputs switch the plant's relays."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.attachments import ValvedMuscles
from softarm_ros.drivers.valve_config import ValveBoardConfig
from softarm_ros.emulation.firmware_board import LINE_HELP, FirmwareBoard
from softarm_ros.emulation.firmware_build import Emulator
from softarm_ros.plant.pam_arm.config import PamPlantConfig
from softarm_ros.plant.pam_arm.muscle_arm_plant import MuscleArmPlant
from softarm_ros.plant.pam_arm.relays import DEFLATE, INFLATE
from softarm_ros.plant.plant import Plant

DEVICE = 'valves'
_WINDOW_S = 0.5  # in each window, the earliest call of `advance` sets the clock
_DRIFT_S = 0.005  # smaller drifts are ignored: pulses need a steady clock


class EmulatedMuscleArm:
    """
    A valve board whose outputs move a simulated arm; an `EmulatedArm`.

    The firmware runs in real time in its own process and time-stamps its outputs; the arm follows
    in whole steps, at most one step late. Relays are slower than a step, so only the time stamps
    of the outputs matter, not when they are received.

    Parameters
    ----------
    plant
        The simulated arm; its link delay acts on the emulated line.
    config
        Pair of outputs of each muscle.
    emulator
        See `FirmwareBoard`.
    clock, board
        As in `EmulatedCableArm`.

    """

    def __init__(
        self,
        plant: MuscleArmPlant,
        config: ValveBoardConfig,
        emulator: Emulator = 'auto',
        clock: Clock = MONOTONIC,
        board: FirmwareBoard | None = None,
    ) -> None:
        self.plant: Plant = plant
        self._arm = plant
        self._board = board or FirmwareBoard('valves', emulator)
        self._wall = clock
        self._inflate = 2 * np.array(config.pairs)
        self._time_s = plant.time_s
        self._clock = _Clock()
        self._mask = 0
        self._opened = 0
        self._both_open = 0

    @property
    def time_s(self) -> float:
        """Simulated time [s] that has passed; the arm is at most one step behind."""
        return self._time_s

    def start(self, folder: Path) -> None:
        """Start the board; its port becomes the link `valves` in the folder."""
        self._board.start(folder / DEVICE)
        delay_s = self._arm.drives.relays.config.link_delay_s
        self._board.order(f'line delay {1e3 * delay_s:g}')

    def advance(self, duration_s: float) -> None:
        """Apply the board's outputs up to now to the arm; raises as `EmulatedArm`."""
        self._time_s += duration_s
        self._clock.tick(self._time_s, self._wall.now_s())
        self._board.poll()
        while self._board.outputs:
            stamp_s, mask = self._board.outputs.popleft()
            self._switch(mask, self._clock.simulated(stamp_s))
        step = self._arm.config.time_step_s
        while self._arm.time_s + step <= self._time_s + 1e-9:
            self._arm.advance(step)

    def close(self) -> None:
        """End the board; may be called twice."""
        self._board.close()

    def inject(self, fault: str) -> str:
        """Inject or repair a fault, such as `valves unplug`; ValueError lists the known ones."""
        device, _, what = fault.strip().partition(' ')
        if device != DEVICE:
            raise ValueError(f'no device {device!r}; known: {DEVICE} {LINE_HELP}')
        return self._board.inject(what)

    def report(self) -> dict[str, str]:
        """Return the outputs' history: openings, valves open, both valves of a muscle (never)."""
        return {
            'emulator': self._board.emulator,
            'openings': str(self._opened),
            'valves_open': str(self._mask.bit_count()),
            'both_valves_open': str(self._both_open),
            'board_starts': str(1 + self._board.resets),
        }

    def _switch(self, mask: int, at_s: float) -> None:
        self._opened += (mask & ~self._mask).bit_count()
        self._mask = mask
        outputs = np.zeros((self._inflate.size, 2), dtype=np.bool_)
        for muscle, output in enumerate(self._inflate.tolist()):
            outputs[muscle, INFLATE] = mask >> output & 1
            outputs[muscle, DEFLATE] = mask >> (output + 1) & 1
        self._both_open += int(np.count_nonzero(outputs.all(axis=1)))
        self._arm.drives.switch(outputs, at_s, self._arm.time_s)


class _Clock:
    """
    Maps monotonic time stamps to simulated time.

    Calls are late rather than early, so the earliest of the last half to one second counts.
    """

    def __init__(self) -> None:
        self._offsets = [math.inf, math.inf]
        self._window_end_s = -math.inf
        self._offset_s = math.nan

    def tick(self, simulated_s: float, now_s: float) -> None:
        """Record the simulated time that should be reached now."""
        if now_s >= self._window_end_s:
            self._offsets = [self._offsets[1], math.inf]
            self._window_end_s = now_s + _WINDOW_S
        self._offsets[1] = min(self._offsets[1], now_s - simulated_s)
        newest = min(self._offsets)
        if not abs(newest - self._offset_s) <= _DRIFT_S:
            self._offset_s = newest

    def simulated(self, stamp_s: float) -> float:
        """Return the simulated time [s] of a monotonic time stamp; call `tick` first."""
        return stamp_s - self._offset_s


def build(
    plant: MuscleArmPlant,
    config: PamPlantConfig,
    drives: ValvedMuscles,
    seed: int,
    valves: ValveBoardConfig,
) -> EmulatedMuscleArm:
    """Return the valve firmware, connected to the simulated arm."""
    return EmulatedMuscleArm(plant, valves)
