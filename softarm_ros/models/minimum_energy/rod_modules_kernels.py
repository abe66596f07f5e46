"""
Compiled equilibrium of a Cosserat rod with straight muscles between disks along it.

The force N over a cut through rod and muscles does not depend on the shape: it is the tip force
plus the weight beyond. A module is the rod between two disks, and three muscles from disk to disk.
Its unknowns are the six components of w, force and moment of the rod at the distal disk. The rod
is integrated from there to the proximal disk (`shoot`); the poses of both disks give the pull T of
each muscle along d, so that

    w = (N + sum T d,  M + sum a x T d)

with M the moment over the cut below the distal disk. Further unknowns are the three components of
the tip's rotation; the rotation of the base must be the identity. Newton's method solves for all
unknowns at once: a module's w is eliminated against the rotation and the moment at its distal
disk, module by module from the tip, which leaves three equations.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.linear_kernels import cross_into, solve_columns
from softarm_ros.models.banded_kernels import banded_ldl_into
from softarm_ros.models.cosserat.frame_kernels import matrix_into, solve3, turn_right
from softarm_ros.models.cosserat.shooting_kernels import shoot
from softarm_ros.models.cosserat.solver_kernels import base_error
from softarm_ros.models.cosserat.strain_kernels import OK
from softarm_ros.models.cosserat.tables import Grid, Loads, Trace
from softarm_ros.models.minimum_energy.muscle_kernels import Springs

FAILED = 5  # beyond the statuses of `shoot`
TOLERANCE = 1e-10  # of the scales of force and moment, and of 1 rad
_LARGEST_TURN = 1.0  # rad
_SMALLEST_STEP = 0.05  # of Newton's step
_BAND = 11  # sub-diagonals of a chain of 6 x 6 blocks

# Columns of a module's maps: rotation and moment at its distal disk, force over every cut, its
# three commands, and the correction of the present miss.
TURN, MOMENT, FORCE, COMMAND, MISS, COLUMNS = 0, 3, 6, 9, 12, 13


class ModuleLoads(NamedTuple):
    """Loads on a chain of modules, in the base frame."""

    tip: Array  # (6,) force [N] and moment [N m] at the tip
    weight: Array  # (3,) weight of a module [N]
    gravity: Array  # (3,) [m/s^2]


class ModuleChain(NamedTuple):
    """
    State of a chain of modules, and the derivatives of each module.

    Disk 0 is the base. Places are relative to the tip; moments are those over the cut below a
    disk. `rod` holds the derivatives of rotation, moment and place at the proximal disk by
    rotation, force and moment of the rod at the distal one. `wrench_map` and `disk_map` give w,
    and rotation, moment and relative place at the proximal disk, by the columns above.
    """

    rotations: Array  # (modules + 1, 4) quaternions x, y, z, w
    places: Array  # (modules + 1, 3) [m]
    moments: Array  # (modules + 1, 3) [N m]
    forces: Array  # (modules + 1, 3) [N]
    vectors: Array  # (modules, 3, 3) from the distal to the proximal anchor [m]
    misses: Array  # (modules, 6) [N, N m]
    rod: Array  # (modules, 9, 9)
    wrench_map: Array  # (modules, 6, 13)
    disk_map: Array  # (modules, 9, 13)


def new_chain(modules: int) -> ModuleChain:
    """Return an empty state."""
    return ModuleChain(
        np.zeros((modules + 1, 4)),
        np.zeros((modules + 1, 3)),
        np.zeros((modules + 1, 3)),
        np.zeros((modules + 1, 3)),
        np.zeros((modules, 3, 3)),
        np.zeros((modules, 6)),
        np.zeros((modules, 9, 9)),
        np.zeros((modules, 6, COLUMNS)),
        np.zeros((modules, 9, COLUMNS)),
    )


@kernel(allocates=False)
def _times_into(r: Array, a: Array, out: Array) -> None:
    for i in range(3):
        out[i] = r[i, 0] * a[0] + r[i, 1] * a[1] + r[i, 2] * a[2]


@kernel
def _pulls_into(
    anchors: Array,
    springs: Springs,
    module: int,
    distal: Array,
    proximal: Array,
    between: Array,
    vectors: Array,
    wrench: Array,
) -> None:
    """Write the vectors of a module's muscles and their wrench (6,) on the distal disk."""
    near, far, force, moment = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    wrench[:] = 0.0
    for i in range(3):
        _times_into(distal, anchors[module, i], near)
        _times_into(proximal, anchors[module, i], far)
        square = 0.0
        for k in range(3):
            vectors[i, k] = between[k] + far[k] - near[k]
            square += vectors[i, k] * vectors[i, k]
        length = math.sqrt(square)
        pull = springs.stiffness[module, i] * (length - springs.rest[module, i])
        pull -= springs.gas[module, i] / length
        for k in range(3):
            force[k] = pull / length * vectors[i, k]
        cross_into(near, force, moment)
        for k in range(3):
            wrench[k] += force[k]
            wrench[3 + k] += moment[k]


