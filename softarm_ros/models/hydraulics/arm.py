"""A soft arm coupled to its water-hydraulic axes: pressure moves the arm, motion draws water."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.dynamics.drive import ChamberDrive
from softarm_ros.models.dynamics.layout import Loads, allocate_scratch
from softarm_ros.models.hydraulics.arm_kernels import ITERATION_LIMIT, coupled_step_into
from softarm_ros.models.hydraulics.axes import WaterHydraulics

_HALVINGS = 8


@dataclass(frozen=True)
class HydraulicArmState:
    """Strains and rates (n, 4) of the arm, state (m, width) of its axes."""

    strains: Array
    rates: Array
    axes: Array


@dataclass(frozen=True)
class HydraulicArmStep:
    """
    Outcome of one step.

    `state` is the last state reached. `converged` is False if the step was not completed even in
    2^8 parts. `relieved_m3` (m,) is the water released by the relief valves, `substeps` the number
    of parts, and `cavitated` (m,) marks axes below the vapour pressure, for which the model is
    invalid.
    """

    state: HydraulicArmState
    converged: bool
    message: str
    relieved_m3: Array
    cavitated: np.ndarray
    substeps: int


class HydraulicArm:
    """
    Arm dynamics and water hydraulics solved together in every step.

    Chamber i belongs to axis i. The stretch of a chamber is part of the arm's motion here. So the
    wall compliance of an axis must cover the widening only, not A_d^2 l_0 / (E A_s) as in the
    paper, which would count the stretch twice.
    """

    def __init__(self, drive: ChamberDrive, hydraulics: WaterHydraulics) -> None:
        m = len(drive.chambers)
        if m != len(hydraulics.axes):
            raise ModelError(f'{m} chambers but {len(hydraulics.axes)} hydraulic axes')
        self.drive, self.hydraulics, self.arm = drive, hydraulics, drive.arm
        n = self.arm.segments
        # Chamber volume per strain (m, n, 4) [m^3, m^4].
        self.volume = np.ascontiguousarray(
            np.transpose(drive.map * self.arm.body.length[:, None, None], (2, 0, 1))
        )
        self._scratch, self._frozen = allocate_scratch(n), allocate_scratch(n)
        self._strains, self._work = np.zeros((6, n, 4)), np.zeros((3, n, 4))
        self._axes = np.zeros((3, m, hydraulics.width))
        self._chain = np.empty((hydraulics.width, 6))
        self._columns, self._small = np.zeros((m, n, 4)), np.zeros((m, m + 3))

    def rest_state(self, strains: Array | None = None) -> HydraulicArmState:
        """Return the state at rest without pressure at strains (n, 4); straight if None."""
        q = self.arm.straight if strains is None else np.array(strains, float)
        return HydraulicArmState(q, np.zeros_like(q), self.hydraulics.rest_state())

    def step(
        self, state: HydraulicArmState, torque: Array, dt_s: float, loads: Loads
    ) -> HydraulicArmStep:
        """
        Advance by dt_s with constant motor torques (m,) [N m] and loads.

        `loads.drive` is added to the drive of the chambers. A step that does not converge is
        halved.

        Raises
        ------
        ModelError
            For a torque of the wrong shape or not finite, or a step that is not positive.

        """
        m = len(self.hydraulics.axes)
        torque = np.asarray(torque, float)
        if torque.shape != (m,) or not np.isfinite(torque).all():
            raise ModelError(f'torque = {torque.tolist()}: finite numbers {(m,)} needed')
        if not 0.0 < dt_s < np.inf:
            raise ModelError(f'dt_s = {dt_s:g} s: must be above 0')
        forces = self.hydraulics.force_per_torque * torque
        q, v, y = state.strains.copy(), state.rates.copy(), state.axes.copy()
        relieved, part = np.zeros(m), np.zeros(m)
        done, level, substeps, good = 0, 0, 0, True
        whole = 2**_HALVINGS  # the step in units of its smallest part
        while done < whole:
            size = whole >> level
            good = coupled_step_into(
                self.arm.body, loads, self.volume, self.hydraulics.parameters,
                dt_s * size / whole, forces, q, v, y, self._scratch, self._frozen,
                self._strains, self._axes, self._chain, self._columns, self._small,
                self._work, part,
            )  # fmt: skip
            if good:
                done += size
                substeps += 1
                relieved += part
                while level > 0 and done % (whole >> (level - 1)) == 0:
                    level -= 1
            elif level == _HALVINGS:
                break
            else:
                level += 1
        cavitated = self.hydraulics.cavitated(y)
        message = ''
        if not good:
            smallest = dt_s / whole
            message = f'no solution in {ITERATION_LIMIT} iterations, steps of {smallest:.3g} s'
        elif cavitated.any():
            message = 'cavitation in ' + ', '.join(np.array(self.hydraulics.axis_names)[cavitated])
        return HydraulicArmStep(
            HydraulicArmState(q, v, y), good, message, relieved, cavitated, substeps
        )

    def energy(self, state: HydraulicArmState, loads: Loads) -> float:
        """Return the sum of the kinetic, elastic, weight and hydraulic energies [J]."""
        arm = self.arm.energy(state.strains, state.rates, loads).total
        return float(arm + self.hydraulics.stored_energy(state.axes).sum())
