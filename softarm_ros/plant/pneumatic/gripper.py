"""Simulated gripper: pressure with a lag, and an object that it may hold."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.pneumatic.config import PlantGripperConfig, SoftFingersConfig


@dataclass(frozen=True)
class GrippedObject:
    """An object the arm may pick up: its position (3,) [m] in the base frame, mass and volume."""

    position: tuple[float, float, float]
    mass_kg: float
    volume_m3: float = 0.0

    def __post_init__(self) -> None:
        if len(self.position) != 3 or not all(math.isfinite(x) for x in self.position):
            raise ValueError(f'position = {self.position}: expected three finite numbers of m')
        for name, value in (('mass_kg', self.mass_kg), ('volume_m3', self.volume_m3)):
            if not (math.isfinite(value) and value >= 0.0):
                raise ValueError(f'{name} = {value}: expected a finite number of at least 0')


class Gripper(ABC):
    """
    A gripper that holds an object by pressure.

    When it closes on the object, it holds it: the object moves with the tip and loads it. It lets
    the object go when it opens, or when the object's weight exceeds the grip. The object then
    stays where it was released, as if put down there.
    """

    def __init__(self, config: PlantGripperConfig) -> None:
        self.config = config
        self.pressure_Pa = self._before_Pa = 0.0
        self.target_Pa = 0.0
        self.object: GrippedObject | None = None
        self.holds = False
        self._in_grip = np.zeros(3)  # from the middle of the fingers, tip axes

    def place(self, item: GrippedObject | None) -> None:
        """Place an object, in place of any other; None removes it."""
        self.object, self.holds = item, False

    def fill(self, duration_s: float) -> None:
        """Advance the pressure towards its target by a duration [s]."""
        self._before_Pa = self.pressure_Pa
        lag = -math.expm1(-duration_s / self.config.lag_s)
        self.pressure_Pa += (self.target_Pa - self._before_Pa) * lag

    def handle(self, middle: Array, weight_N: float) -> bool:
        """
        Take or release the object, according to the present pressure; return whether it did.

        `middle` (4, 4) is the pose of the middle of the fingers, `weight_N` the object's weight.
        """
        if self.object is None:
            return False
        if self.holds:
            if weight_N > self.grip_N() or self.is_open():
                self._put_down(middle)
                return True
            return False
        if not self.closes():
            return False
        offset = middle[:3, :3].T @ (np.array(self.object.position) - middle[:3, 3])
        if float(np.linalg.norm(offset)) > self.config.reach_m or weight_N > self.grip_N():
            return False
        self._in_grip, self.holds = offset, True
        return True

    def offset(self) -> Array:
        """Return the held object's offset (3,) [m] from the middle of the fingers, tip axes."""
        return self._in_grip.copy()

    def object_position(self, middle: Array) -> Array | None:
        """Return the position (3,) [m] of the object, base frame; None without an object."""
        if self.object is None:
            return None
        if not self.holds:
            return np.array(self.object.position)
        return np.asarray(middle[:3, 3] + middle[:3, :3] @ self._in_grip)

    @abstractmethod
    def closes(self) -> bool:
        """Return whether the last filling, from `_before_Pa` to `pressure_Pa`, has closed it."""

    @abstractmethod
    def is_open(self) -> bool:
        """Return whether the gripper is open, so that it releases a held object."""

    @abstractmethod
    def grip_N(self) -> float:
        """Return the largest weight that it can hold [N]."""

    def _put_down(self, middle: Array) -> None:
        item = self.object
        place = self.object_position(middle)
        if item is None or place is None:
            return
        x, y, z = (float(value) for value in place)
        self.object = GrippedObject((x, y, z), item.mass_kg, item.volume_m3)
        self.holds = False


class SoftFingers(Gripper):
    """Fingers that open under vacuum and close under pressure."""

    config: SoftFingersConfig

    def closes(self) -> bool:
        """Return whether the last filling has closed the fingers."""
        return self._before_Pa < self.config.grips_above_Pa <= self.pressure_Pa

    def is_open(self) -> bool:
        """Return whether the fingers are open."""
        return self.pressure_Pa <= self.config.releases_below_Pa

    def grip_N(self) -> float:
        """Return the largest weight that the fingers can hold [N]."""
        beyond_Pa = self.pressure_Pa - self.config.releases_below_Pa
        return self.config.force_per_pressure_N_Pa * beyond_Pa


def build(config: SoftFingersConfig) -> Gripper:
    """Return the fingers, without pressure or object."""
    return SoftFingers(config)
