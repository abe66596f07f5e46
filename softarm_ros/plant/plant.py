"""Base class of simulated arms: a body, drives that move it, and a pose sensor."""

from __future__ import annotations

import math
from collections import deque
from types import NoneType
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

_KEPT_TIPS = 2000  # true tips kept if nobody polls them


class Body(Protocol):
    """Body of the simulated arm."""

    def section_tips(self) -> Array:
        """Return the true pose (sections, 4, 4) of every measured tip in the base frame."""
        ...

    def centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] of the true centreline, evenly spaced in arc length."""
        ...


class Drives(Protocol):
    """
    The actuators, with simulated drivers and sensors.

    Drives, body and medium are solved as one system; therefore the drives advance the body too.
    """

    def command(self, target: ArrayLike, now_s: float, duration_s: float) -> None:
        """
        Take targets (m,), in the actuators' unit, for the coming time.

        Raises
        ------
        ValueError
            If the shape is wrong or an actuator cannot take its target; names the actuator.
            Nothing changes.

        """
        ...

    def hold(self, now_s: float) -> None:
        """Stop the actuators as fast as they can and keep them there."""
        ...

    def advance(self, now_s: float, h: float, steps: int) -> None:
        """
        Advance by `steps` steps of `h` [s].

        Raises
        ------
        PlantError
            If the arm leaves the range of the simulation.

        """
        ...

    def state(self) -> ActuatorState:
        """Return the drivers' measurements, in the actuators' units, each (m,)."""
        ...

    def faults(self) -> Faults:
        """Return the possible faults of the drives and the arm."""
        ...


BodyT = TypeVar('BodyT', bound=Body)
DrivesT = TypeVar('DrivesT', bound=Drives)


class Plant(Generic[BodyT, DrivesT]):
    """
    Simulates drivers, arm and sensors. It never sleeps.

    It starts at rest under its own weight, with every actuator where the model's
    `rest_configuration` has it. It has no pose sensor until `look_with`.

    Parameters
    ----------
    config
        Properties of the plant; the controller knows none of them.
    body, drives
        At rest.

    Attributes
    ----------
    time_s
        Simulated time [s], from 0.
    config, body, drives
        The parts; only the plant may move body and drives.

    """

    def __init__(self, config: PlantBase, body: BodyT, drives: DrivesT) -> None:
        self.time_s = 0.0
        self.config = config
        self.body, self.drives = body, drives
        self._mocap: Mocap | None = None
        self._true_tips: deque[tuple[float, Array]] = deque(maxlen=_KEPT_TIPS)
        # Numbers of actuators (from `expect`) and of measured tips, or those of the first answers.
        self._count: tuple[int, ...] | None = None
        self._sections: tuple[int, ...] | None = None

    def expect(self, actuators: int) -> None:
        """Set the number of actuators; if the drives report another one, PlantError is raised."""
        self._count = (actuators,)

    def look_with(self, sensor: Mocap) -> None:
        """Attach a pose sensor, in place of the present one."""
        self._mocap = sensor
        self._true_tips.clear()
        self._look(sensor)

    @property
    def mocap_enabled(self) -> bool:
        """Whether the pose sensor is enabled."""
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
            Time to advance, in equal internal steps of at most the `time_step_s` of the plant.

        Raises
        ------
        ValueError
            If the command has the wrong shape, an actuator cannot take its target (names the
            actuator), or the duration is not positive. Nothing moves.
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
        Advance under the present commands of the drives, and take the frames that fall due.

        Raises the errors of `step`.
        """
        require_duration(duration_s)
        steps = math.ceil(duration_s / self.config.time_step_s - 1e-6)
        h = duration_s / steps
        start, done = self.time_s, 0
        while done < steps:
            # Up to the first step at or after the next frame.
            next_s = self._seen_next('next_frame_s')
            until_frame = math.ceil(min((next_s - start) / h - 1e-6, steps)) - done
            count = min(max(until_frame, 1), steps - done)
            self.drives.advance(self.time_s, h, count)
            done += count
            self.time_s = start + (duration_s if done == steps else done * h)
            if self._mocap is not None and self._mocap.due(self.time_s):
                self._look(self._mocap)

    def _look(self, sensor: Mocap) -> None:
        """Take a frame, and record the true tip, whether the sensor measures it or not."""
        tips = self._tips_checked(self.body.section_tips(), self.body)
        self._true_tips.append((self.time_s, tips[-1, :3, 3].copy()))
        sensor.capture(self.time_s, tips)

    def _seen_next(self, name: str) -> float:
        """Return a time that the sensor states for its next frame [s]; infinite: never."""
        if self._mocap is None:
            return math.inf
        time_s: float = getattr(self._mocap, name)
        if not (_is_time(time_s) or time_s == math.inf):
            named, found = f'sensor {type(self._mocap).__name__}', described(time_s)
            raise PlantError(f'{named} returned {name} {found}; expected a time [s]')
        return time_s

    def hold(self) -> None:
        """Stop the actuators as fast as they can and keep them there."""
        self.drives.hold(self.time_s)

    def actuator_state(self) -> ActuatorState:
        """
        Return the drivers' measurements, in the actuators' units, each (m,).

        Raises
        ------
        PlantError
            If the drives return another type, or another number of actuators than before.

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
        """Return section tips after checking them; PlantError if shape or number is wrong."""
        kind = 'sensor' if whose is self._mocap else 'body'
        sections = np.shape(tips)[:1] if self._sections is None else self._sections
        if not has_floats(tips, (*sections, 4, 4)):
            named = f'{kind} {type(whose).__name__}'
            expected = numbers((*sections, 4, 4))
            raise PlantError(misfit(named, 'section tips', tips, expected))
        self._sections = sections
        return tips

    def faults(self) -> Faults:
        """Return the possible faults: those of the cameras, of the drives, and the tip load."""
        seen = {} if self._mocap is None else self._mocap.faults()
        known = {**seen, **self.drives.faults()}
        for carrier in (self.body, self.drives):
            if isinstance(carrier, Carrying):
                known['tip load'] = InjectedFault((('KG', kilograms),), carrier.hang)
        return known

    def inject(self, fault: str) -> str:
        """
        Inject a fault, for example `cameras freeze`; return the line.

        Raises
        ------
        ValueError
            If the fault is unknown; the message lists the known ones.

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
            if not isinstance(frame, PoseMeasurement):
                found = described(frame)
                raise PlantError(f'{named} returned {found}; expected a PoseMeasurement')
            if not _is_time(frame.stamp_s):
                found = described(frame.stamp_s)
                raise PlantError(f'{named} returned stamp_s {found}; expected a time [s]')
            if not isinstance(frame.frame_id, (str, NoneType)):
                found = described(frame.frame_id)
                raise PlantError(f'{named} returned frame_id {found}; expected a name, or None')
            self._tips_checked(frame.section_tips, self._mocap)
        return frames

    def poll_true_tips(self) -> list[tuple[float, Array]]:
        """
        Return times [s] and true tips (3,) [m] of all exposures since the last call.

        For the evaluation of a run; a controller uses `poll_poses`.
        """
        tips = list(self._true_tips)
        self._true_tips.clear()
        return tips

    @property
    def next_poses_s(self) -> float:
        """Simulated time at which the next measured poses can arrive [s]; infinite: never."""
        return self._seen_next('next_arrival_s')

    @property
    def gripping(self) -> Gripping | None:
        """The plant as the driver of its gripper; None if it has no gripper."""
        return self if isinstance(self, Gripping) else None

    @property
    def weighed(self) -> BaseWrench | None:
        """The plant as the force-torque sensor under its base; None if it has none."""
        return self if isinstance(self, BaseWrench) else None

    def true_section_tips(self) -> Array:
        """Return the true pose (sections, 4, 4) of every measured tip in the base frame."""
        return self.body.section_tips()

    def true_centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] of the true centreline, evenly spaced in arc length."""
        return self.body.centerline(n)


@runtime_checkable
class Carrying(Protocol):
    """A body, or the drives that move it, whose tip load can change during motion."""

    def hang(self, mass_kg: float) -> None:
        """Carry this mass in addition to the payload, instead of the mass hung before."""
        ...


@runtime_checkable
class ChamberPressures(Protocol):
    """A plant whose chambers have pressure sensors."""

    def chamber_pressures(self) -> Array:
        """Return the measured gauge pressures (chambers,) [Pa]."""
        ...


@runtime_checkable
class BaseWrench(Protocol):
    """A plant with a force-torque sensor under its base."""

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


def _is_time(value: object) -> bool:
    return isinstance(value, (float, int)) and math.isfinite(value)


def require_duration(duration_s: float) -> None:
    """Raise ValueError if a duration is not positive."""
    if not (math.isfinite(duration_s) and duration_s > 0.0):
        raise ValueError(f'duration_s = {duration_s}; expected a positive number')
