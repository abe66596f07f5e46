"""
Newton-Euler dynamics of an arm of sections, each divided into segments of constant strain.

Generalises Chen et al. (Micromachines 2022, 13, 130): the exact exponential map instead of their
small-rotation rates, distributed mass, any number of segments at linear cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ZERO3, ModelError, Shape, Vector3
from softarm_ros.models.dynamics.body import build_body
from softarm_ros.models.dynamics.config import DynamicSectionConfig, RigidBodyConfig
from softarm_ros.models.dynamics.energy_kernels import energies, node_twists, tip_twists
from softarm_ros.models.dynamics.integrator_kernels import accelerations_into, solve_mass_into
from softarm_ros.models.dynamics.layout import Body, Loads, Scratch, allocate_scratch
from softarm_ros.models.dynamics.recursion_kernels import place_arm, residual
from softarm_ros.models.dynamics.segment_kernels import place_segment

STANDARD_GRAVITY = (0.0, 0.0, -9.80665)


@dataclass(frozen=True)
class Energy:
    """Energies [J] of a state and the power it loses to damping and drag [W]."""

    kinetic: float
    elastic: float
    weight: float
    loss_W: float

    @property
    def total(self) -> float:
        """Kinetic, elastic and weight energy [J]."""
        return self.kinetic + self.elastic + self.weight


class ArmDynamics:
    """
    Dynamics of one arm.

    Strains, rates and accelerations are (n, 4) over the segments from base to tip, in the order
    (eps, kx, ky, kz): stretch and curvatures per rest length; the rotation of a segment is
    exp(length * (kx, ky, kz)). Generalised forces have the same order, N m and N m^2.

    Parameters
    ----------
    sections : sequence of DynamicSectionConfig
        From base to tip.
    payload : RigidBodyConfig, optional
        Rigid body at the tip, in the tip frame.

    Raises
    ------
    ModelError
        If there is no section, or a segment without inertia.

    """

    def __init__(
        self,
        sections: Sequence[DynamicSectionConfig],
        payload: RigidBodyConfig | None = None,
    ) -> None:
        """Build the constant arrays."""
        self.sections = tuple(sections)
        self.body: Body = build_body(self.sections, payload or RigidBodyConfig())
        self.segments = self.body.length.shape[0]
        self.scratch: Scratch = allocate_scratch(self.segments)
        self._work = np.zeros((self.segments, 4))
        self._section_ends = np.cumsum([section.segments for section in self.sections])

    @property
    def rest_length_m(self) -> float:
        """Length of the unstrained arm with its connectors, base to tip [m]."""
        return float(self.body.length.sum() + self.body.connector[:, 2].sum())

    @property
    def straight(self) -> Array:
        """Strains (n, 4) of the unloaded arm, the rest strains."""
        return self.body.rest.copy()

    def loads(
        self,
        gravity_m_s2: Vector3 = STANDARD_GRAVITY,
        *,
        drive: ArrayLike | None = None,
        tip_force: Vector3 = ZERO3,
        tip_moment: Vector3 = ZERO3,
        node_wrenches: ArrayLike | None = None,
        added_mass: ArrayLike | None = None,
        node_damping: ArrayLike | None = None,
        cable_offset_m: ArrayLike | None = None,
        cable_tension_N: ArrayLike | None = None,
    ) -> Loads:
        """
        Return the checked loads on the arm; they are in the base frame unless stated otherwise.

        Parameters
        ----------
        gravity_m_s2 : (3,)
            Acceleration of free fall [m/s^2].
        drive : (n, 4), optional
            Tangential force [N] and moment [N m] of the drive in each segment, material axes; see
            `chamber_drive`.
        tip_force, tip_moment : (3,)
            Force and moment at the tip [N, N m].
        node_wrenches : (n, 6), optional
            Force and moment at every node (far end of a segment and its connector) [N, N m].
        added_mass : (n, 6, 6), optional
            Fluid inertia at every node, node axes, linear rows first; symmetric, not negative.
        node_damping : (n, 6, 6), optional
            Resistance at every node per node twist, node axes, linear rows first; symmetric.
            Quadratic drag is integrated implicitly if `node_wrenches` holds the drag at the
            present twist plus this matrix times that twist.
        cable_offset_m : (n, m, 2), optional
            Positions of m cables in the cross-section of each segment [m].
        cable_tension_N : (n, m), optional
            Tension of each cable in each segment, zero in segments that it does not pass.

        Raises
        ------
        ModelError
            On a wrong shape, a value that is not finite, or a negative tension.

        """
        n = self.segments
        wrench = checked('node_wrenches', node_wrenches, (n, 6))
        wrench[-1, :3] += checked('tip_force', tip_force, (3,))
        wrench[-1, 3:] += checked('tip_moment', tip_moment, (3,))
        if (cable_offset_m is None) != (cable_tension_N is None):
            raise ModelError('cable_offset_m and cable_tension_N must be given together')
        cables = 0 if cable_tension_N is None else np.asarray(cable_tension_N).shape[-1]
        tension = checked('cable_tension_N', cable_tension_N, (n, cables))
        if tension.size and tension.min() < 0.0:
            raise ModelError(f'cable_tension_N {tension.min():.4g} must not be below 0')
        return Loads(
            gravity=checked('gravity_m_s2', gravity_m_s2, (3,)),
            drive=checked('drive', drive, (n, 4)),
            wrench=wrench,
            added_mass=self._node_matrices('added_mass', added_mass),
            node_damping=self._node_matrices('node_damping', node_damping),
            cable_offset=checked('cable_offset_m', cable_offset_m, (n, cables, 2)),
            cable_tension=tension,
        )

    def _node_matrices(self, name: str, value: ArrayLike | None) -> Array:
        """Return symmetric matrices (n, 6, 6), or (0, 6, 6) for None, which the kernels skip."""
        if value is None:
            return np.zeros((0, 6, 6))
        matrices = checked(name, value, (self.segments, 6, 6))
        asymmetry = float(np.abs(matrices - matrices.transpose(0, 2, 1)).max())
        if asymmetry > 1e-9 * float(np.abs(matrices).max()):
            raise ModelError(f'{name} is not symmetric, difference {asymmetry:.3g}')
        return matrices

    def inverse_dynamics(
        self, strains: ArrayLike, rates: ArrayLike, accelerations: ArrayLike, loads: Loads
    ) -> Array:
        """Return the generalised forces (n, 4) that a motion needs in addition to the loads."""
        q, v, a = self._checked(strains, rates, accelerations)
        out = np.empty_like(q)
        place_arm(self.body, q, self.scratch)
        residual(self.body, loads, q, v, a, self.scratch, out)
        return out

    def forward_dynamics(self, strains: ArrayLike, rates: ArrayLike, loads: Loads) -> Array:
        """
        Return the accelerations (n, 4) of a state, in linear time.

        Raises
        ------
        ModelError
            If the mass matrix is not positive definite (a segment without inertia).

        """
        q, v = self._checked(strains, rates)
        out = np.empty_like(q)
        if not accelerations_into(self.body, loads, q, v, self.scratch, self._work, out):
            raise ModelError('mass matrix is not positive definite: a segment lacks inertia')
        return out

    def mass_matrix(self, strains: ArrayLike, loads: Loads | None = None) -> Array:
        """Return the mass matrix (4 n, 4 n), including the added mass in `loads`, if any."""
        (q,) = self._checked(strains)
        still = self.loads(ZERO3) if loads is None else loads
        bare = self._without_material(still)
        n, zero, out = self.segments, np.zeros_like(q), np.empty_like(q)
        place_arm(self.body, q, self.scratch)
        matrix = np.empty((4 * n, 4 * n))
        unit = np.zeros_like(q)
        base = np.empty_like(q)
        residual(bare, still, q, zero, zero, self.scratch, base)
        for j in range(4 * n):
            unit.flat[j] = 1.0
            residual(bare, still, q, zero, unit, self.scratch, out)
            matrix[:, j] = (out - base).ravel()
            unit.flat[j] = 0.0
        return 0.5 * (matrix + matrix.T)

    def _without_material(self, loads: Loads) -> Body:
        """Return the body without material forces, beside which inertia would lose digits."""
        zero = np.zeros_like(self.body.stiffness)
        return self.body._replace(stiffness=zero, damping=zero)

    def solve_mass(self, strains: ArrayLike, right: ArrayLike, loads: Loads) -> Array:
        """Return M^-1 times generalised forces (n, 4), in linear time."""
        q, r = self._checked(strains, right)
        out = np.empty_like(r)
        if not solve_mass_into(self.body, loads, q, r, self.scratch, out):
            raise ModelError('mass matrix is not positive definite: a segment lacks inertia')
        return out

    def energy(self, strains: ArrayLike, rates: ArrayLike, loads: Loads) -> Energy:
        """Return energies and losses of a state, not counting drive, cables and wrenches."""
        q, v = self._checked(strains, rates)
        place_arm(self.body, q, self.scratch)
        return Energy(*energies(self.body, loads, q, v, self.scratch))

    def node_poses(self, strains: ArrayLike) -> Array:
        """Return the poses (n + 1, 4, 4) of base and nodes [m]; the last node is the tip."""
        (q,) = self._checked(strains)
        place_arm(self.body, q, self.scratch)
        poses = np.zeros((self.segments + 1, 4, 4))
        poses[:, :3, :3] = self.scratch.rotation
        poses[:, :3, 3] = self.scratch.origin
        poses[:, 3, 3] = 1.0
        return poses

    def node_twists(self, strains: ArrayLike, rates: ArrayLike) -> Array:
        """Return velocities (n, 6) of the nodes, base axes, linear first [m/s, rad/s]."""
        q, v = self._checked(strains, rates)
        place_arm(self.body, q, self.scratch)
        out = np.empty((self.segments, 6))
        node_twists(self.body, v, self.scratch, out)
        return out

    def tip_jacobian(self, strains: ArrayLike) -> Array:
        """Return the tip twist per strain rate (6, 4 n), base axes, linear rows first."""
        (q,) = self._checked(strains)
        place_arm(self.body, q, self.scratch)
        jacobian = np.empty((6, q.size))
        tip_twists(self.body, self.scratch, jacobian)
        return jacobian

    def shape(self, strains: ArrayLike) -> Shape:
        """Return the arm's shape in the base frame; `configuration` holds the strains, flat."""
        (q,) = self._checked(strains)
        poses = self.node_poses(q)
        return Shape(
            tip=poses[-1],
            section_tips=poses[self._section_ends],
            configuration=q.ravel(),
            sample_centerline=partial(self._centerline, q, poses),
        )

    def _centerline(self, q: Array, poses: Array, count: int) -> Array:
        """Return points evenly spaced in rest length of rod and connectors."""
        rod, rigid = self.body.length, self.body.connector[:, 2]
        ends = np.cumsum(rod + rigid)
        points = np.zeros((count, 3))
        one = allocate_scratch(1)
        for i, s in enumerate(np.linspace(0.0, ends[-1], count)):
            k = min(int(np.searchsorted(ends, s)), self.segments - 1)
            inside = s - (ends[k] - rod[k] - rigid[k])
            part = min(inside, rod[k])
            place_segment(
                part, self.body.rotary[k:], q[k:], 0, one.turned, one.end, one.end_map,
                one.centre, one.centre_map, one.end_turn, one.middle_turn, one.inertia,
            )  # fmt: skip
            local = one.end[0] + one.turned[0][:, 2] * (inside - part)
            points[i] = poses[k, :3, 3] + poses[k, :3, :3] @ local
        return points

    def _checked(self, *values: ArrayLike) -> tuple[Array, ...]:
        names = ('strains', 'rates', 'accelerations')
        shape = (self.segments, 4)
        return tuple(checked(name, value, shape) for name, value in zip(names, values))


def checked(name: str, value: ArrayLike | None, shape: tuple[int, ...]) -> Array:
    """Return a writable float copy of the given shape, zeros for None."""
    if value is None:
        return np.zeros(shape)
    array = np.array(value, dtype=np.float64, order='C')
    if array.shape != shape:
        raise ModelError(f'{name} has shape {array.shape}, expected {shape}')
    if not np.isfinite(array).all():
        raise ModelError(f'{name} holds values that are not finite')
    return array
