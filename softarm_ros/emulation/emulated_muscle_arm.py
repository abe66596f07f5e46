"""The muscle arm with the real valve firmware: its outputs switch the relays of the plant."""

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
_WINDOW_S = 0.5  # over which the earliest `advance` tells the clock
_DRIFT_S = 0.005  # below that, pulses are better served by a clock that stays


class EmulatedMuscleArm:
    """
    A valve board whose outputs move a simulated arm; meets `EmulatedArm`.

    The firmware runs in real time, in a process of its own, and stamps what its outputs do; the
    arm follows in whole steps, a step late at most. Relays take longer than that, so the stamps
    of the outputs are what counts, not when they are noticed.

    Parameters
    ----------
    plant
        The arm; all of its link's delay is on the emulated line.
    config
        Which outputs are whose.
    emulator
        See `FirmwareBoard`.
    clock, board
        As of `EmulatedCableArm`.

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
        """Simulated time [s] that has passed; the arm is at most a step behind."""
        return self._time_s

    def start(self, folder: Path) -> None:
        """Start the board; its port is the link `valves` in the folder."""
        self._board.start(folder / DEVICE)
        delay_s = self._arm.drives.relays.config.link_delay_s
        self._board.order(f'line delay {1e3 * delay_s:g}')

    def advance(self, duration_s: float) -> None:
        """Let the outputs of the board up to now act on the arm; raises as `EmulatedArm` says."""
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
        """Break or repair the board or its line: `valves unplug`; ValueError lists the faults."""
        device, _, what = fault.strip().partition(' ')
        if device != DEVICE:
            raise ValueError(f'no device {device!r}; known: {DEVICE} {LINE_HELP}')
        return self._board.inject(what)

    def report(self) -> dict[str, str]:
        """Return what the outputs did: openings, which are open, both of a muscle (never)."""
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
    Simulated time of monotonic stamps.

    Calls come late rather than early: the earliest of the last half to one second count.
    """

    def __init__(self) -> None:
        self._offsets = [math.inf, math.inf]
        self._window_end_s = -math.inf
        self._offset_s = math.nan

    def tick(self, simulated_s: float, now_s: float) -> None:
        """Note how much simulated time should have passed by now."""
        if now_s >= self._window_end_s:
            self._offsets = [self._offsets[1], math.inf]
            self._window_end_s = now_s + _WINDOW_S
        self._offsets[1] = min(self._offsets[1], now_s - simulated_s)
        newest = min(self._offsets)
        if not abs(newest - self._offset_s) <= _DRIFT_S:
            self._offset_s = newest

    def simulated(self, stamp_s: float) -> float:
        """Return the simulated time [s] of a monotonic stamp; `tick` comes first."""
        return stamp_s - self._offset_s


def build(
    plant: MuscleArmPlant,
    config: PamPlantConfig,
    drives: ValvedMuscles,
    seed: int,
    valves: ValveBoardConfig,
) -> EmulatedMuscleArm:
    """Return the valve firmware on the simulated arm."""
    return EmulatedMuscleArm(plant, valves)
