"""Pretension of cables beyond the model's lengths, and the limits that remain for the model."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.control.minimum_jerk import PEAK_ACCELERATION, PEAK_SPEED

# Share of the actuators' speed and acceleration used to wind pretension; until it is wound, the
# controller has the rest.
WINDING_SHARE = 0.2
_LENGTH = 'm'


@dataclass(frozen=True)
class Pretension:
    """
    The same extra contraction of all cables, added to the model's actuation.

    The backbone of a real arm yields under the cables' load, so a cable that the model takes as
    just touching is slack and would respond late when it must carry load. Winding all cables alike
    moves no section (their pulls cancel) but keeps every cable taut.

    Attributes
    ----------
    amount : float
        Length by which every cable is wound further [m]; 0 for arms without pretension.
    speed, acceleration : float
        Largest speed [m/s] and acceleration [m/s^2] of the winding.

    """

    amount: float = 0.0
    speed: float = math.inf
    acceleration: float = math.inf

    @staticmethod
    def of_length(amount_m: float, limits: ActuatorLimits) -> Pretension:
        """
        Return the pretension that is wound up as fast as its share of the limits allows.

        Raises
        ------
        ValueError
            If the actuators are not set by length, or the amount leaves one of them no range.

        """
        if amount_m == 0.0:
            return Pretension()
        if limits.unit != _LENGTH:
            raise ValueError(
                f'pretension_m = {amount_m:g}: commands of these actuators are in {limits.unit}; '
                'expected 0, only cables that are set by length are wound'
            )
        room = limits.position_max - limits.position_min
        tightest = int(np.argmin(room))
        if not 0.0 < amount_m < room[tightest]:
            raise ValueError(
                f'pretension_m = {amount_m:g}: expected 0 to below the range of '
                f'{limits.names[tightest]}, {room[tightest]:g} m'
            )
        speed = WINDING_SHARE * float(np.min(limits.max_speed))
        acceleration = WINDING_SHARE * float(np.min(limits.max_acceleration))
        return Pretension(amount_m, speed, acceleration)

    def duration_s(self, length_m: float) -> float:
        """Return the least duration [s] of winding a length [m], from rest to rest."""
        by_speed = PEAK_SPEED * length_m / self.speed
        by_acceleration = math.sqrt(PEAK_ACCELERATION * length_m / self.acceleration)
        return max(by_speed, by_acceleration)

    def room(self, limits: ActuatorLimits, *, winding: bool = False) -> ActuatorLimits:
        """
        Return the limits that remain for the model's actuation.

        The range excludes the pretension even before it is wound, so that winding never runs into
        the end of the range. While `winding`, the winding's share of speed and acceleration is
        excluded too.
        """
        if self.amount == 0.0:
            return limits
        share = 1.0 - WINDING_SHARE if winding else 1.0
        return replace(
            limits,
            position_max=limits.position_max - self.amount,
            max_speed=share * limits.max_speed,
            max_acceleration=share * limits.max_acceleration,
        )
