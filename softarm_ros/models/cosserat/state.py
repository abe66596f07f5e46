"""State of an arm in equilibrium: poses, strains, wrenches, cables, energy, derivatives."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.pose_kernels import transforms_kernel
from softarm_ros.models.cosserat.config import CosseratConfig
from softarm_ros.models.cosserat.strain_kernels import REST, ROUTES
from softarm_ros.models.cosserat.tables import NODE_OF_STAGE, B, Grid, Trace


@dataclass(frozen=True)
class RodStart:
    """
    Start of a search for an equilibrium under similar loads.

    Attributes
    ----------
    tip_rotation : (4,)
        Quaternion x, y, z, w of the tip.
    strains : (steps, 7, 6)
        Strains at the nodes of every step's scheme.

    """

    tip_rotation: Array
    strains: Array


@dataclass(frozen=True)
class RodState:
    """
    Equilibrium of the arm, or a report that there is none (then every number is NaN).

    Attributes
    ----------
    converged : bool
        Whether the arm is in equilibrium.
    stable : bool
        Whether the equilibrium is a strict minimum of the energy.
    residual : float
        Rotation error at the base [rad].
    shots : int
        Number of integrations of the whole arm.
    message : str
        Remark or reason of failure; empty if there is none.
    tensions : (cables,)
        Cable tensions [N].
    tip_rotation : (4,)
        Quaternion x, y, z, w of the tip.

    """

    converged: bool
    stable: bool
    residual: float
    shots: int
    message: str
    tensions: Array
    tip_rotation: Array = field(repr=False)
    rest_lengths: Array = field(repr=False)
    config: CosseratConfig = field(repr=False)
    grid: Grid = field(repr=False)
    trace: Trace = field(repr=False)

    @property
    def start(self) -> RodStart:
        """Start of a search under similar loads."""
        return RodStart(self.tip_rotation, self.trace.strains)

    @property
    def tip(self) -> Array:
        """Pose (4, 4) of the distal face of the last connector, base frame [m]."""
        if not self.converged:
            return np.full((4, 4), math.nan)
        return transforms_kernel(_rows(-self.trace.base_point, self.tip_rotation))[0]

    @property
    def slack(self) -> NDArray[np.bool_]:
        """Whether each cable is without tension (cables,)."""
        return self.tensions <= 0.0

    @cached_property
    def points(self) -> Array:
        """Centreline (nodes, 3) [m] at both ends of every step of every segment, from the base."""
        return self._or_nan(self.trace.points[::-1] - self.trace.base_point)

    @cached_property
    def rotations(self) -> Array:
        """Rotations (nodes, 3, 3) of the local frames at `points`."""
        rows = _rows(self.trace.points, self.trace.quaternions)
        return self._or_nan(transforms_kernel(rows)[::-1, :3, :3])

    @property
    def strains(self) -> Array:
        """Strains (nodes, 6) at `points`: u [1/m], v."""
        return self._or_nan(self.trace.end_strains[::-1])

    @property
    def moments(self) -> Array:
        """Moments (nodes, 3) [N m] over the cut through rod and cables, base frame."""
        return self._or_nan(self.trace.moments[::-1])

    @property
    def forces(self) -> Array:
        """Forces (nodes, 3) [N] over the cut through rod and cables, base frame."""
        return self._or_nan(self.trace.forces[::-1])

    @property
    def contractions(self) -> Array:
        """Shortening of the path of each cable against the arm at rest (cables,) [m]."""
        return self._or_nan(self.rest_lengths - self.trace.cable_lengths)

    @property
    def nodes_per_segment(self) -> int:
        """Number of `points` in each segment."""
        return len(self.trace.points) // len(self.config.segments)

    @cached_property
    def segment_tips(self) -> Array:
        """Poses (segments, 4, 4) of the distal faces of the connectors, base frame [m]."""
        last = np.arange(len(self.config.segments))[::-1] * self.nodes_per_segment
        places = self.trace.points[last] - self.trace.base_point
        tips = transforms_kernel(_rows(places, self.trace.quaternions[last]))
        connectors = self.grid.connectors
        tips[:, :3, 3] += connectors[:, 1:2] * tips[:, :3, 2]
        tips[:, :3, :3] = tips[:, :3, :3] @ connectors[:, 2:11].reshape(-1, 3, 3)
        return self._or_nan(tips)

    @cached_property
    def elastic_energy_J(self) -> float:
        """Energy stored in the rod [J]."""
        if not self.converged:
            return math.nan
        rows = self.grid.table[:, NODE_OF_STAGE]
        n = self.grid.n_strains
        stretch = (self.trace.strains - rows[..., REST:ROUTES])[..., :n]
        stiffness = rows[..., :REST].reshape(*rows.shape[:2], 6, 6)[..., :n, :n]
        density = 0.5 * np.einsum('jsa,jsab,jsb->js', stretch, stiffness, stretch)
        return float(self.grid.step_length @ density @ B)

    def centerline(self, n: int) -> Array:
        """
        Return (n, 3) points [m] from base to tip, evenly spaced along the arm at rest.

        Between the ends of a step, interpolate by a Hermite polynomial of degree 5 (point, tangent
        and curvature are known there); connectors are straight.
        """
        whole = sum(s.length_m + s.connector.length_m for s in self.config.segments)
        return self.points_at(np.linspace(0.0, whole, n))

    def points_at(self, along: Array) -> Array:
        """Return points (n, 3) [m] at lengths (n,) [m] along the arm at rest; see `centerline`."""
        per = self.nodes_per_segment
        segments = self.config.segments
        lengths = [s.length_m + s.connector.length_m for s in segments]
        ends = np.cumsum(lengths)
        which = np.minimum(np.searchsorted(ends, along), len(segments) - 1)
        out = np.empty((len(along), 3))
        v = self.strains[:, 3:]
        first = np.einsum('nij,nj->ni', self.rotations, v)
        second = np.einsum('nij,nj->ni', self.rotations, np.cross(self.strains[:, :3], v))
        for k, segment in enumerate(segments):
            mask = which == k
            local = along[mask] - (ends[k] - lengths[k])
            h = segment.length_m / (per - 1)
            i = np.clip((local / h).astype(int), 0, per - 2)
            x = np.minimum(local / h - i, 1.0)[:, None]
            beyond = np.maximum(local - segment.length_m, 0.0)[:, None]
            a = k * per + i
            b = a + 1
            last = (k + 1) * per - 1
            out[mask] = (
                _hermite(x, h, self.points, first, second, a, b)
                + beyond * self.rotations[last][:, 2]
            )
        return out

    def _or_nan(self, values: Array) -> Array:
        return values if self.converged else np.full_like(values, math.nan)


@dataclass(frozen=True)
class RodDerivatives:
    """
    First derivatives at an equilibrium; twists of the tip in the base frame, linear first.

    Attributes
    ----------
    tip_by_tension : (6, cables)
        Tip twist by tension [m/N, rad/N].
    compliance : (6, 6)
        Tip twist by tip force and moment, symmetric.
    contraction_by_tension : (cables, cables)
        Contraction by tension [m/N], symmetric.
    contraction_by_wrench : (cables, 6)
        The transpose of `tip_by_tension` (Maxwell-Betti).
    stable : bool
        Whether the equilibrium is a strict minimum of the energy.

    """

    tip_by_tension: Array
    compliance: Array
    contraction_by_tension: Array
    contraction_by_wrench: Array
    stable: bool


def _hermite(
    x: Array, h: float, points: Array, first: Array, second: Array, a: Array, b: Array
) -> Array:
    """Return the quintic through value, slope and second derivative at nodes a and b."""
    y = x - 1.0
    cube, other = x**3, -(y**3)
    p_b = cube * (10.0 - 15.0 * x + 6.0 * x**2)
    d_b = cube * (-4.0 + 7.0 * x - 3.0 * x**2)
    c_b = 0.5 * cube * y**2
    d_a = x * other * (1.0 + 3.0 * x)
    c_a = 0.5 * x**2 * other
    return (
        (1.0 - p_b) * points[a]
        + p_b * points[b]
        + h * (d_a * first[a] + d_b * first[b])
        + h * h * (c_a * second[a] + c_b * second[b])
    )


def _rows(points: Array, quaternions: Array) -> Array:
    """Return rows (n, 7) of points (n, 3) or (3,) and their attitudes (n, 4) or (4,)."""
    return np.concatenate([np.atleast_2d(points), np.atleast_2d(quaternions)], axis=1)
