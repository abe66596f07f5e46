"""
The paper's method: finite differences and least squares (Chen et al. 2022, eq. 33-51).

It is kept for comparison. Differences are central here; those printed (eq. 40, 41) contradict each
other. The printed equations contain no force at the tip, so only a moment holds it
(`TipSupport.MOMENT`). With the force as three more unknowns and no moment at the free tip
(`TipSupport.FORCE`) the solution has the least energy.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.geometry.rotations import quaternion_from_matrix
from softarm_ros.models.arm_model import ZERO3, Vector3
from softarm_ros.models.minimum_energy.kernels import elastic_energy, positions_into
from softarm_ros.models.minimum_energy.rod import (
    MinimumEnergyRod,
    RodEquilibrium,
    curvatures_of,
    node_poses,
)

POSITION_WEIGHT = (
    100.0  # of the residual of eq. 48 [1/m], relative to force balances of the order of 1 N
)
_CONVERGED_RESIDUAL = 1e-8
Numbers = NDArray[Any]  # float64, or complex128 for the complex step
_COLOURS = 3  # each residual depends on three neighbouring nodes
_COMPLEX_STEP = 1e-30


class TipSupport(Enum):
    """The support that holds the tip at its position besides the load."""

    FORCE = 'force'
    MOMENT = 'moment'


class _Equations:
    """Residuals and Jacobian of eq. 36-39, 48 and 49 by the quaternions of the nodes 1..n."""

    def __init__(
        self,
        rod: MinimumEnergyRod,
        target: Array,
        attitude: Array | None,
        tip_force: Array,
        support: TipSupport,
    ) -> None:
        self.ds, self.stiffness = rod.ds, rod.stiffness
        self.n = rod.intervals
        self.target, self.attitude, self.support = target, attitude, support
        arc = np.arange(1, self.n) * rod.ds
        self.loads = tip_force + np.outer(rod.backbone.length_m - arc, rod.weight)

    def local(self, x: Numbers, force: Numbers) -> Numbers:
        """Return the residuals (rows,) that depend on three neighbouring nodes."""
        k1, k2, k3 = self.stiffness
        here = x[1:-1]
        first = (x[2:] - x[:-2]) / (2.0 * self.ds)
        second = (x[2:] - 2.0 * here + x[:-2]) / self.ds**2
        w, dw = 2.0 * _body_vector(here, first), 2.0 * _body_vector(here, second)
        load = _turned_back(here, self.loads + force)
        blocks = [
            k1 * dw[:, 0] + (k3 - k2) * w[:, 1] * w[:, 2] - load[:, 1],
            k2 * dw[:, 1] + (k1 - k3) * w[:, 0] * w[:, 2] + load[:, 0],
            k3 * dw[:, 2],
            np.sum(x[1:] * x[1:], axis=1) - 1.0,
        ]
        if self.attitude is not None:
            blocks.append(x[-1] - self.attitude)
        elif self.support is TipSupport.FORCE:
            end = (3.0 * x[-1] - 4.0 * x[-2] + x[-3]) / (2.0 * self.ds)
            blocks.append(2.0 * self.stiffness * _body_vector(x[-1:], end[None])[0])
        return np.concatenate(blocks)

    def split(self, unknown: Numbers) -> tuple[Numbers, Numbers]:
        """Return the nodes (n + 1, 4) and the unknown force (3,)."""
        x = np.empty((self.n + 1, 4), dtype=unknown.dtype)
        x[0] = (1.0, 0.0, 0.0, 0.0)
        x[1:] = unknown[: 4 * self.n].reshape(self.n, 4)
        force = unknown[4 * self.n :] if self.support is TipSupport.FORCE else np.zeros(3)
        return x, force

    def residual(self, unknown: Array) -> Array:
        """Return all residuals: the local ones, then those of the tip position."""
        x, force = self.split(unknown)
        r = np.empty((self.n + 1, 3))
        positions_into(x, self.ds, r)
        return np.concatenate([self.local(x, force), POSITION_WEIGHT * (r[-1] - self.target)])

    def jacobian(self, unknown: Array) -> Array:
        """Return the Jacobian; complex steps move every third node at once for local residuals."""
        count = unknown.size
        rows = self.local(*self.split(unknown)).size
        jacobian = np.zeros((rows + 3, count))
        node_of_row = self._middle_nodes(rows)
        for colour in range(_COLOURS):
            nodes = np.arange(1 + colour, self.n + 1, _COLOURS)
            for component in range(4):
                columns = 4 * (nodes - 1) + component
                step = unknown.astype(np.complex128)
                step[columns] += 1j * _COMPLEX_STEP
                slope = self.local(*self.split(step)).imag / _COMPLEX_STEP
                # A row depends on the nearest perturbed node only.
                nearest = np.clip(
                    np.round((node_of_row - 1 - colour) / _COLOURS).astype(int), 0, nodes.size - 1
                )
                seen = np.abs(nodes[nearest] - node_of_row) <= 1
                row = np.flatnonzero(seen)
                jacobian[row, columns[nearest[row]]] = slope[row]
        for column in range(4 * self.n, count):
            step = unknown.astype(np.complex128)
            step[column] += 1j * _COMPLEX_STEP
            jacobian[:rows, column] = self.local(*self.split(step)).imag / _COMPLEX_STEP
        x, _ = self.split(unknown)
        jacobian[rows:, : 4 * self.n] = POSITION_WEIGHT * _tip_rows(x, self.ds)
        return jacobian

    def _middle_nodes(self, rows: int) -> Array:
        inner, every = np.arange(1, self.n), np.arange(1, self.n + 1)
        ends = np.full(rows - 3 * inner.size - every.size, self.n - 1)
        if self.attitude is not None:
            ends[:] = self.n
        return np.concatenate([inner, inner, inner, every, ends])


def solve_least_squares(
    rod: MinimumEnergyRod,
    position: Vector3,
    orientation: Array | None = None,
    tip_force: Vector3 = ZERO3,
    support: TipSupport = TipSupport.FORCE,
    guess: RodEquilibrium | None = None,
    max_evaluations: int = 300,
) -> RodEquilibrium:
    """
    Return the shape that Levenberg-Marquardt finds for eq. 51.

    Parameters
    ----------
    rod
        Backbone, step and gravity.
    position, orientation, tip_force
        As in `MinimumEnergyRod.reach`; an orientation is held exactly (eq. 49).
    support
        Support of the tip; with an orientation, `FORCE` adds the force to the free moment.
    guess
        Shape to start from; by default the straight arm, as in the paper. Least squares from the
        straight arm may end in a local minimum; then `converged` is False.
    max_evaluations
        Limit on the evaluations of the residual.

    """
    target = finite_array(position, (3,), 'position')
    attitude = None
    if orientation is not None:
        x, y, z, w = quaternion_from_matrix(orientation)
        attitude = np.array([w, x, y, z])
    force = finite_array(tip_force, (3,), 'tip_force')
    equations = _Equations(rod, target, attitude, force, support)
    nodes = np.zeros((rod.intervals + 1, 4))
    nodes[:, 0] = 1.0
    multiplier = np.zeros(3)
    if guess is not None:
        nodes = guess.nodes.copy()
        multiplier = guess.tip_wrench[:3].copy()
    start = nodes[1:].ravel()
    if support is TipSupport.FORCE:
        start = np.concatenate([start, multiplier])
    found = least_squares(
        equations.residual,
        start,
        jac=equations.jacobian,
        method='lm',
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
        max_nfev=max_evaluations,
    )
    return _solution(rod, equations, found.x, int(found.nfev))


def _solution(
    rod: MinimumEnergyRod, equations: _Equations, unknown: Array, evaluations: int
) -> RodEquilibrium:
    nodes, force = equations.split(unknown)
    residual = equations.residual(unknown)
    r = np.empty((rod.intervals + 1, 3))
    positions_into(nodes, rod.ds, r)
    worst = float(np.abs(residual).max())
    converged = worst <= _CONVERGED_RESIDUAL
    wrench = np.zeros(6)
    wrench[:3] = force
    end = (3.0 * nodes[-1] - 4.0 * nodes[-2] + nodes[-3]) / (2.0 * rod.ds)
    moment = 2.0 * rod.stiffness * _body_vector(nodes[-1:], end[None])[0]
    wrench[3:] = node_poses(nodes[-1:], r[-1:])[0, :3, :3] @ moment
    message = '' if converged else f'a local minimum of eq. 51: largest residual {worst:.3g}'
    return RodEquilibrium(
        quaternions=np.ascontiguousarray(nodes[:, [1, 2, 3, 0]]),
        positions=r,
        curvatures=curvatures_of(nodes, rod.ds),
        tip_wrench=wrench,
        elastic_energy_J=elastic_energy(nodes, rod.ds, rod.stiffness),
        residual_m=float(np.linalg.norm(r[-1] - equations.target)),
        residual_moment_N_m=float(np.abs(residual[:-3]).max()) * rod.ds,
        converged=converged,
        stable=converged,
        iterations=evaluations,
        message=message,
        nodes=nodes,
        multipliers=wrench[:3].copy(),
    )


def _body_vector(x: Numbers, y: Numbers) -> Numbers:
    """Return vec(x* y) (m, 3): eq. 34 and 35 without their factor 2."""
    return np.stack(
        [
            x[:, 0] * y[:, 1] - x[:, 1] * y[:, 0] - x[:, 2] * y[:, 3] + x[:, 3] * y[:, 2],
            x[:, 0] * y[:, 2] + x[:, 1] * y[:, 3] - x[:, 2] * y[:, 0] - x[:, 3] * y[:, 1],
            x[:, 0] * y[:, 3] - x[:, 1] * y[:, 2] + x[:, 2] * y[:, 1] - x[:, 3] * y[:, 0],
        ],
        axis=1,
    )


def _turned_back(x: Numbers, force: Numbers) -> Numbers:
    """Return R' F (m, 3): eq. 42 and 43."""
    a, b, c, d = x.T
    f, g, h = force.T
    aa, bb, cc, dd = a * a, b * b, c * c, d * d
    return np.stack(
        [
            (aa + bb - cc - dd) * f + 2 * (b * c + a * d) * g + 2 * (b * d - a * c) * h,
            2 * (b * c - a * d) * f + (aa - bb + cc - dd) * g + 2 * (c * d + a * b) * h,
            2 * (b * d + a * c) * f + 2 * (c * d - a * b) * g + (aa - bb - cc + dd) * h,
        ],
        axis=1,
    )


def _tip_rows(x: Array, ds: float) -> Array:
    """Return d r_n / dx (3, 4 n) of eq. 47."""
    # r_n = sum of x_i' A_k x_j with weights 1/3 (i = j, both sides) and 1/3 (neighbours).
    around = np.zeros_like(x[1:])
    around += 4.0 * x[1:] + x[:-1]
    around[:-1] += x[2:]
    around[-1] -= 2.0 * x[-1]
    a, b, c, d = (ds / 3.0) * around.T
    return np.stack(
        [
            np.stack([c, d, a, b], axis=1).ravel(),
            np.stack([-b, -a, d, c], axis=1).ravel(),
            np.stack([a, -b, -c, d], axis=1).ravel(),
        ]
    )