@kernel
def _pull_derivatives_into(
    anchors: Array,
    springs: Springs,
    module: int,
    distal: Array,
    proximal: Array,
    vectors: Array,
    rod: Array,
    by_end: Array,
    by_command: Array,
) -> None:
    """
    Write the derivatives of the muscles' wrench on the distal disk.

    `by_end` (6, 9) is by rotation, force and moment of the rod at the distal disk, `by_command`
    (6, 3) by the commands.
    """
    near, turned, local = np.empty(3), np.empty(3), np.empty(3)
    moved, force, moment, pulled = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    by_end[:, :] = 0.0
    for i in range(3):
        a = anchors[module, i]
        _times_into(distal, a, near)
        p = vectors[i]
        length = math.sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2])
        stiffness, gas = springs.stiffness[module, i], springs.gas[module, i]
        pull = stiffness * (length - springs.rest[module, i]) - gas / length
        gives = stiffness + gas / (length * length)
        commanded = springs.by_command[module, i] + springs.gas_by_command[module, i] / length
        for k in range(3):
            force[k] = -commanded * p[k] / length
            pulled[k] = pull * p[k] / length
        cross_into(near, force, moment)
        for k in range(3):
            by_command[k, i] = force[k]
            by_command[3 + k, i] = moment[k]
        for c in range(9):
            cross_into(rod[:3, c], a, local)
            _times_into(proximal, local, moved)
            for k in range(3):
                moved[k] += rod[6 + k, c]
            if c < 3:
                # The anchor on the distal disk moves by R (e_c x a).
                u, v = (c + 1) % 3, (c + 2) % 3
                local[c], local[u], local[v] = 0.0, -a[v], a[u]
                _times_into(distal, local, turned)
                for k in range(3):
                    moved[k] -= turned[k]
                cross_into(turned, pulled, moment)
                for k in range(3):
                    by_end[3 + k, c] += moment[k]
            share = pull / length
            along = (p[0] * moved[0] + p[1] * moved[1] + p[2] * moved[2]) / length
            for k in range(3):
                force[k] = share * moved[k] + (gives - share) * along * p[k] / length
            cross_into(near, force, moment)
            for k in range(3):
                by_end[k, c] += force[k]
                by_end[3 + k, c] += moment[k]


@kernel
def start_wrenches_into(
    anchors: Array, springs: Springs, loads: ModuleLoads, chain: ModuleChain, wrenches: Array
) -> None:
    """Write the wrenches (modules, 6) that balance the muscles at the rotations and places."""
    distal, proximal, between = np.empty((3, 3)), np.empty((3, 3)), np.empty(3)
    force, moment, shift = loads.tip[:3].copy(), loads.tip[3:].copy(), np.empty(3)
    for k in range(anchors.shape[0] - 1, -1, -1):
        a, b = chain.rotations[k + 1], chain.rotations[k]
        matrix_into(a[0], a[1], a[2], a[3], distal)
        matrix_into(b[0], b[1], b[2], b[3], proximal)
        for i in range(3):
            between[i] = chain.places[k, i] - chain.places[k + 1, i]
        _pulls_into(anchors, springs, k, distal, proximal, between, chain.vectors[k], wrenches[k])
        for i in range(3):
            wrenches[k, i] += force[i]
            wrenches[k, 3 + i] += moment[i]
            force[i] += 0.5 * loads.weight[i]
        cross_into(between, force, shift)
        for i in range(3):
            moment[i] -= shift[i]
            force[i] += 0.5 * loads.weight[i]


