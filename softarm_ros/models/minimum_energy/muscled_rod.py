"""Equilibrium of an elastic backbone with muscles as springs around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ZERO3, ModelError, Shape, Vector3
from softarm_ros.models.banded_kernels import banded_ldl_into, banded_solve_into
from softarm_ros.models.minimum_energy.config import BackboneConfig, ParallelModulesConfig
from softarm_ros.models.minimum_energy.kernels import positions_into
from softarm_ros.models.minimum_energy.muscle_kernels import Springs, muscle_vectors_into
from softarm_ros.models.minimum_energy.muscles import check_disks, muscle_anchors
from softarm_ros.models.minimum_energy.newton_kernels import (
    CONVERGED,
    constrained_newton,
    descend,
    system_into,
)
from softarm_ros.models.minimum_energy.rod import MinimumEnergyRod, node_poses

_FREE_TIP = np.zeros(0)
_NO_TARGET, _NO_ATTITUDE = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
_WARM_ITERATIONS, _DESCENT_ITERATIONS, _SLOW_ITERATIONS = 10, 200, 2000
_COARSE, _FINE = 1e-4, 1e-8  # of EI / L: gradients at which a descent ends


@dataclass(frozen=True)
class MuscleEquilibrium:
    """
    Equilibrium of backbone and muscles under commanded lengths.

    Attributes
    ----------
    nodes, positions : (n + 1, 4), (n + 1, 3)
        Quaternions, scalar first, and positions [m] of the backbone.
    lengths, tensions : (3 modules,)
        Actual lengths [m] and muscle forces [N], positive pulling.
    stable : bool
        Whether the equilibrium is a minimum of the energy.

    """

    nodes: Array
    positions: Array
    lengths: Array
    tensions: Array
    stable: bool
    iterations: int


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
        loads, springs = self.rod.loads(tip_force), self.modules.springs(lengths)
        if guess is not None:
            nodes = guess.nodes.copy()
            status, used = self._newton(nodes, loads, springs)
            if status == CONVERGED:
                return self._equilibrium(nodes, springs, True, used)
        total = 0
        # Near lengths at which the arm snaps through, a minimum is so flat that Newton's steps
        # leave it and only the descent reaches it; from some starts rounding stops the descent.
        for bent, tolerance, most in (
            (lengths, _COARSE, _DESCENT_ITERATIONS),
            (lengths, _FINE, _SLOW_ITERATIONS),
            (np.full_like(lengths, lengths.mean()), _FINE, _SLOW_ITERATIONS),
        ):
            nodes = self._bent_modules(bent)
            _, steps = descend(
                nodes, self.rod.ds, self.rod.stiffness, loads, _NO_TARGET, _NO_ATTITUDE,
                _FREE_TIP, _FREE_TIP, self._anchors, springs, self._band,
                tolerance, most,
            )  # fmt: skip
            status, used = self._newton(nodes, loads, springs)
            total += steps + used
            if status == CONVERGED:
                return self._equilibrium(nodes, springs, True, total)
        raise ModelError(
            f'no stable equilibrium found for muscle lengths '
            f'{np.round(1e3 * lengths.ravel(), 2).tolist()} mm after {total} iterations'
        )

    def _bent_modules(self, lengths: Array) -> Array:
        """Return nodes (n + 1, 4) with each module bent to constant curvature by its lengths."""
        anchors = self._anchors
        # l_i = const + (turn x a_i) . z, by least squares for three anchors 120 degrees apart.
        weight = 2.0 / (3.0 * self.modules.anchor_radius_m**2)
        # The backbone resists; against soft muscles it reduces the bend most.
        springs = self.modules.springs(lengths)
        gives = float(np.mean(springs.stiffness + springs.gas / lengths**2))
        weight /= 1.0 + weight * self.rod.stiffness[0] / (gives * self._stride * self.rod.ds)
        turn = weight * np.stack(
            [np.sum(lengths * anchors[:, :, 1], 1), -np.sum(lengths * anchors[:, :, 0], 1)], 1
        )
        nodes = np.zeros((self.rod.intervals + 1, 4))
        nodes[0, 0] = 1.0
        for module, (x, y) in enumerate((0.5 * turn / self._stride).tolist()):
            half = np.hypot(x, y)
            c, s = float(np.cos(half)), float(np.sinc(half / np.pi))
            for i in range(module * self._stride, (module + 1) * self._stride):
                w0, w1, w2, w3 = nodes[i].tolist()
                nodes[i + 1] = (
                    w0 * c - s * (w1 * x + w2 * y),
                    w1 * c + s * (w0 * x - w3 * y),
                    w2 * c + s * (w0 * y + w3 * x),
                    w3 * c + s * (w1 * y - w2 * x),
                )
        return nodes

    def _newton(self, nodes: Array, loads: Array, springs: Springs) -> tuple[int, int]:
        status, used, _, _ = constrained_newton(
            nodes, self.rod.ds, self.rod.stiffness, loads, _NO_TARGET, _NO_ATTITUDE,
            np.zeros(0), self._anchors, springs, self._band,
            _WARM_ITERATIONS,
        )  # fmt: skip
        return status, used

    def _equilibrium(
        self, nodes: Array, springs: Springs, stable: bool, iterations: int
    ) -> MuscleEquilibrium:
        positions = np.empty((self.rod.intervals + 1, 3))
        positions_into(nodes, self.rod.ds, positions)
        vectors = np.empty(self._anchors.shape)
        muscle_vectors_into(nodes, positions, self._anchors, vectors)
        lengths = np.linalg.norm(vectors, axis=2)
        tensions = springs.stiffness * (lengths - springs.rest) - springs.gas / lengths
        return MuscleEquilibrium(
            nodes, positions, lengths.ravel(), tensions.ravel(), stable, iterations
        )

    def jacobian(self, state: MuscleEquilibrium, lengths: Array, tip_force: Vector3) -> Array:
        """Return the tip twist per length (6, 3 modules) by the implicit function theorem."""
        moved, border = self._response(state, lengths, tip_force)
        jacobian = np.empty((6, lengths.size))
        jacobian[:3] = border.T @ moved
        rotation = node_poses(state.nodes[-1:], state.positions[-1:])[0, :3, :3]
        jacobian[3:] = 2.0 * rotation @ moved[-3:]
        return jacobian

    def _response(
        self, state: MuscleEquilibrium, lengths: Array, tip_force: Vector3
    ) -> tuple[Array, Array]:
        """Return du / d command (3 n, 3 modules) and d tip / du (3 n, 3), transposed."""
        n, size = self.rod.intervals, 3 * self.rod.intervals
        vectors = np.empty(self._anchors.shape)
        muscle_vectors_into(state.nodes, state.positions, self._anchors, vectors)
        gradient, band = np.empty(size), np.empty((size, self._band + 1))
        border, by_lengths = np.empty((size, 3)), np.empty((size, lengths.size))
        system_into(
            state.nodes, self.rod.ds, self.rod.stiffness, self.rod.loads(tip_force),
            _NO_ATTITUDE, np.zeros(3), self._anchors, vectors,
            self.modules.springs(lengths.reshape(-1, 3)),
            np.empty((n, 3)), gradient, band, border, by_lengths, True,
        )  # fmt: skip
        if banded_ldl_into(band) < 0:
            raise ModelError('the equilibrium is about to buckle: its Jacobian is unbounded')
        banded_solve_into(band, by_lengths)
        return by_lengths, border

    def shape(self, state: MuscleEquilibrium, lengths: Array) -> Shape:
        """Return the shape of an equilibrium under commanded lengths (3 modules,) [m]."""
        disks = slice(self._stride, None, self._stride)
        section_tips = node_poses(state.nodes[disks], state.positions[disks])
        positions = state.positions
        arc = np.linspace(0.0, 1.0, len(positions))

        def sample_centerline(n: int) -> Array:
            s = np.linspace(0.0, 1.0, n)
            return np.stack([np.interp(s, arc, positions[:, k]) for k in range(3)], axis=1)

        return Shape(section_tips[-1].copy(), section_tips, lengths.copy(), sample_centerline)
