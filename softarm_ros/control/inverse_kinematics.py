"""Configuration command -> actuator command, checked against the actuators' limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.models.arm_model import ArmModel, Posture

Array = NDArray[np.float64]


class InverseKinematics:
    """
    Actuation that holds a configuration, by the arm's model, with all cables wound a little more.

    The backbone of a real arm gives way under the cables' load, and what the model takes for an
    idle, just touching cable is loose: it would not answer when its turn comes to carry the load.
    The same extra contraction of all cables, the pretension, moves no section (their pulls
    cancel) but keeps every cable taut.

    Parameters
    ----------
    model : ArmModel
        The controller's model.
    limits : ActuatorLimits
        Range of the commands.
    pretension_m : float
        Extra contraction of every cable.
    pretension_step_m : float
        How much of it is added with each command until it is reached: there is no jump.

    """

    def __init__(
        self,
        model: ArmModel,
        limits: ActuatorLimits,
        pretension_m: float = 0.0,
        pretension_step_m: float = np.inf,
    ) -> None:
        self.model = model
        self.limits = limits
        self._posture: Posture | None = None  # the last one: the next is near to it
        self._pretension = 0.0
        self._full_pretension = pretension_m
        self._pretension_step = pretension_step_m

    def actuation_of(self, configuration: Sequence[float] | Array) -> Array:
        """
        Return the actuator command (m,) for a configuration (dof,).

        Raises
        ------
        ValueError
            If the configuration has the wrong size, is not finite, or is outside the model.
        LimitError
            If an actuator would have to leave its range; pretension alone never makes it.

        """
        values = np.asarray(configuration, dtype=float)
        names = self.model.configuration_names
        if values.shape != (len(names),):
            raise ValueError(
                f'configuration has shape {values.shape}; expected ({len(names)},) '
                f'for {", ".join(names)}'
            )
        for name, value in zip(names, values):
            if not np.isfinite(value):
                raise ValueError(f'{name} = {value}: expected a finite number')
        self._posture = self.model.posture_of(values, self._posture)
        actuation = self.limits.check(self._posture.actuation)
        self._pretension = min(self._pretension + self._pretension_step, self._full_pretension)
        return np.minimum(actuation + self._pretension, self.limits.position_max)