@kernel
def sweep(
    grid: Grid,
    anchors: Array,
    springs: Springs,
    loads: ModuleLoads,
    wrenches: Array,
    chain: ModuleChain,
    trace: Trace,
) -> int:
    """
    Integrate all modules from the tip's rotation, `chain.rotations[-1]`; return a status.

    `wrenches` (modules, 6) are those of the rod at the distal disks. Writes the rest of `chain`.
    """
    modules = anchors.shape[0]
    rod_loads = Loads(np.empty(0), np.empty(6), loads.gravity, np.zeros((1, 6)))
    distal, proximal = np.empty((3, 3)), np.empty((3, 3))
    by_end, system, wrench = np.empty((6, 9)), np.empty((6, 6)), np.empty(6)
    excess, change, shift = np.empty(3), np.empty(3), np.empty(3)
    for i in range(3):
        chain.places[modules, i] = 0.0
        chain.forces[modules, i] = loads.tip[i]
        chain.moments[modules, i] = loads.tip[3 + i]
    for k in range(modules - 1, -1, -1):
        end = chain.rotations[k + 1]
        for i in range(6):
            rod_loads.tip[i] = wrenches[k, i]
        status, _ = shoot(grid, rod_loads, end, 9, True, True, trace)
        if status != OK:
            return status
        begin, between, rod = trace.base_rotation, trace.base_point, chain.rod[k]
        rod[:, :] = trace.variation
        chain.rotations[k] = begin
        matrix_into(end[0], end[1], end[2], end[3], distal)
        matrix_into(begin[0], begin[1], begin[2], begin[3], proximal)
        _pulls_into(anchors, springs, k, distal, proximal, between, chain.vectors[k], wrench)
        to_wrench = chain.wrench_map[k]
        to_wrench[:, :] = 0.0
        _pull_derivatives_into(
            anchors, springs, k, distal, proximal, chain.vectors[k], rod, by_end,
            to_wrench[:, COMMAND:MISS],
        )  # fmt: skip
        for i in range(3):
            chain.misses[k, i] = wrenches[k, i] - chain.forces[k + 1, i] - wrench[i]
            chain.misses[k, 3 + i] = wrenches[k, 3 + i] - chain.moments[k + 1, i] - wrench[3 + i]
            to_wrench[3 + i, MOMENT + i] = 1.0
            to_wrench[i, FORCE + i] = 1.0
        for i in range(6):
            to_wrench[i, MISS] = -chain.misses[k, i]
            for j in range(3):
                to_wrench[i, TURN + j] = by_end[i, j]
            for j in range(6):
                system[i, j] = (1.0 if i == j else 0.0) - by_end[i, 3 + j]
        solve_columns(system, to_wrench)
        # M - M_rod is the moment of the muscles and changes by the lever of their force.
        last = trace.moments.shape[0] - 1
        for i in range(3):
            chain.places[k, i] = chain.places[k + 1, i] + between[i]
            chain.forces[k, i] = chain.forces[k + 1, i] + loads.weight[i]
            excess[i] = wrenches[k, i] - chain.forces[k + 1, i]
        cross_into(between, excess, shift)
        for i in range(3):
            gained = trace.moments[last, i] - wrenches[k, 3 + i]
            chain.moments[k, i] = chain.moments[k + 1, i] + gained + shift[i]
        to_disk = chain.disk_map[k]
        for c in range(COLUMNS):
            for i in range(9):
                value = rod[i, c] if c < MOMENT else 0.0
                for j in range(6):
                    value += rod[i, 3 + j] * to_wrench[j, c]
                to_disk[i, c] = value
            cross_into(to_disk[6:, c], excess, shift)
            for i in range(3):
                change[i] = to_wrench[i, c]
                if c == FORCE + i:
                    change[i] -= 1.0
                to_disk[3 + i, c] += shift[i] - to_wrench[3 + i, c]
                if c == MOMENT + i:
                    to_disk[3 + i, c] += 1.0
            cross_into(between, change, shift)
            for i in range(3):
                to_disk[3 + i, c] += shift[i]
    return OK


@kernel(allocates=False)
def _pass_disk(to_disk: Array, state: Array, column: int, out: Array) -> None:
    """Write rotation and moment (6,) at the proximal disk by those at the distal one."""
    for i in range(6):
        out[i] = 0.0
        for j in range(6):
            out[i] += to_disk[i, j] * state[j, column]


