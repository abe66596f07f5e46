"""The simulated tendon-driven rod: winches, cables, rod and pose sensor. It never sleeps."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.models.arm_model import Array
from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.layout import Loads, allocate_scratch
from softarm_ros.plant.actuator_state import ActuatorState
from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.faults import Faults, InjectedFault, actuator_word
from softarm_ros.plant.stepped_plant import SteppedPlant
from softarm_ros.plant.tendon_rod.body import cable_paths, rod_dynamics
from softarm_ros.plant.tendon_rod.config import PlantTendon, TendonRodPlantConfig
from softarm_ros.plant.tendon_rod.kernels import (
    FOLDED,
    MAX_TURN_RAD,
    NOT_SOLVED,
    OK,
    RodMemory,
    WinchParameters,
    WinchState,
    drive_rod,
    read_cell,
    settle_rod,
)

_TOLERANCE_M = 1e-5  # of the rod's integrator: local error of any node
_SETTLE_DAMPING_S = 0.3
_SETTLE_STEP_S = 0.02
_SETTLE_TIME_S = 120.0
_SETTLE_RATE_1_S = 1e-6
_SETTLE_TOLERANCE_M = 1e-8


@dataclass(frozen=True)
class RodEquilibrium:
    """Arm at rest: tips of the segments (segments, 4, 4), base frame."""

    section_tips: Array


class TendonRodPlant(SteppedPlant):
    """
    What stands in for winches, arm and cameras in simulation.

    It starts at rest under its own weight with the given tension in every cable, its friction
    undecided (as after shaking the arm).

    Parameters
    ----------
    config
        Everything that the controller does not know.
    tendons
        One per actuator, in the order of the commands.
    gravity_m_s2 : (3,)
        In the base frame.
    tip_load_kg : float
        Payload at the tip.
    tension_N : (m,)
        To start with, at the winches.
    seed
        Of every random number: errors of the load cells, noise.

    Attributes
    ----------
    time_s
        Simulated time [s], from 0.

    """

    def __init__(
        self,
        config: TendonRodPlantConfig,
        tendons: Sequence[PlantTendon],
        gravity_m_s2: ArrayLike,
        tip_load_kg: float,
        tension_N: ArrayLike,
        seed: int,
    ) -> None:
        super().__init__(config, seed)
        self.config = config
        self._names = tuple(tendon.name for tendon in tendons)
        self._dynamics: ArmDynamics = rod_dynamics(config, tip_load_kg)
        offset, runs = cable_paths(config, tendons)
        self._loads: Loads = self._dynamics.loads(
            tuple(np.asarray(gravity_m_s2, dtype=float)),
            cable_offset_m=offset,
            cable_tension_N=np.zeros_like(runs),
        )
        cells = np.random.default_rng([seed, len(tendons)])
        winch, mu, m = config.winch, config.friction_coefficient, len(tendons)
        self._parameters = WinchParameters(
            winch.load_cell_gain_sd * cells.standard_normal(m),
            winch.load_cell_zero_sd_N * cells.standard_normal(m),
            runs,
            np.array(
                [
                    winch.time_constant_s,
                    winch.max_tension_rate_N_s,
                    winch.cable_stiffness_N_m,
                    winch.load_cell_resolution_N,
                    winch.guide_loss,
                    mu,
                    config.presliding_m,
                ]
            ),
        )
        start = self._checked(tension_N, 'tension_N')
        self._winches = WinchState(start.copy(), np.zeros(m), start.copy(), np.zeros(m))
        self._snapped = np.zeros(m, dtype=bool)
        self._memory = _memory(self._dynamics)
        self._settle()
        self._first_frame()

    def hold(self) -> None:
        """Let the winches keep the tension they have, by their load cells."""
        self._winches.target[:] = self._shown()

    def actuator_state(self) -> ActuatorState:
        """Return the tension shown by the load cells [N], its rate [N/s], and it again [N]."""
        shown = self._shown()
        return ActuatorState(shown, self._winches.rate.copy(), shown.copy())

    def true_section_tips(self) -> Array:
        """Return the true pose (segments, 4, 4) of every connector's end in the base frame."""
        poses = self._dynamics.node_poses(self._memory.state[0])
        per = self.config.pieces_per_segment
        return np.ascontiguousarray(poses[per::per])

    def true_centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] of the true centreline, evenly spaced in arc length."""
        if n < 2:
            raise ValueError(f'centreline of {n} points; expected at least 2')
        return self._dynamics.shape(self._memory.state[0]).centerline(n)

    def true_tension(self) -> Array:
        """Return the true tension (m,) [N] of every cable at its winch."""
        return self._winches.tension.copy()

    def energy_J(self) -> float:
        """Return kinetic, elastic and weight energy of the rod [J]."""
        strains, rates = self._memory.state[0], self._memory.state[1]
        return self._dynamics.energy(strains, rates, self._loads).total

    def static_equilibrium(
        self, tension_N: ArrayLike, tip_force_N: ArrayLike = (0.0, 0.0, 0.0)
    ) -> RodEquilibrium:
        """
        Return where the arm would rest without friction, leaving the plant itself as it is.

        Parameters
        ----------
        tension_N : (m,)
            True tension of every cable.
        tip_force_N : (3,)
            Dead load on the tip, base frame.

        """
        twin = copy.copy(self)
        twin._memory = _memory(self._dynamics, self._memory.state[0])
        tension = self._checked(tension_N, 'tension_N')
        m = len(tension)
        twin._winches = WinchState(tension, np.zeros(m), tension.copy(), np.zeros(m))
        force = np.asarray(tip_force_N, dtype=float)
        if force.shape != (3,) or not np.isfinite(force).all():
            raise ValueError(f'tip_force_N = {tip_force_N!r}: expected 3 finite numbers')
        twin._loads = Loads(*(array.copy() for array in self._loads))
        twin._loads.wrench[-1, :3] += force
        twin._settle()
        return RodEquilibrium(twin.true_section_tips())

    def _settle(self) -> None:
        """Let the arm come to rest under the tensions in force, by added damping."""
        body = self._dynamics.body
        status, segment = settle_rod(
            self._parameters,
            self._winches,
            body._replace(damping=_SETTLE_DAMPING_S * body.stiffness),
            self._loads,
            self._memory,
            self.config.pieces_per_segment,
            _SETTLE_STEP_S,
            int(_SETTLE_TIME_S / _SETTLE_STEP_S),
            _SETTLE_TOLERANCE_M,
            _SETTLE_RATE_1_S,
        )
        self._check(status, segment)

    def _arm_faults(self) -> Faults:
        return {'cable snap': InjectedFault((actuator_word(self._names),), self._snap)}

    def _snap(self, cable: int) -> None:
        """Let a cable pull no more, and its load cell show it."""
        self._snapped[cable] = True
        self._winches.tension[cable] = self._winches.target[cable] = 0.0

    def _command(self, command: ArrayLike, duration_s: float) -> None:
        target = self._checked(command, 'command')
        self._winches.target[:] = np.where(self._snapped, 0.0, target)

    def _advance(self, h: float, steps: int) -> None:
        status, segment = drive_rod(
            self._parameters,
            self._winches,
            self._dynamics.body,
            self._loads,
            self._memory,
            self.config.pieces_per_segment,
            h,
            steps,
            _TOLERANCE_M,
        )
        self._check(status, segment)

    def _shown(self) -> Array:
        resolution = self.config.winch.load_cell_resolution_N
        return np.array(
            [
                read_cell(tension, gain, zero, resolution)
                for tension, gain, zero in zip(
                    self._winches.tension, self._parameters.gain, self._parameters.zero
                )
            ]
        )

    def _checked(self, values: ArrayLike, what: str) -> Array:
        array = np.array(values, dtype=np.float64)
        if array.shape != (len(self._names),):
            raise ValueError(f'{what} has shape {array.shape}, expected ({len(self._names)},)')
        for name, value in zip(self._names, array):
            if not math.isfinite(value):
                raise ValueError(f'{what} of {name} = {value} is not finite')
            if value < 0.0:
                raise ValueError(f'{what} of {name} = {value:g} N; a cable only pulls')
        return array

    def _check(self, status: int, segment: int) -> None:
        if status == OK:
            return
        if status == FOLDED:
            raise PlantError(
                f'segment {segment} has turned by more than {np.rad2deg(MAX_TURN_RAD):.0f} deg: '
                'the arm has folded'
            )
        if status == NOT_SOLVED:
            raise PlantError('the motion of the rod cannot be integrated further')
        raise PlantError('the arm does not come to rest')


def _memory(arm: ArmDynamics, strains: Array | None = None) -> RodMemory:
    """Return a state at rest and its work space."""
    n = arm.segments
    state = np.zeros((5, n, 4))
    state[0] = arm.straight if strains is None else strains
    return RodMemory(
        state,
        np.array([1e-3, -1.0]),
        allocate_scratch(n),
        allocate_scratch(n),
        np.zeros((5, n, 4)),
        np.zeros((n, 6)),
    )
