"""From a configuration command, whoever sent it, to an actuator command within the limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.pretension import Pretension
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, Posture

_STANDING = 0.1  # share of the pretension by which arms that were stopped in motion may be off


class InverseKinematics:
    """
    Actuation that holds a configuration, by the arm's model and with its pretension.

    Checks the configuration it is given, since anybody may send one; the receivers of the result
    check that (docs/decisions/where_limits_are_checked.md).

    Parameters
    ----------
    model : ArmModel
        The controller's model.
    configuration_limits : ConfigurationLimits
        Where a configuration may be.
    pretension : Pretension
        Wound up with every command after which the arm may move.
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
        self._posture: Posture | None = None  # the last one: the next is near to it
        self._winding_s = 0.0

    def actuation_of(
        self, configuration: Sequence[float] | Array, *, moving: bool = True
    ) -> Array:
        """
        Return the actuator command (m,) for a configuration (dof,).

        Pretension is wound on only while `moving`: while nothing lets the arm move, the command
        would run ahead of it.

        Raises
        ------
        ValueError
            If the configuration has the wrong size, is not finite, lies outside its limits (names
            the coordinate) or outside the model.

        """
        values = np.asarray(configuration, dtype=float)
        self.configuration_limits.check(values, self._names)
        self._posture = self.model.posture_of(values, self._posture)
        self._winding_s += self._period_s if moving else 0.0
        return self._posture.actuation + self.pretension.wound(self._winding_s)

    def stand(self, position: Sequence[float] | Array) -> None:
        """
        Take from where the actuators (m,) stand, while nothing may move, how much is wound.

        After a restart of this stage or of their driver that is not what it was.
        """
        if self.pretension.amount == 0.0 or self._posture is None:
            return
        further = float(np.mean(np.asarray(position, dtype=float) - self._posture.actuation))
        wound = min(max(further, 0.0), self.pretension.amount)
        apart = abs(wound - self.pretension.wound(self._winding_s))
        if apart > _STANDING * self.pretension.amount:  # not for a value that is no number
            self._winding_s = self.pretension.winding_s(wound)
