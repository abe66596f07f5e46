"""How every simulated arm runs through time: equal steps, frames of the pose sensor between."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from numpy.typing import ArrayLike

from softarm_ros.plant.actuator_state import Array
from softarm_ros.plant.config import PlantBase
from softarm_ros.plant.faults import Faults, inject
from softarm_ros.plant.mocap import Mocap, PoseMeasurement


class SteppedPlant(ABC):
    """
    Clock and pose sensor of a plant; a subclass has the arm, and meets `Plant` with it.

    A subclass calls `_first_frame` at the end of its constructor, when the arm is at rest.

    Attributes
    ----------
    time_s
        Simulated time [s], from 0.

    """

    def __init__(self, config: PlantBase, seed: int) -> None:
        self.time_s = 0.0
        self._time_step_s = config.time_step_s
        self._mocap = Mocap(config.mocap, seed)

    @property
    def mocap_enabled(self) -> bool:
        """Whether the pose sensor sees the arm."""
        return self._mocap.enabled

    @mocap_enabled.setter
    def mocap_enabled(self, enabled: bool) -> None:
        self._mocap.enabled = bool(enabled)

    def step(self, command: ArrayLike | None, duration_s: float) -> None:
        """
        Advance the simulation.

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
            self._command(command, duration_s)
        self._run(duration_s)

    def _run(self, duration_s: float) -> None:
        """Advance under what the actuators have been told, with the frames that fall due."""
        steps = math.ceil(duration_s / self._time_step_s - 1e-6)
        h = duration_s / steps
        start, done = self.time_s, 0
        while done < steps:
            # Up to the first step at or after the next frame.
            until_frame = math.ceil((self._mocap.next_frame_s - start) / h - 1e-6) - done
            count = min(max(until_frame, 1), steps - done)
            self._advance(h, count)
            done += count
            self.time_s = start + (duration_s if done == steps else done * h)
            if self._mocap.due(self.time_s):
                self._mocap.capture(self.time_s, self.true_section_tips())

    def poll_poses(self) -> list[PoseMeasurement]:
        """Return the measured poses that have arrived since the last call, oldest first."""
        return self._mocap.poll(self.time_s)

    @property
    def next_poses_s(self) -> float:
        """Simulated time at which the next measured poses can arrive [s]."""
        return self._mocap.next_arrival_s

    def faults(self) -> Faults:
        """Return what can break: the cameras, and what the subclass has of its own."""
        return {**self._mocap.faults(), **self._arm_faults()}

    def inject(self, fault: str) -> str:
        """
        Break something, `cameras freeze` for example; return what was done.

        Raises
        ------
        ValueError
            If there is no such fault; lists those there are.

        """
        return inject(self.faults(), fault)

    @abstractmethod
    def hold(self) -> None:
        """Let the actuators stop as fast as they can and stay where they are."""

    @abstractmethod
    def true_section_tips(self) -> Array:
        """Return the true pose (sections, 4, 4) of every measured tip in the base frame."""

    @abstractmethod
    def _arm_faults(self) -> Faults:
        """Return what can break in the arm and its drives."""

    @abstractmethod
    def _command(self, command: ArrayLike, duration_s: float) -> None:
        """Give the actuators their targets for the coming step, or raise ValueError."""

    @abstractmethod
    def _advance(self, h: float, steps: int) -> None:
        """Integrate over `steps` steps of `h` [s] from `time_s` on."""

    def _first_frame(self) -> None:
        self._mocap.capture(0.0, self.true_section_tips())


def require_duration(duration_s: float) -> None:
    """Raise ValueError for a duration that is not positive."""
    if not (math.isfinite(duration_s) and duration_s > 0.0):
        raise ValueError(f'duration_s = {duration_s}; expected a positive number')