@kernel
def _newton_step(chain: ModuleChain, turn: Array, changes: Array) -> bool:
    """Write Newton's step: turn (3,) of the tip, changes (modules, 6) of the wrenches."""
    modules = changes.shape[0]
    state, passed = np.zeros((6, 4)), np.empty(6)
    for i in range(3):
        state[i, i] = 1.0
    for k in range(modules - 1, -1, -1):
        for c in range(4):
            _pass_disk(chain.disk_map[k], state, c, passed)
            for i in range(6):
                state[i, c] = passed[i]
        for i in range(6):
            state[i, 3] += chain.disk_map[k, i, MISS]
    error, system = np.empty(3), np.empty((3, 3))
    base_error(chain.rotations[0], error)
    for i in range(3):
        error[i] -= state[i, 3]
        for c in range(3):
            system[i, c] = state[i, c]
    if not solve3(system, error, turn):
        return False
    for i in range(3):
        state[i, 0], state[3 + i, 0] = turn[i], 0.0
    for k in range(modules - 1, -1, -1):
        for i in range(6):
            value = chain.wrench_map[k, i, MISS]
            for j in range(6):
                value += chain.wrench_map[k, i, j] * state[j, 0]
            changes[k, i] = value
        _pass_disk(chain.disk_map[k], state, 0, passed)
        for i in range(6):
            state[i, 0] = passed[i] + chain.disk_map[k, i, MISS]
    return True


@kernel
def _size_of_miss(chain: ModuleChain, scales: Array) -> float:
    """Return the largest miss, in units of the scales of force [N] and moment [N m], and rad."""
    size = base_error(chain.rotations[0], np.empty(3))
    for k in range(chain.misses.shape[0]):
        for i in range(3):
            size = max(size, abs(chain.misses[k, i]) / scales[0])
            size = max(size, abs(chain.misses[k, 3 + i]) / scales[1])
    return size


@kernel
def balance(
    grid: Grid,
    anchors: Array,
    springs: Springs,
    loads: ModuleLoads,
    scales: Array,
    most: int,
    wrenches: Array,
    chain: ModuleChain,
    trace: Trace,
) -> tuple[int, float, int]:
    """
    Solve by Newton's method from the tip's rotation and the wrenches, in place.

    Return the status, the largest miss, and the number of sweeps, `most` at most. `scales` are
    typical values of force [N] and moment [N m].
    """
    modules = wrenches.shape[0]
    turn, changes = np.zeros(3), np.zeros((modules, 6))
    tip, before = chain.rotations[modules].copy(), wrenches.copy()
    best, fraction = math.inf, 1.0
    for count in range(1, most + 1):
        status = sweep(grid, anchors, springs, loads, wrenches, chain, trace)
        size = _size_of_miss(chain, scales) if status == OK else math.inf
        if size < TOLERANCE:
            return OK, size, count
        if size < best:
            best = size
            tip[:] = chain.rotations[modules]
            before[:, :] = wrenches
            if not _newton_step(chain, turn, changes):
                return FAILED, best, count
            length = math.sqrt(turn[0] ** 2 + turn[1] ** 2 + turn[2] ** 2)
            fraction = min(1.0, _LARGEST_TURN / length) if length > 0.0 else 1.0
        else:
            fraction *= 0.5
            if fraction < _SMALLEST_STEP or best == math.inf:
                return FAILED, best, count
        chain.rotations[modules] = tip
        turn_right(
            chain.rotations[modules], fraction * turn[0], fraction * turn[1], fraction * turn[2]
        )
        for k in range(modules):
            for i in range(6):
                wrenches[k, i] = before[k, i] + fraction * changes[k, i]
    return FAILED, best, most


