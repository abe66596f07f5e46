"""Configuration command -> actuator command, checked against the actuators' limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.models.arm_model import ArmModel

Array = NDArray[np.float64]


class InverseKinematics:
    """Actuation that holds a configuration, by the arm's model."""

    def __init__(self, model: ArmModel, limits: ActuatorLimits) -> None:
        self.model = model
        self.limits = limits

    def actuation_of(self, configuration: Sequence[float] | Array) -> Array:
        """
        Return the actuator command (m,) for a configuration (dof,).

        Raises
        ------
        ValueError
            If the configuration has the wrong size, is not finite, or is outside the model.
        LimitError
            If an actuator would have to leave its range.

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
                raise ValueError(f'{name} = {value}: expected a finite angle in rad')
        return self.limits.check(self.model.actuation_of(values))
