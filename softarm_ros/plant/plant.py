"""The simulated arm, whatever its mechanics: a body, drives that move it, sensors of poses."""

from __future__ import annotations

import math
from collections import deque
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.answers import described, has_floats, misfit, numbers
from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.actuator_state import ActuatorState
from softarm_ros.plant.config import PlantBase
from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.faults import Faults, InjectedFault, inject, kilograms
from softarm_ros.plant.mocap import Mocap, PoseMeasurement

_KEPT_TIPS = 2000  # of those nobody asks for


class Body(Protocol):
    """Where the arm is."""

    def section_tips(self) -> Array:
        """Return the true pose (sections, 4, 4) of every measured tip in the base frame."""
        ...

    def centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] of the true centreline, evenly spaced in arc length."""
        ...


class Drives(Protocol):
    """
    The actuators, with what stands in for their drivers and what else senses them.

    Drives, body and medium are solved as one system, so it is the drives that move the body.
    """

    def command(self, target: ArrayLike, now_s: float, duration_s: float) -> None:
        """
        Take targets (m,), in the actuators' unit, for the coming time.

        Raises
        ------
        ValueError
            If they have the wrong shape or are not ones the actuators can have, naming the
            actuator. Nothing changes.

        """
        ...

    def hold(self, now_s: float) -> None:
        """Let the actuators stop as fast as they can and stay where they are."""
        ...

    def advance(self, now_s: float, h: float, steps: int) -> None:
        """
        Move on by `steps` steps of `h` [s].

        Raises
        ------
        PlantError
            If the arm leaves the range of the simulation.

        """
        ...

    def state(self) -> ActuatorState:
        """Return what the drivers measure, in the actuators' units, each (m,)."""
        ...

    def faults(self) -> Faults:
        """Return what can break in them and in the arm."""
        ...


BodyT = TypeVar('BodyT', bound=Body)
DrivesT = TypeVar('DrivesT', bound=Drives)