@kernel
def tip_derivatives_into(chain: ModuleChain, out: Array) -> bool:
    """
    Write the twist of the tip (6, 6 + 3 modules), base frame, linear rows first.

    Columns: force and moment at the tip, and the commands. False if the equilibrium is singular.
    """
    modules = chain.misses.shape[0]
    columns = 9 + 3 * modules
    state, place, passed = np.zeros((6, columns)), np.zeros((3, columns)), np.empty(6)
    for i in range(3):
        state[i, i] = 1.0  # rotation of the tip
        state[3 + i, 6 + i] = 1.0  # moment; columns 3 to 5 are the force
    for k in range(modules - 1, -1, -1):
        to_disk = chain.disk_map[k]
        first = 9 + 3 * k
        for c in range(columns):
            for i in range(3):
                value = 0.0
                for j in range(6):
                    value += to_disk[6 + i, j] * state[j, c]
                place[i, c] += value
            _pass_disk(to_disk, state, c, passed)
            for i in range(6):
                state[i, c] = passed[i]
        for i in range(6):
            for j in range(3):
                state[i, 3 + j] += to_disk[i, FORCE + j]
                state[i, first + j] += to_disk[i, COMMAND + j]
        for i in range(3):
            for j in range(3):
                place[i, 3 + j] += to_disk[6 + i, FORCE + j]
                place[i, first + j] += to_disk[6 + i, COMMAND + j]
    system, error, turn, r = np.empty((3, 3)), np.empty(3), np.empty(3), np.empty((3, 3))
    for i in range(3):
        for c in range(3):
            system[i, c] = state[i, c]
    tip = chain.rotations[modules]
    matrix_into(tip[0], tip[1], tip[2], tip[3], r)
    for c in range(3, columns):
        for i in range(3):
            error[i] = -state[i, c]
        if not solve3(system, error, turn):
            return False
        for i in range(3):
            value = place[i, c]
            for j in range(3):
                value += place[i, j] * turn[j]
            out[i, c - 3] = -value
        _times_into(r, turn, error)
        for i in range(3):
            out[3 + i, c - 3] = error[i]
    return True


@kernel
def _add_rod_stiffness(
    rod: Array,
    slip: float,
    distal: Array,
    proximal: Array,
    m_distal: Array,
    m_proximal: Array,
    ends: Array,
) -> None:
    """
    Add the derivative of the energy's gradient by the poses of a rod's ends (12, 12).

    Rows and columns are displacement and rotation of the distal, then of the proximal end. The
    moments (3,) of the rod at both ends are in the base frame.
    """
    # The ends are where the rod takes them, so their displacements determine the change of w.
    give, wrench = np.empty((6, 6)), np.zeros((6, 12))
    for i in range(3):
        wrench[i, 9 + i] = 1.0
        wrench[3 + i, i] = -1.0
        wrench[3 + i, 6 + i] = 1.0
        for j in range(3):
            wrench[i, 3 + j] = -rod[i, j]
            wrench[3 + i, 3 + j] = -rod[6 + i, j]
        for j in range(6):
            give[i, j] = rod[i, 3 + j]
            give[3 + i, j] = rod[6 + i, 3 + j]
        give[3 + i, i] -= slip
    solve_columns(give, wrench)
    moment, m_local, turned = np.empty(3), np.empty(3), np.empty(3)
    unit = np.zeros(3)
    for c in range(12):
        for i in range(3):
            ends[i, c] += wrench[i, c]
            ends[6 + i, c] -= wrench[i, c]
        for end in range(2):
            r = distal if end == 0 else proximal
            m = m_distal if end == 0 else m_proximal
            for i in range(3):
                if end == 0:
                    moment[i] = wrench[3 + i, c]
                else:
                    moment[i] = rod[3 + i, c - 3] if 3 <= c < 6 else 0.0
                    for j in range(6):
                        moment[i] += rod[3 + i, 3 + j] * wrench[j, c]
            sign, row = 1.0 - 2.0 * end, 6 * end + 3
            for i in range(3):
                ends[row + i, c] += sign * (
                    r[0, i] * moment[0] + r[1, i] * moment[1] + r[2, i] * moment[2]
                )
                m_local[i] = r[0, i] * m[0] + r[1, i] * m[1] + r[2, i] * m[2]
            if row <= c < row + 3:
                unit[:] = 0.0
                unit[c - row] = 1.0
                cross_into(m_local, unit, turned)
                for i in range(3):
                    ends[row + i, c] += sign * turned[i]


