"""Equilibrium of an elastic backbone with muscles as springs around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ZERO3, ModelError, Shape, Vector3
from softarm_ros.models.banded_kernels import banded_solve_into
from softarm_ros.models.minimum_energy.config import BackboneConfig, ParallelModulesConfig
from softarm_ros.models.minimum_energy.kernels import (
    bend_modules,
    tip_jacobian_into,
    turns_into,
)
from softarm_ros.models.minimum_energy.muscle_kernels import Springs
from softarm_ros.models.minimum_energy.muscles import MusclesInBalance, check_disks, muscle_anchors
from softarm_ros.models.minimum_energy.newton_kernels import (
    CONVERGED,
    constrained_newton,
    descend,
)
from softarm_ros.models.minimum_energy.rod import MinimumEnergyRod, node_poses

_FREE_TIP = np.zeros(0)
_NO_TARGET, _NO_ATTITUDE = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
_WARM_ITERATIONS, _DESCENT_ITERATIONS, _SLOW_ITERATIONS = 10, 200, 2000
_COARSE, _FINE = 1e-4, 1e-8  # of EI / L: gradients at which a descent ends


@dataclass(frozen=True)
class MuscleEquilibrium(MusclesInBalance):
    """
    Equilibrium of backbone and muscles under commanded lengths.

    Attributes
    ----------
    nodes, positions : (n + 1, 4), (n + 1, 3)
        Quaternions, scalar first, and positions [m] of the backbone.
    stable : bool
        Whether the equilibrium is a minimum of the energy.
    factor, by_commands : (3 n, w + 1), (3 n, 3 modules)
        Factorised Hessian of the energy, and the negative derivative of its gradient by the
        commanded lengths.

    """

    nodes: Array
    positions: Array
    stable: bool
    iterations: int
    factor: Array = field(repr=False)
    by_commands: Array = field(repr=False)

    @property
    def tip(self) -> Array:
        """Pose (4, 4) [m] of the tip."""
        return node_poses(self.nodes[-1:], self.positions[-1:])[0]


class MuscledRod:
    """
    A backbone of least energy with muscles on its disks: springs of commanded rest length.

    Parameters
    ----------
    backbone, modules
        Rod and muscles.
    intervals
        Number of intervals of the rod, a multiple of the modules.
    gravity
        (3,) [m/s^2], base frame.
    tip_load_kg
        Payload at the tip.

    """

    def __init__(
        self,
        backbone: BackboneConfig,
        modules: ParallelModulesConfig,
        intervals: int,
        gravity: Vector3,
        tip_load_kg: float,
    ) -> None:
        check_disks(intervals, modules)
        self.modules = modules
        self.rod = MinimumEnergyRod(backbone, intervals, gravity, tip_load_kg)
        self._anchors = muscle_anchors(modules)
        self._stride = intervals // modules.modules
        self._band = max(5, 3 * self._stride + 2)
        self._law = modules.gas_springs

    def equilibrium(
        self, lengths: Array, tip_force: Vector3 = ZERO3, guess: MuscleEquilibrium | None = None
    ) -> MuscleEquilibrium:
        """
        Return the equilibrium under commanded lengths (modules, 3) [m] and a tip load [N].

        `guess` is a neighbouring equilibrium to start from.

        Raises
        ------
        ModelError
            If no equilibrium is found.

        """
        loads, springs = self.rod.loads(tip_force), self._springs(lengths)
        if guess is not None:
            found, used = self._newton(guess.nodes.copy(), loads, springs)
            if found is not None:
                return found
        total = 0
        # Near lengths at which the arm snaps through, a minimum is so flat that Newton's steps
        # leave it and only the descent reaches it; from some starts rounding stops the descent.
        for alike, tolerance, most in (
            (False, _COARSE, _DESCENT_ITERATIONS),
            (False, _FINE, _SLOW_ITERATIONS),
            (True, _FINE, _SLOW_ITERATIONS),
        ):
            if alike:
                nodes = self._bent_modules(np.full_like(lengths, lengths.mean()))
            else:
                nodes = self._bent_modules(lengths, springs)
            step = np.empty(3 * self.rod.intervals)
            status, steps, gradient = descend(
                nodes, self.rod.ds, self.rod.stiffness, loads, _NO_TARGET, _NO_ATTITUDE,
                _FREE_TIP, _FREE_TIP, self._anchors, springs, self._band, step,
                tolerance, most,
            )  # fmt: skip
            known = (step, gradient) if status == CONVERGED else None
            found, used = self._newton(nodes, loads, springs, known, total + steps)
            total += steps + used
            if found is not None:
                return found
        raise ModelError(
            f'no stable equilibrium found for muscle lengths '
            f'{np.round(1e3 * lengths.ravel(), 2).tolist()} mm after {total} iterations'
        )

    def _springs(self, lengths: Array) -> Springs:
        """Return `modules.springs` of commanded lengths (modules, 3) [m], with the law kept."""
        return self.modules.springs(lengths) if self._law is None else self._law.springs(lengths)

    def _bent_modules(self, lengths: Array, springs: Springs | None = None) -> Array:
        """
        Return nodes (n + 1, 4) with each module bent to constant curvature by its lengths.

        `springs` are those of the lengths (modules, 3) [m], if known.
        """
        anchors = self._anchors
        # l_i = const + (turn x a_i) . z, by least squares for three anchors 120 degrees apart.
        weight = 2.0 / (3.0 * self.modules.anchor_radius_m**2)
        # The backbone resists; against soft muscles it reduces the bend most.
        springs = self._springs(lengths) if springs is None else springs
        gives = float((springs.stiffness + springs.gas / lengths**2).sum()) / lengths.size
        weight /= 1.0 + weight * self.rod.stiffness[0] / (gives * self._stride * self.rod.ds)
        turn = np.empty((len(anchors), 2))
        turns_into(lengths, anchors, weight, self._stride, turn)
        half = np.hypot(turn[:, 0], turn[:, 1])
        nodes = np.empty((self.rod.intervals + 1, 4))
        nodes[0] = _NO_ATTITUDE
        bend_modules(turn, np.cos(half), np.sinc(half / np.pi), nodes)
        return nodes

    def _newton(
        self,
        nodes: Array,
        loads: Array,
        springs: Springs,
        known: tuple[Array, float] | None = None,
        used: int = 0,
    ) -> tuple[MuscleEquilibrium | None, int]:
        """
        Return the equilibrium near nodes (n + 1, 4), which are changed, and the iterations.

        `known` is the first step (3 n,) and the largest gradient [N m], if known; `used` are the
        iterations so far, which count for the equilibrium.
        """
        rod, size = self.rod, 3 * self.rod.intervals
        step, gradient = (np.empty(size), 0.0) if known is None else known
        positions, vectors = np.empty((rod.intervals + 1, 3)), np.empty(self._anchors.shape)
        factor, by_commands = np.empty((size, self._band + 1)), np.empty((size, springs.rest.size))
        status, iterations, _, _ = constrained_newton(
            nodes, rod.ds, rod.stiffness, loads, _NO_TARGET, _NO_ATTITUDE, _FREE_TIP,
            self._anchors, springs, positions, vectors, factor, by_commands, step, gradient,
            _WARM_ITERATIONS,
        )  # fmt: skip
        if status != CONVERGED:
            return None, iterations
        return MuscleEquilibrium(
            vectors, springs, nodes, positions, True, used + iterations, factor, by_commands
        ), iterations

    def jacobian(self, state: MuscleEquilibrium) -> Array:
        """Return the tip twist per length (6, 3 modules) by the implicit function theorem."""
        moved, border = state.by_commands.copy(), np.empty((3 * self.rod.intervals, 3))
        banded_solve_into(state.factor, moved)
        tip_jacobian_into(state.nodes, self.rod.ds, border)
        jacobian = np.empty((6, moved.shape[1]))
        jacobian[:3] = border.T @ moved
        jacobian[3:] = 2.0 * state.tip[:3, :3] @ moved[-3:]
        return jacobian

    def shape(self, state: MuscleEquilibrium, lengths: Array) -> Shape:
        """Return the shape of an equilibrium under commanded lengths (3 modules,) [m]."""
        disks = slice(self._stride, None, self._stride)
        section_tips = node_poses(state.nodes[disks], state.positions[disks])
        sample_centerline = partial(_points_along, state.positions)
        return Shape(section_tips[-1].copy(), section_tips, lengths.copy(), sample_centerline)


def _points_along(positions: Array, n: int) -> Array:
    arc = np.linspace(0.0, 1.0, len(positions))
    s = np.linspace(0.0, 1.0, n)
    return np.stack([np.interp(s, arc, positions[:, k]) for k in range(3)], axis=1)