class Plant(Generic[BodyT, DrivesT]):
    """
    Stands in for drivers, arm and sensors in simulation. It never sleeps.

    It starts at rest under its own weight, with every actuator where the model's
    `rest_configuration` has it. Nothing sees it until `look_with`.

    Parameters
    ----------
    config
        Everything that the controller does not know.
    body, drives
        At rest.

    Attributes
    ----------
    time_s
        Simulated time [s], from 0.
    config, body, drives
        The parts; body and drives are the plant's to move.

    """

    def __init__(self, config: PlantBase, body: BodyT, drives: DrivesT) -> None:
        self.time_s = 0.0
        self.config = config
        self.body, self.drives = body, drives
        self._mocap: Mocap | None = None
        self._true_tips: deque[tuple[float, Array]] = deque(maxlen=_KEPT_TIPS)
        # How many actuators (as was said) and measured tips there are, or by the first answers.
        self._count: tuple[int, ...] | None = None
        self._sections: tuple[int, ...] | None = None

    def expect(self, actuators: int) -> None:
        """Take how many the arm has; PlantError follows where the drives report others."""
        self._count = (actuators,)

    def look_with(self, sensor: Mocap) -> None:
        """Let a sensor of poses see the arm, from now on, in place of the one it has."""
        self._mocap = sensor
        self._true_tips.clear()
        self._look(sensor)

    @property
    def mocap_enabled(self) -> bool:
        """Whether the pose sensor sees the arm."""
        return self._mocap is not None and self._mocap.enabled

    @mocap_enabled.setter
    def mocap_enabled(self, enabled: bool) -> None:
        if self._mocap is not None:
            self._mocap.enabled = bool(enabled)

    def step(self, command: ArrayLike | None, duration_s: float) -> None:
        """
        Advance the simulation under commands.

        Parameters
        ----------
        command : (m,) or None
            Targets in the actuators' unit; None holds like `hold`.
        duration_s
            By how much, in equal internal steps of at most the `time_step_s` of the plant.

        Raises
        ------
        ValueError
            If the command has the wrong shape or is not one the actuators can have, naming the
            actuator, or the duration is not positive. Nothing moves.
        PlantError
            If the arm leaves the range of the simulation.

        """
        require_duration(duration_s)
        if command is None:
            self.hold()
        else:
            self.drives.command(command, self.time_s, duration_s)
        self.advance(duration_s)

    def advance(self, duration_s: float) -> None:
        """
        Advance under the commands the drives have, with the frames that fall due.

        Raises as `step` does.
        """
        require_duration(duration_s)
        steps = math.ceil(duration_s / self.config.time_step_s - 1e-6)
        h = duration_s / steps
        start, done = self.time_s, 0
        while done < steps:
            # Up to the first step at or after the next frame.
            next_s = math.inf if self._mocap is None else self._mocap.next_frame_s
            until_frame = math.ceil(min((next_s - start) / h - 1e-6, steps)) - done
            count = min(max(until_frame, 1), steps - done)
            self.drives.advance(self.time_s, h, count)
            done += count
            self.time_s = start + (duration_s if done == steps else done * h)
            if self._mocap is not None and self._mocap.due(self.time_s):
                self._look(self._mocap)

    def _look(self, sensor: Mocap) -> None:
        """Take a frame, and note where the tip truly is, seen or not."""
        tips = self._tips_checked(self.body.section_tips(), self.body)
        self._true_tips.append((self.time_s, tips[-1, :3, 3].copy()))
        sensor.capture(self.time_s, tips)

    def hold(self) -> None:
        """Let the actuators stop as fast as they can and stay where they are."""
        self.drives.hold(self.time_s)

    def actuator_state(self) -> ActuatorState:
        """
        Return what the drivers measure, in the actuators' units, each (m,).

        Raises
        ------
        PlantError
            If the drives answer something else, or another number of actuators than before.

        """
        state = self.drives.state()
        named = f'drives {type(self.drives).__name__}'
        if not isinstance(state, ActuatorState):
            raise PlantError(f'{named} returned {described(state)}; expected an ActuatorState')
        for kind in ('position', 'velocity', 'effort'):
            value = getattr(state, kind)
            self._count = np.shape(value)[:1] if self._count is None else self._count
            if not has_floats(value, self._count):
                expected = numbers(self._count) or 'a list of'
                raise PlantError(misfit(named, kind, value, expected))
        return state

    def _tips_checked(self, tips: Array, whose: object) -> Array:
        """Return poses of section tips; PlantError if they are none, or another number of them."""
        kind = 'sensor' if whose is self._mocap else 'body'
        sections = np.shape(tips)[:1] if self._sections is None else self._sections
        if not has_floats(tips, (*sections, 4, 4)):
            named = f'{kind} {type(whose).__name__}'
            expected = numbers((*sections, 4, 4))
            raise PlantError(misfit(named, 'section tips', tips, expected))
        self._sections = sections
        return tips

    def faults(self) -> Faults:
        """Return what can break: the cameras, what the drives have of their own, and the load."""
        seen = {} if self._mocap is None else self._mocap.faults()
        known = {**seen, **self.drives.faults()}
        for carrier in (self.body, self.drives):
            if isinstance(carrier, Carrying):
                known['tip load'] = InjectedFault((('KG', kilograms),), carrier.hang)
        return known

    def inject(self, fault: str) -> str:
        """
        Break something, `cameras freeze` for example; return what was done.

        Raises
        ------
        ValueError
            If there is no such fault; lists those there are.

        """
        return inject(self.faults(), fault)

    def poll_poses(self) -> list[PoseMeasurement]:
        """Return the measured poses that have arrived since the last call, oldest first."""
        if self._mocap is None:
            return []
        frames, named = self._mocap.poll(self.time_s), f'sensor {type(self._mocap).__name__}'
        if not isinstance(frames, list):
            raise PlantError(f'{named} returned {described(frames)}; expected a list of poses')
        for frame in frames:
            self._tips_checked(frame.section_tips, self._mocap)
        return frames

    def poll_true_tips(self) -> list[tuple[float, Array]]:
        """
        Return times [s] and true tips (3,) [m] of all exposures since the last call.

        For those who judge a run. Those who drive the arm have `poll_poses`.
        """
        tips = list(self._true_tips)
        self._true_tips.clear()
        return tips

    @property
    def next_poses_s(self) -> float:
        """Simulated time at which the next measured poses can arrive [s]; never: infinite."""
        return math.inf if self._mocap is None else self._mocap.next_arrival_s

    @property
    def gripping(self) -> Gripping | None:
        """What works its gripper; None: it has none."""
        return self if isinstance(self, Gripping) else None

    @property
    def weighed(self) -> BaseWrench | None:
        """What reads the force-torque sensor under its base; None: it has none."""
        return self if isinstance(self, BaseWrench) else None

    def true_section_tips(self) -> Array:
        """Return the true pose (sections, 4, 4) of every measured tip in the base frame."""
        return self.body.section_tips()

    def true_centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] of the true centreline, evenly spaced in arc length."""
        return self.body.centerline(n)


@runtime_checkable
class Carrying(Protocol):
    """A body, or the drives that move it, onto whose tip something can be hung in motion."""

    def hang(self, mass_kg: float) -> None:
        """Carry this beside the payload it was built with, in place of what was hung before."""
        ...


@runtime_checkable
class ChamberPressures(Protocol):
    """A plant whose chambers have pressure sensors."""

    def chamber_pressures(self) -> Array:
        """Return the measured gauge pressures (chambers,) [Pa]."""
        ...


@runtime_checkable
class BaseWrench(Protocol):
    """A plant that stands on a force-torque sensor."""

    def base_wrench(self) -> Array:
        """Return the measured load of the arm on its base (6,) [N, N m], force first."""
        ...


@runtime_checkable
class Gripping(Protocol):
    """A plant with a gripper at the tip, driven by pressure: vacuum opens it, pressure closes."""

    def command_gripper(self, pressure_Pa: float) -> None:
        """Set the gripper's pressure target [Pa gauge]; negative is vacuum."""
        ...

    def gripper_pressure(self) -> float:
        """Return the measured pressure of the gripper [Pa gauge]."""
        ...


def require_duration(duration_s: float) -> None:
    """Raise ValueError for a duration that is not positive."""
    if not (math.isfinite(duration_s) and duration_s > 0.0):
        raise ValueError(f'duration_s = {duration_s}; expected a positive number')