@kernel
def _add_muscle_stiffness(
    anchor: Array,
    stiffness: float,
    rest: float,
    gas: float,
    vector: Array,
    distal: Array,
    proximal: Array,
    ends: Array,
) -> None:
    """Add to `ends` (12, 12), as `_add_rod_stiffness`, one muscle with its vector (3,)."""
    square = vector[0] ** 2 + vector[1] ** 2 + vector[2] ** 2
    length = math.sqrt(square)
    share = (stiffness * (length - rest) - gas / length) / length
    gives = stiffness + gas / square - share
    unit, moved, force, local = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    pulled, moment = np.empty(3), np.empty(3)
    for c in range(12):
        sign = -1.0 if c < 6 else 1.0
        r = distal if c < 6 else proximal
        unit[:] = 0.0
        unit[c % 3] = 1.0
        if c % 6 < 3:
            moved[:] = unit
        else:
            cross_into(unit, anchor, local)
            _times_into(r, local, moved)
        along = sign * (vector[0] * moved[0] + vector[1] * moved[1] + vector[2] * moved[2])
        for i in range(3):
            force[i] = share * sign * moved[i] + gives * along * vector[i] / square
            ends[i, c] -= force[i]
            ends[6 + i, c] += force[i]
        for end in range(2):
            r = distal if end == 0 else proximal
            row = 6 * end + 3
            for i in range(3):
                local[i] = r[0, i] * force[0] + r[1, i] * force[1] + r[2, i] * force[2]
            if row <= c < row + 3:
                for i in range(3):
                    pulled[i] = share * (
                        r[0, i] * vector[0] + r[1, i] * vector[1] + r[2, i] * vector[2]
                    )
                cross_into(pulled, unit, moment)
                for i in range(3):
                    local[i] += moment[i]
            cross_into(anchor, local, moment)
            for i in range(3):
                ends[row + i, c] += (2.0 * end - 1.0) * moment[i]


@kernel
def stiffness_into(
    anchors: Array,
    springs: Springs,
    wrenches: Array,
    chain: ModuleChain,
    slip: float,
    out: Array,
) -> None:
    """
    Write the second derivative of the energy (6 modules, 6 modules) by the poses of the disks.

    Coordinates of a disk: displacement [m] in the base frame, rotation [rad] in its own frame.
    The rods between the disks are in equilibrium; `slip` [m/N] is added to their compliance. At an
    equilibrium without moment at the tip, the result is symmetric up to rounding.
    """
    distal, proximal, ends = np.empty((3, 3)), np.empty((3, 3)), np.empty((12, 12))
    between, excess, moment = np.empty(3), np.empty(3), np.empty(3)
    out[:, :] = 0.0
    for k in range(wrenches.shape[0]):
        a, b = chain.rotations[k + 1], chain.rotations[k]
        matrix_into(a[0], a[1], a[2], a[3], distal)
        matrix_into(b[0], b[1], b[2], b[3], proximal)
        for i in range(3):
            between[i] = chain.places[k, i] - chain.places[k + 1, i]
            excess[i] = wrenches[k, i] - chain.forces[k + 1, i]
        cross_into(between, excess, moment)
        for i in range(3):
            gained = chain.moments[k, i] - chain.moments[k + 1, i]
            moment[i] = wrenches[k, 3 + i] + gained - moment[i]
        ends[:, :] = 0.0
        _add_rod_stiffness(chain.rod[k], slip, distal, proximal, wrenches[k, 3:], moment, ends)
        for i in range(3):
            _add_muscle_stiffness(
                anchors[k, i], springs.stiffness[k, i], springs.rest[k, i], springs.gas[k, i],
                chain.vectors[k, i], distal, proximal, ends,
            )  # fmt: skip
        for i in range(12):
            row = 6 * k + i if i < 6 else 6 * (k - 1) + i - 6
            for j in range(12):
                column = 6 * k + j if j < 6 else 6 * (k - 1) + j - 6
                if row >= 0 and column >= 0:
                    out[row, column] += ends[i, j]


@kernel
def is_stable(
    anchors: Array,
    springs: Springs,
    wrenches: Array,
    chain: ModuleChain,
    slip: float,
    length_m: float,
) -> bool:
    """
    Tell whether the energy is a minimum.

    A `slip` [m/N] well below the rod's compliance in bending keeps the error of integration from
    turning its compliance in stretch, which is far smaller, negative. `length_m` makes
    displacements comparable to rotations.
    """
    size = 6 * wrenches.shape[0]
    stiffness, band = np.empty((size, size)), np.zeros((size, _BAND + 1))
    stiffness_into(anchors, springs, wrenches, chain, slip, stiffness)
    for i in range(size):
        for j in range(max(0, i - _BAND), i + 1):
            scale = (length_m if i % 6 < 3 else 1.0) * (length_m if j % 6 < 3 else 1.0)
            band[i, i - j] = 0.5 * scale * (stiffness[i, j] + stiffness[j, i])
    return banded_ldl_into(band) == 0
