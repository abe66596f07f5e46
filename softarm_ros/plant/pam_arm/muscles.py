"""Valves, filling and muscles that move the backbone of the simulated muscle arm."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softarm_ros.drivers.valve_config import ValveDriveConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.actuator_state import ActuatorState
from softarm_ros.plant.faults import Faults, InjectedFault, actuator_word
from softarm_ros.plant.pam_arm.backbone import MovingBackbone
from softarm_ros.plant.pam_arm.config import PamPlantConfig
from softarm_ros.plant.pam_arm.muscle_build import build_muscles
from softarm_ros.plant.pam_arm.muscle_kernels import drive_muscle_arm, muscle_springs_into
from softarm_ros.plant.pam_arm.relays import Relays
from softarm_ros.plant.pam_arm.valves import MuscleDrive, ValveBoard

_VALVE_STREAM = 102  # separate from those of the build and of the sensor
_SETTLINGS = 4
_BURST_S = 0.1  # time constant with which a burst muscle fills with air


class Muscles:
    """
    Muscles with valves, relays, board and driver; they bring the arm to rest, homed.

    Homed means vented, at atmospheric pressure; the driver is told the lengths in this state.

    Parameters
    ----------
    config, drive, home_length_m, names, load_of, seed
        As in `MuscleArmPlant`.
    body
        The body that they move.

    Attributes
    ----------
    board
        Valve board, with the log of all pulses.
    relays
        Relays and valves behind the board.

    """

    def __init__(
        self,
        config: PamPlantConfig,
        drive: ValveDriveConfig,
        home_length_m: ArrayLike,
        names: Sequence[str],
        load_of: Callable[[Array], Array],
        body: MovingBackbone,
        seed: int,
    ) -> None:
        home = np.array(home_length_m, dtype=np.float64)
        self.config = config
        self._names = tuple(names)
        self._build = build_muscles(config, home.size, seed)
        valves = np.random.default_rng([seed, _VALVE_STREAM])
        self.relays = Relays(home.size, config.relays, valves)
        self.board = ValveBoard(drive, self.relays)
        self._drive = MuscleDrive(drive, self.board, home, load_of)
        self._length = np.full(home.size, config.backbone.length_m / (home.size // 3))
        self._gas, self._folds = self._build.vented_N * self._length, self._length.copy()
        self._acting, self._stiffness = np.empty_like(home), np.empty_like(home)
        self._body = body
        self._torn = np.zeros(home.size, dtype=bool)
        self._now_s = 0.0  # time to which everything has advanced
        self._settle()

    def switch(self, outputs: NDArray[np.bool_], at_s: float, now_s: float) -> None:
        """
        Switch the relays to the outputs of an external valve board, instead of commands.

        Parameters
        ----------
        outputs : (m, 2)
            Whether the relays of the deflating and of the inflating valves are on.
        at_s
            When the outputs changed, simulated time [s]; may be slightly late: `Relays.switch`.
        now_s
            Time to which the arm has advanced [s].

        Raises
        ------
        ValueError
            If the shape is wrong.

        """
        if outputs.shape != self.relays.open_s.shape:
            raise ValueError(
                f'outputs have shape {outputs.shape}; expected {self.relays.open_s.shape}'
            )
        self.relays.switch(outputs, at_s, now_s)

    def command(self, target: ArrayLike, now_s: float, duration_s: float) -> None:
        """Send the pulses towards lengths (m,) [m]; see `Drives`."""
        self._drive.command(now_s, self._checked(target), duration_s)

    def hold(self, now_s: float) -> None:
        """Close all valves: the muscles keep their gas."""
        self._drive.hold(now_s)

    def advance(self, now_s: float, h: float, steps: int) -> None:
        """Advance gas, muscles and backbone together; see `Drives`."""
        body, relays, build = self._body, self.relays, self._build
        relays.catch_up(now_s)
        left = np.where(self._torn, np.exp(-h * steps / _BURST_S), 1.0)
        vented = build.vented_N * self._length
        self._gas[:] = vented + left * (self._gas - vented)
        status, joint = drive_muscle_arm(
            self._gas, self._folds, self._length, relays.open_s, relays.close_s,
            build.throttles, build.skeleton, build.offset, build.limits, self._acting,
            self._stiffness, body.body, body.state, body.loads, body.medium, body.links,
            self.config.muscle_damping_time_s, body.scratch, now_s, h, steps,
        )  # fmt: skip
        body.check(status, joint)
        self._now_s = now_s + h * steps

    def state(self) -> ActuatorState:
        """
        Return estimated length [m], its rate [m/s] and muscle force [N], each (m,).

        The estimate is the driver's, from valve times. No hardware measures the force.
        """
        return ActuatorState(
            self._drive.reading(self._now_s),
            self._drive.velocity.copy(),
            self._body.state.tension.copy(),
        )

    @property
    def gas(self) -> Array:
        """Gas in the muscles (m,) [N m]: pressure times cross-section times length."""
        return self._gas.copy()

    def faults(self) -> Faults:
        """Return the possible faults: muscles burst."""
        return {'muscle burst': InjectedFault((actuator_word(self._names),), self._burst)}

    def _burst(self, muscle: int) -> None:
        """Make a muscle lose its vacuum: its skeleton extends it to full length."""
        self._torn[muscle] = True

    def _checked(self, command: ArrayLike) -> Array:
        target = np.array(command, dtype=np.float64)
        if target.shape != (len(self._names),):
            raise ValueError(f'command has shape {target.shape}; expected ({len(self._names)},)')
        low, high = self._drive.config.range_m
        for name, value in zip(self._names, target):
            if not np.isfinite(value):
                raise ValueError(f'{name} = {value}: expected a finite number of m')
            if not low <= value <= high:
                raise ValueError(f'{name} = {value:.6g} m outside [{low:.6g}, {high:.6g}] m')
        return target

    def _settle(self) -> None:
        """Come to rest with open bags, by a few iterations on the lengths of their springs."""
        build = self._build
        for _ in range(_SETTLINGS):
            muscle_springs_into(
                self._gas, self._folds, self._length, build.skeleton, build.limits,
                self._acting, self._stiffness,
            )  # fmt: skip
            self._body.settle(self._acting + build.offset, self._stiffness)
            self._length[:] = self._body.muscle_lengths() - build.offset
            self._gas[:] = build.vented_N * self._length
