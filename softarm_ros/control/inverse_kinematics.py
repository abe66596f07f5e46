"""Configuration command -> actuator command, checked against the actuators' limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.models.arm_model import ArmModel

Array = NDArray[np.float64]


class InverseKinematics:
    """
    Actuation that holds a configuration, by the arm's model.

    With a measured configuration the cables are wound up to the arm as it is. An arm that bends
    less than its model has slack in every cable that the model thinks idle, and would not answer
    when such a cable's turn comes. A cable's slack, touching(measured) - touching(commanded), is
    taken up wholly while the model gives it no tension, and less and less until it carries half
    the load.

    Parameters
    ----------
    model : ArmModel
        The controller's model.
    limits : ActuatorLimits
        Range of the commands.
    touching : (m, dof)
        Contraction per configuration at which a cable just touches: the baseline's d_i theta.
    take_up_m : float
        How much further idle cables are wound: what the backbone is compressed under load.

    """

    def __init__(
        self, model: ArmModel, limits: ActuatorLimits, touching: Array, take_up_m: float = 0.0
    ) -> None:
        self.model = model
        self.limits = limits
        self._touching = touching
        self._take_up = take_up_m

    def actuation_of(
        self, configuration: Sequence[float] | Array, measured: Array | None = None
    ) -> Array:
        """
        Return the actuator command (m,) for a configuration (dof,), slack taken up by `measured`.

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
        actuation = self.model.actuation_of(values)
        if measured is not None and np.all(np.isfinite(measured)):
            slack = self._touching @ (measured - values) + self._take_up
            slack = np.maximum(slack, 0.0)
            actuation = actuation + self._idle_share(values) * slack
            actuation = np.minimum(actuation, self.limits.position_max)
        return self.limits.check(actuation)

    def _idle_share(self, configuration: Array) -> Array:
        """Return (m,) 1 for cables without load, falling to 0 for those with half of it."""
        share = np.ones(len(self.limits.names))
        for k in range(0, len(configuration), 2):
            rows = np.flatnonzero(np.any(self._touching[:, k : k + 2] != 0.0, axis=1))
            load, _ = nnls(self._touching[rows, k : k + 2].T, configuration[k : k + 2])
            total = float(np.sum(load))
            if total > 0.0:
                share[rows] = np.maximum(1.0 - 2.0 * load / total, 0.0)
        return share
