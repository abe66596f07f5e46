"""Winches that control the tensions of the rod's cables by load cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.actuator_state import ActuatorState
from softarm_ros.plant.actuator_values import as_actuation
from softarm_ros.plant.faults import Faults, InjectedFault, actuator_word
from softarm_ros.plant.tendon_rod.config import TendonRodPlantConfig
from softarm_ros.plant.tendon_rod.kernels import read_cell
from softarm_ros.plant.tendon_rod.layout import WinchParameters, WinchState
from softarm_ros.plant.tendon_rod.rod import RodBody


@dataclass(frozen=True)
class RodEquilibrium:
    """Arm at rest: tips of the segments (segments, 4, 4), base frame."""

    section_tips: Array


class Winches:
    """
    Winches with their cables; they bring the rod to rest under the initial tensions.

    There is no friction force then, as after shaking the arm.

    Parameters
    ----------
    config, tension_N, seed
        As in `TendonRodPlant`.
    names : (m,)
        Names of the cables.
    body
        The body that they move.

    Attributes
    ----------
    parameters, winches
        Arrays of the kernels.

    """

    def __init__(
        self,
        config: TendonRodPlantConfig,
        names: Sequence[str],
        tension_N: ArrayLike,
        body: RodBody,
        seed: int,
    ) -> None:
        self._resolution = config.winch.load_cell_resolution_N
        self._names, self._body = tuple(names), body
        cells = np.random.default_rng([seed, len(names)])
        winch, mu, m = config.winch, config.friction_coefficient, len(names)
        self.parameters = WinchParameters(
            winch.load_cell_gain_sd * cells.standard_normal(m),
            winch.load_cell_zero_sd_N * cells.standard_normal(m),
            np.array(
                [
                    winch.time_constant_s,
                    winch.max_tension_rate_N_s,
                    winch.cable_stiffness_N_m,
                    winch.load_cell_resolution_N,
                    winch.guide_loss,
                    mu,
                ]
            ),
        )
        self.winches = self._still(tension_N, 'tension_N')
        self._snapped = np.zeros(m, dtype=bool)
        body.settle(self.parameters, self.winches)

    def command(self, target: ArrayLike, now_s: float, duration_s: float) -> None:
        """Set the target tensions (m,) [N]; see `Drives`."""
        wanted = self._checked(target, 'command')
        self.winches.target[:] = np.where(self._snapped, 0.0, wanted)

    def hold(self, now_s: float) -> None:
        """Make the winches keep the present tensions, as their load cells show them."""
        self.winches.target[:] = self._shown()

    def advance(self, now_s: float, h: float, steps: int) -> None:
        """Advance winches, cables and rod together; see `Drives`."""
        self._body.drive(self.parameters, self.winches, h, steps)

    def state(self) -> ActuatorState:
        """Return the tension shown by the load cells [N], its rate [N/s], and it as effort [N]."""
        shown = self._shown()
        return ActuatorState(shown, self.winches.rate.copy(), shown.copy())

    def faults(self) -> Faults:
        """Return the possible faults: cables snap."""
        return {'cable snap': InjectedFault((actuator_word(self._names),), self._snap)}

    def true_tension(self) -> Array:
        """Return the true tension (m,) [N] of every cable at its winch."""
        return self.winches.tension.copy()

    def static_equilibrium(
        self, tension_N: ArrayLike, tip_force_N: ArrayLike = (0.0, 0.0, 0.0)
    ) -> RodEquilibrium:
        """
        Return the equilibrium of the arm without friction, without changing the plant.

        Parameters
        ----------
        tension_N : (m,)
            True tension of every cable.
        tip_force_N : (3,)
            Dead load on the tip, base frame.

        """
        twin = self._body.resting_copy(tip_force_N)
        twin.settle(self.parameters, self._still(tension_N, 'tension_N'))
        return RodEquilibrium(twin.section_tips())

    def _snap(self, cable: int) -> None:
        """Snap a cable: its tension falls to zero, and its load cell shows that."""
        self._snapped[cable] = True
        self.winches.tension[cable] = self.winches.target[cable] = 0.0

    def _still(self, tension_N: ArrayLike, what: str) -> WinchState:
        start = self._checked(tension_N, what)
        m = len(start)
        return WinchState(start, np.zeros(m), start.copy())

    def _shown(self) -> Array:
        return np.array(
            [
                read_cell(tension, gain, zero, self._resolution)
                for tension, gain, zero in zip(
                    self.winches.tension, self.parameters.gain, self.parameters.zero
                )
            ]
        )

    def _checked(self, values: ArrayLike, what: str) -> Array:
        array = as_actuation(values, len(self._names), what, self._names)
        for name, value in zip(self._names, array):
            if value < 0.0:
                raise ValueError(f'{what} of {name} = {value:g} N; a cable only pulls')
        return array
