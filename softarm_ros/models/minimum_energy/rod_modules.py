"""Statics of a Cosserat rod with modules of three straight muscles between disks along it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.geometry.pose_kernels import transforms_kernel
from softarm_ros.models.arm_model import ZERO3, ModelError, Shape, Vector3
from softarm_ros.models.cosserat.config import CosseratConfig, MatrixProfile, RodSegmentConfig
from softarm_ros.models.cosserat.grid import build_grid
from softarm_ros.models.cosserat.shooting_kernels import shoot
from softarm_ros.models.cosserat.state import RodState
from softarm_ros.models.cosserat.strain_kernels import OK
from softarm_ros.models.cosserat.tables import Loads, new_trace
from softarm_ros.models.minimum_energy.config import BackboneConfig, ParallelModulesConfig
from softarm_ros.models.minimum_energy.muscle_kernels import Springs
from softarm_ros.models.minimum_energy.muscled_rod import MuscledRod, MuscleEquilibrium
from softarm_ros.models.minimum_energy.muscles import MusclesInBalance, muscle_anchors
from softarm_ros.models.minimum_energy.rod_modules_kernels import (
    ModuleChain,
    ModuleLoads,
    balance,
    is_stable,
    new_chain,
    start_wrenches_into,
    tip_derivatives_into,
)

_SHEAR_FACTOR = 0.9  # effective over whole area of a round section
_START_INTERVALS = 2  # per module, of the backbone of least energy from which a search starts
_MOST_SWEEPS = 20
_SLIP = 1e-3  # of a module's compliance in bending; see `is_stable`
_SMALLEST_SHARE = 1.0 / 64.0  # of the moment at the tip


@dataclass(frozen=True)
class ModulesEquilibrium(MusclesInBalance):
    """
    Equilibrium of a rod with modules of muscles.

    Attributes
    ----------
    rotations, positions : (modules + 1, 4), (modules + 1, 3)
        Quaternions x, y, z, w and positions [m] of the disks from the base, base frame.
    wrenches : (modules, 6)
        Force [N] and moment [N m] over a cut through the rod below each disk, base frame.
    stable : bool
        Whether the equilibrium is a minimum of the energy.
    sweeps : int
        Number of integrations over the arm.

    """

    rotations: Array
    positions: Array
    wrenches: Array
    stable: bool
    sweeps: int
    chain: ModuleChain = field(repr=False)

    @cached_property
    def disks(self) -> Array:
        """Poses (modules + 1, 4, 4) [m] of the disks from the base, base frame."""
        return np.asarray(transforms_kernel(np.hstack([self.positions, self.rotations])))

    @property
    def tip(self) -> Array:
        """Pose (4, 4) [m] of the tip."""
        return self.disks[-1].copy()

    @cached_property
    def twists(self) -> Array:
        """
        Twist of the tip (6, 6 + 3 modules) by force and moment at the tip and by the commands.

        Raises
        ------
        ModelError
            If the equilibrium is singular.

        """
        out = np.empty((6, 6 + 3 * len(self.wrenches)))
        if not tip_derivatives_into(self.chain, out):
            raise ModelError('no derivatives: the equilibrium is singular (a buckling load)')
        return out


class RodModules:
    """
    A Cosserat rod with muscles between its disks; it stretches, shears, bends and twists.

    A search starts from the shape of least energy (`MuscledRod`), which is found from any
    commands, and ends at the equilibrium of the rod.

    Parameters
    ----------
    backbone, modules, gravity, tip_load_kg
        As in `MuscledRod`.
    steps
        Integration steps of order 6 per module.

    """

    def __init__(
        self,
        backbone: BackboneConfig,
        modules: ParallelModulesConfig,
        steps: int,
        gravity: Vector3,
        tip_load_kg: float,
    ) -> None:
        count = modules.modules
        self.modules = modules
        self.config = rod_of_backbone(backbone, count, gravity, steps)
        self._start = MuscledRod(backbone, modules, _intervals(count), gravity, tip_load_kg)
        self._anchors = muscle_anchors(modules)
        one = self.config.model_copy(update={'segments': self.config.segments[:1]})
        self._grid, self._trace = build_grid(one, steps), new_trace(steps, 1, 0)
        # Called from Python first, so that the kernels do not compile a version of their own
        # (`geometry/kernels.py`): this one is compiled for all rods.
        none = Loads(np.zeros(0), np.zeros(6), np.zeros(3), np.zeros((1, 6)))
        shoot(self._grid, none, np.array([0.0, 0.0, 0.0, 1.0]), 0, False, True, self._trace)
        field = np.asarray(gravity, dtype=np.float64)
        mass = backbone.mass_per_length_kg_m * backbone.length_m
        self._payload = tip_load_kg * field
        self._weight, self._gravity = mass / count * field, field
        force = modules.max_pull_N + float(np.abs(mass * field).sum())
        self._scales = np.array([force, force * modules.anchor_radius_m])
        self._module_length = backbone.length_m / count
        bending = self._module_length**3 / (12.0 * backbone.bending_stiffness_N_m2)
        self._slip = _SLIP * bending

    def equilibrium(
        self,
        lengths: Array,
        tip_force: Vector3 = ZERO3,
        guess: ModulesEquilibrium | None = None,
        tip_moment: Vector3 = ZERO3,
    ) -> ModulesEquilibrium:
        """
        Return the equilibrium under commanded lengths (modules, 3) [m] and a load at the tip.

        `guess` is a neighbouring equilibrium to start from.

        Raises
        ------
        ModelError
            If no stable equilibrium is found.

        """
        springs = self.modules.springs(lengths)
        force = finite_array(tip_force, (3,), 'tip_force') + self._payload
        moment = finite_array(tip_moment, (3,), 'tip_moment')
        if guess is not None:
            found = self._balance(guess.rotations[-1], guess.wrenches, springs, force, moment)
            if found is not None and found.stable:
                return found
        rest = self._start.equilibrium(lengths, tip_force)
        found = self._from_least_energy(rest, springs, force)
        if found is not None and moment.any():
            found = self._with_moment(found, springs, force, moment)
        if found is None or not found.stable:
            what = 'the one near it is not stable' if found else 'none was found'
            raise ModelError(
                f'no stable equilibrium for muscle lengths '
                f'{np.round(1e3 * lengths.ravel(), 2).tolist()} mm, tip_force = '
                f'{np.asarray(tip_force).tolist()} N, tip_moment = {moment.tolist()} N m: {what}'
            )
        return found

    def jacobian(self, state: ModulesEquilibrium) -> Array:
        """Return the tip twist per length (6, 3 modules), base frame, linear rows first."""
        return state.twists[:, 6:].copy()

    def compliance(self, state: ModulesEquilibrium) -> Array:
        """Return the tip twist per force and moment at the tip (6, 6), base frame."""
        return state.twists[:, :6].copy()

    def shape(self, state: ModulesEquilibrium, lengths: Array) -> Shape:
        """Return the shape of an equilibrium under commanded lengths (3 modules,) [m]."""
        return Shape(state.tip, state.disks[1:], lengths.copy(), partial(self._centerline, state))

    def rod_state(self, state: ModulesEquilibrium) -> RodState:
        """Return the rod of an equilibrium, without the muscles."""
        steps, count = self.config.steps, len(self.config.segments)
        whole, one = new_trace(steps * count, count, 0), self._trace
        for place, k in enumerate(reversed(range(count))):
            loads = Loads(np.zeros(0), state.wrenches[k], self._gravity, np.zeros((1, 6)))
            shoot(self._grid, loads, state.rotations[k + 1], 0, False, True, one)
            ends = slice(place * (steps + 1), (place + 1) * (steps + 1))
            whole.strains[place * steps : (place + 1) * steps] = one.strains
            whole.points[ends] = one.points + state.positions[k + 1] - state.positions[-1]
            whole.quaternions[ends] = one.quaternions
            whole.end_strains[ends] = one.end_strains
            whole.moments[ends], whole.forces[ends] = one.moments, one.forces
        whole.base_rotation[:] = state.rotations[0]
        whole.base_point[:] = -state.positions[-1]
        none = np.zeros(0)
        return RodState(
            True, state.stable, 0.0, state.sweeps, '', none, state.rotations[-1], none,
            self.config, build_grid(self.config, steps), whole,
        )  # fmt: skip

    def _centerline(self, state: ModulesEquilibrium, n: int) -> Array:
        return self.rod_state(state).centerline(n)

    def _from_least_energy(
        self, rest: MuscleEquilibrium, springs: Springs, force: Array
    ) -> ModulesEquilibrium | None:
        chain = new_chain(len(self._anchors))
        disks = slice(None, None, (len(rest.nodes) - 1) // len(self._anchors))
        chain.rotations[:] = rest.nodes[disks][:, [1, 2, 3, 0]]
        chain.places[:] = rest.positions[disks] - rest.positions[-1]
        loads = self._loads(force, np.zeros(3))
        wrenches = np.empty((len(self._anchors), 6))
        start_wrenches_into(self._anchors, springs, loads, chain, wrenches)
        return self._balance(chain.rotations[-1], wrenches, springs, force, np.zeros(3))

    def _with_moment(
        self, free: ModulesEquilibrium, springs: Springs, force: Array, moment: Array
    ) -> ModulesEquilibrium | None:
        """Return the equilibrium under a moment at the tip, increased in steps if necessary."""
        share, step, found = 0.0, 1.0, free
        while share < 1.0:
            more = min(1.0, share + step)
            trial = self._balance(
                found.rotations[-1], found.wrenches, springs, force, more * moment
            )
            if trial is not None and trial.stable:
                share, found = more, trial
                continue
            step *= 0.5
            if step < _SMALLEST_SHARE:
                return trial
        return found

    def _balance(
        self, tip_rotation: Array, wrenches: Array, springs: Springs, force: Array, moment: Array
    ) -> ModulesEquilibrium | None:
        """Return the equilibrium near a rotation (4,) of the tip and wrenches (modules, 6)."""
        chain, solved = new_chain(len(self._anchors)), wrenches.copy()
        chain.rotations[-1] = tip_rotation
        loads = self._loads(force, moment)
        status, _, sweeps = balance(
            self._grid, self._anchors, springs, loads, self._scales, _MOST_SWEEPS, solved, chain,
            self._trace,
        )  # fmt: skip
        if status != OK:
            return None
        stable = is_stable(self._anchors, springs, solved, chain, self._slip, self._module_length)
        return ModulesEquilibrium(
            vectors=chain.vectors,
            springs=springs,
            rotations=chain.rotations,
            positions=chain.places - chain.places[0],
            wrenches=solved,
            stable=stable,
            sweeps=sweeps,
            chain=chain,
        )

    def _loads(self, force: Array, moment: Array) -> ModuleLoads:
        return ModuleLoads(np.concatenate([force, moment]), self._weight, self._gravity)


def rod_of_backbone(
    backbone: BackboneConfig, modules: int, gravity: Vector3, steps: int
) -> CosseratConfig:
    """Return the rod of a backbone, a segment for each module; it stretches and shears."""
    area = math.pi * backbone.diameter_m**2 / 4.0
    bending = backbone.bending_stiffness_N_m2
    shear = _SHEAR_FACTOR * backbone.shear_modulus_Pa * area
    axial = backbone.youngs_modulus_Pa * area
    law = np.diag([bending, bending, backbone.torsional_stiffness_N_m2, shear, shear, axial])
    profile = MatrixProfile(
        stiffness_matrix=tuple(map(tuple, law.tolist())),
        mass_per_length_kg_m=backbone.mass_per_length_kg_m,
    )
    x, y, z = (float(value) for value in gravity)
    return CosseratConfig(
        segments=tuple(
            RodSegmentConfig(
                name=f'module_{k + 1}', length_m=backbone.length_m / modules, profile=profile
            )
            for k in range(modules)
        ),
        gravity_m_s2=(x, y, z),
        steps=steps,
    )


def _intervals(modules: int) -> int:
    """Return the intervals of the backbone from which a search starts, four at least."""
    return modules * max(_START_INTERVALS, math.ceil(4 / modules))
