"""
Inverse statics: the resultants that hold given bends and elongations of the sections.

The drive of a section is the same in all its segments, so it can prescribe three numbers: the
bending vector (b_x, b_y), which is the sum of the segments' bends in material axes, and the
elongation. The other strains, mainly torsion, are free and follow from balance. With R(q) the
forces that strains q need beyond gravity and wrench, and B the map from the sections' resultants u
to forces,

    R(q) = B u,    B' q = c,

since by virtual work B' q are exactly the bends and elongations c. Newton's method solves for
(q, u); its matrix [[K, -B], [B', 0]] also gives dq/dc and du/dc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.layout import Body, Loads, Scratch, allocate_scratch
from softarm_ros.models.dynamics.recursion_kernels import place_arm, static_residual
from softarm_ros.models.dynamics.tangents import ComplexArray, static_tangent_into

ITERATION_LIMIT = 60
# The search ends after a step of this size. The remaining error is rounding: Newton converges
# quadratically, and with an old matrix steps shrink tenfold or better.
_CLOSE = 1e-7
_CLOSE_BY_OLD_MATRIX = 1e-11
_MAX_TURN_RAD = 0.7  # sum of the strain changes over the arm in one Newton step


@dataclass(frozen=True)
class HeldShape:
    """
    Balance of an arm whose sections are held at given bends and elongations.

    Attributes
    ----------
    strains : (n, 4)
    resultants : (3 s,)
        Resultants of each section's drive, conjugate to the configuration: moments towards x
        and y (about y and -x) [N m], force [N].
    strains_by_configuration : (4 n, 3 s)
    resultants_by_configuration : (3 s, 3 s)
    stiffness : (4 n, 4 n)
        Derivative of the unbalanced forces by the strains at constant resultants.

    """

    strains: Array
    resultants: Array
    strains_by_configuration: Array
    resultants_by_configuration: Array
    stiffness: Array

    @property
    def stable(self) -> bool:
        """Whether the shape is stable at constant drive: the stiffness is positive definite."""
        symmetric = 0.5 * (self.stiffness + self.stiffness.T)
        return bool(np.linalg.eigvalsh(symmetric)[0] > 0.0)


@kernel
def _tangent_into(
    body: Body,
    loads: Loads,
    hold: Array,
    q: Array,
    complex_q: ComplexArray,
    zeros: ComplexArray,
    complex_scratch: Scratch,
    column: ComplexArray,
    matrix: Array,
) -> None:
    """Write the Newton matrix at strains q (n, 4)."""
    n, m = q.shape[0], hold.shape[1]
    for k in range(n):
        for j in range(4):
            complex_q[k, j] = q[k, j]
    static_tangent_into(
        body, loads, complex_q, zeros, complex_scratch, column, matrix[: 4 * n, : 4 * n]
    )
    _border(hold, n, m, matrix)


@kernel
def _border(hold: Array, n: int, m: int, matrix: Array) -> None:
    for j in range(m):
        for i in range(4 * n):
            matrix[i, 4 * n + j] = -hold[i, j]
            matrix[4 * n + j, i] = hold[i, j]
        for i in range(m):
            matrix[4 * n + j, 4 * n + i] = 0.0


@kernel
def _search(
    body: Body,
    loads: Loads,
    hold: Array,
    wanted: Array,
    q: Array,
    u: Array,
    complex_q: ComplexArray,
    zeros: ComplexArray,
    complex_scratch: Scratch,
    column: ComplexArray,
    scratch: Scratch,
    matrix: Array,
    right: Array,
    known: bool,
) -> bool:
    """
    Solve for q (n, 4) and u (3 s,) in place by Newton; hold (4 n, 3 s) is B, wanted (3 s,) is c.

    If `known`, `matrix` holds the Newton matrix of a nearby solution. On return it is the Newton
    matrix at the solution. A matrix is reused as long as the steps shrink well.
    """
    n, m = q.shape[0], u.shape[0]
    still = np.zeros((n, 4))
    out = np.zeros((n, 4))
    fresh, before = False, np.inf
    for _ in range(ITERATION_LIMIT):
        if not known:
            _tangent_into(body, loads, hold, q, complex_q, zeros, complex_scratch, column, matrix)
            known, fresh = True, True
        place_arm(body, q, scratch)
        static_residual(body, loads, q, still, scratch, out)
        for i in range(4 * n):
            value = out[i // 4, i % 4]
            for j in range(m):
                value -= hold[i, j] * u[j]
            right[i] = -value
        for j in range(m):
            value = wanted[j]
            for i in range(4 * n):
                value -= hold[i, j] * q[i // 4, i % 4]
            right[4 * n + j] = value
        change = np.linalg.solve(matrix, right)
        largest, total = 0.0, 0.0
        for k in range(n):
            turn = abs(change[4 * k]) + body.length[k] * (
                abs(change[4 * k + 1]) + abs(change[4 * k + 2]) + abs(change[4 * k + 3])
            )
            largest = max(largest, turn)
            total += turn
        if not np.isfinite(total):
            return False
        factor = min(1.0, _MAX_TURN_RAD / max(total, 1e-30))
        for k in range(n):
            for j in range(4):
                q[k, j] += factor * change[4 * k + j]
        for j in range(m):
            u[j] += factor * change[4 * n + j]
        if largest <= (_CLOSE if fresh else _CLOSE_BY_OLD_MATRIX):
            _tangent_into(body, loads, hold, q, complex_q, zeros, complex_scratch, column, matrix)
            return True
        fresh = False
        known = factor == 1.0 and largest < 0.1 * before
        before = largest
    return False


class ShapeHolder:
    """
    Solver for the held shapes of one arm.

    Parameters
    ----------
    arm : ArmDynamics
        The arm.
    loads : Loads
        Gravity and wrenches, without drive.

    """

    def __init__(self, arm: ArmDynamics, loads: Loads) -> None:
        self.arm, self.loads = arm, loads
        n, self._sections = arm.segments, len(arm.sections)
        self.hold = np.zeros((4 * n, 3 * self._sections))
        begin = 0
        for s, section in enumerate(arm.sections):
            for k in range(begin, begin + section.segments):
                length = arm.body.length[k]
                self.hold[4 * k + 2, 3 * s] = length  # b_x: about y
                self.hold[4 * k + 1, 3 * s + 1] = -length  # b_y: about -x
                self.hold[4 * k, 3 * s + 2] = length  # elongation
            begin += section.segments
        self._complex = allocate_scratch(n, np.complex128)
        self._zeros = np.zeros((n, 4), np.complex128)
        self._column, self._q = self._zeros.copy(), self._zeros.copy()
        size = 4 * n + 3 * self._sections
        self._matrix, self._right = np.zeros((size, size)), np.zeros(size)

    def configuration_of(self, strains: Array) -> Array:
        """Return the bends [rad] and elongations [m] (3 s,) of the sections at strains (n, 4)."""
        return np.asarray(self.hold.T @ strains.ravel())

    def solve(
        self,
        configuration: Array,
        loads: Loads | None = None,
        near: HeldShape | None = None,
    ) -> HeldShape:
        """
        Return the balance that holds (b_x, b_y, elongation) of every section (3 s,).

        The search starts from `near`, a balance of a similar configuration, or from uniform
        strains without twist. If it fails, gravity and wrench are raised in steps.

        Raises
        ------
        ModelError
            If no balance is found.

        """
        loads = self.loads if loads is None else loads
        n, m = self.arm.segments, 3 * self._sections
        found = False
        if near is not None:
            change = configuration - self.configuration_of(near.strains)
            q = near.strains + (near.strains_by_configuration @ change).reshape(n, 4)
            u = near.resultants + near.resultants_by_configuration @ change
            self._matrix[: 4 * n, : 4 * n] = near.stiffness
            found = self._newton(loads, configuration, q, u, known=True)
        if not found:
            q, u = self._uniform(configuration), np.zeros(m)
            found = self._newton(loads, configuration, q, u)
        if not found:
            q, u = self._uniform(configuration), np.zeros(m)
            for share in (0.25, 0.5, 0.75, 1.0):
                part = loads._replace(gravity=share * loads.gravity, wrench=share * loads.wrench)
                if not self._newton(part, configuration, q, u):
                    raise ModelError(
                        'no balance of forces found for the configuration '
                        f'{np.round(configuration, 4).tolist()}: failed at {100 * share:g} % of '
                        'the weight'
                    )
        known = np.zeros((4 * n + m, m))
        known[4 * n :] = np.eye(m)
        by_configuration = np.linalg.solve(self._matrix, known)
        return HeldShape(
            q,
            u,
            by_configuration[: 4 * n],
            by_configuration[4 * n :],
            self._matrix[: 4 * n, : 4 * n].copy(),
        )

    def _uniform(self, configuration: Array) -> Array:
        parts = []
        for section, (b_x, b_y, elongation) in zip(
            self.arm.sections, configuration.reshape(-1, 3)
        ):
            strain = np.array([elongation, -b_y, b_x, 0.0]) / section.length_m
            parts.append(np.tile(strain, (section.segments, 1)))
        return np.concatenate(parts)

    def _newton(
        self, loads: Loads, wanted: Array, q: Array, u: Array, known: bool = False
    ) -> bool:
        if known:
            _border(self.hold, len(q), len(u), self._matrix)
        return bool(
            _search(
                self.arm.body,
                loads,
                self.hold,
                wanted,
                q,
                u,
                self._q,
                self._zeros,
                self._complex,
                self._column,
                self.arm.scratch,
                self._matrix,
                self._right,
                known,
            )
        )
