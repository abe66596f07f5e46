"""Conversion of a configuration command, from any sender, to an actuator command in its limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.pretension import Pretension
from softarm_ros.control.winding import Winding
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, Posture

_STANDING = 0.1  # share of the pretension: an arm stopped in motion may be off by this much


class InverseKinematics:
    """
    Computes the actuation of a configuration from the arm's model, and adds the pretension.

    It checks every configuration, since any node may send one. The receivers of the actuator
    commands check those (docs/decisions/where_limits_are_checked.md).

    Parameters
    ----------
    model : ArmModel
        The controller's model.
    configuration_limits : ConfigurationLimits
        Limits of the configuration.
    pretension : Pretension
        Wound up with every command while the arm may move.
    period_s : float
        Between two commands [s].

    """

    def __init__(
        self,
        model: ArmModel,
        configuration_limits: ConfigurationLimits,
        pretension: Pretension,
        period_s: float,
    ) -> None:
        self.model = model
        self.configuration_limits = configuration_limits
        self._names = model.configuration_names
        self.pretension = pretension
        self._period_s = period_s
        self._posture: Posture | None = None  # of the last command: start value for the next
        self._winding = Winding(pretension)

    def actuation_of(
        self, configuration: Sequence[float] | Array, *, moving: bool = True
    ) -> Array:
        """
        Return the actuator command (m,) for a configuration (dof,).

        Pretension is wound only while `moving`: if the arm may not move, the command would run
        ahead of it.

        Raises
        ------
        ValueError
            If the configuration has the wrong size, is not finite, exceeds a limit (the message
            names the coordinate) or lies outside the model.

        """
        values = np.asarray(configuration, dtype=float)
        self.configuration_limits.check(values, self._names)
        self._posture = self.model.posture_of(values, self._posture)
        if moving:
            self._winding.advance(self._period_s)
        else:
            self._winding.stop()
        return self._posture.actuation + self._winding.wound

    def stand(self, position: Sequence[float] | Array) -> None:
        """
        Take the wound pretension from the actuator positions (m,), while the arm may not move.

        Needed if this stage or its driver was restarted and its pretension no longer fits.
        """
        if self.pretension.amount == 0.0 or self._posture is None:
            return
        further = float(np.mean(np.asarray(position, dtype=float) - self._posture.actuation))
        wound = min(max(further, 0.0), self.pretension.amount)
        if abs(wound - self._winding.wound) > _STANDING * self.pretension.amount:  # not for NaN
            self._winding.stand_at(wound)
