"""
Compiled cables: path, cutting into the body, and tension.

A cable of section k is a thread. In the sections before its own it runs along the centreline (with
their arc length, without lever) or through a fixed place of the cross-section. In its own section
it runs through points a + w_j in the cross-section at both ends of each segment. w_j is its depth
of cut into the body there; an elastic, viscous foundation K_t ds resists. w is zero at the
endcaps, which hold the cable. Its arc between two points turns with the body's segment, so a cable
that does not cut in has length L (1 + e) - d theta exactly.

The path of a cable between two bodies depends only on the joint between them: the cable acts on
the chain through joint forces, `gradient` times tension. Here the tension is constant along the
cable; `friction_kernels` computes what friction takes from it.
"""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.coupling_kernels import couple_chain
from softarm_ros.plant.layout import ArmState, BodyParameters, CableParameters, Scratch

_PINCHED = 0.03  # least arc as a share of a segment's length


@kernel(allocates=False)
def measure_cables(
    body: BodyParameters, cables: CableParameters, state: ArmState, scratch: Scratch
) -> int:
    """
    Write the length of every cable and its derivatives by joint coordinates and cut_in.

    `place_bodies` must have been called for this state.

    Returns
    -------
    int
        A joint across which two path points of a cable have met, or -1. The inner side of the bend
        has no length left there, and the cable's direction is undefined.

    """
    segments = state.cut_in.shape[1] - 1
    pinched = -1
    for i in range(cables.first.shape[0]):
        first = cables.first[i]
        total = 0.0
        for g in range(first):
            share = cables.passing[i, g]
            if share == 0.0:
                total += body.segment_length[g] + state.extension[g]
                scratch.gradient[i, g, 3] = 1.0
                continue
            ax, ay = share * cables.anchor[i, 0], share * cables.anchor[i, 1]
            arc, _, _, _, _ = _arc_across(ax, ay, ax, ay, scratch, i, g)
            if not arc > _PINCHED * body.segment_length[g]:
                pinched = g
            total += arc
        scratch.slope[i, :, :] = 0.0
        for k in range(segments):
            g = first + k
            arc = _measure_edge(cables.anchor[i], state.cut_in[i], scratch, i, g, k)
            if not arc > _PINCHED * body.segment_length[g]:
                pinched = g
            total += arc
        scratch.length[i] = total
    return pinched


@kernel(allocates=False)
def _measure_edge(anchor: Array, cut_in: Array, scratch: Scratch, i: int, g: int, k: int) -> float:
    """Write the derivatives of one arc of cable i across joint g; return its length [m]."""
    length, scale, t0, t1, t2 = _arc_across(
        anchor[0] + cut_in[k, 0],
        anchor[1] + cut_in[k, 1],
        anchor[0] + cut_in[k + 1, 0],
        anchor[1] + cut_in[k + 1, 1],
        scratch,
        i,
        g,
    )
    R, slope = scratch.joint_rotation[g], scratch.slope[i]
    slope[k, 0] -= R[0, 0] * t0 + R[0, 1] * t1 + R[0, 2] * t2
    slope[k, 1] -= R[1, 0] * t0 + R[1, 1] * t1 + R[1, 2] * t2
    slope[k + 1, 0] += t0
    slope[k + 1, 1] += t1
    scratch.edge[i, k] = scale
    return length


@kernel(allocates=False)
def _arc_across(
    a0: float, a1: float, b0: float, b1: float, scratch: Scratch, i: int, g: int
) -> tuple[float, float, float, float, float]:
    """
    Write the derivatives of an arc across joint g, from (a0, a1) to (b0, b1) [m] in its ends.

    Returns
    -------
    tuple
        Its length [m], arc over squared chord [1/m], and that times the chord vector (3 values).

    """
    R, sliding = scratch.joint_rotation[g], scratch.sliding[g]
    arc, arc_c = scratch.arc[g, 3], scratch.arc[g, 4]
    ax, ay = R[2, 0], R[2, 1]
    e0, e1, e2 = chord_across(a0, a1, b0, b1, scratch, g)
    chord = math.sqrt(e0 * e0 + e1 * e1 + e2 * e2)
    scale = arc / chord
    t0, t1, t2 = scale * e0, scale * e1, scale * e2
    turn = chord * arc_c
    gradient = scratch.gradient[i, g]
    gradient[0] = (
        sliding[0, 0] * t0 + sliding[1, 0] * t1 + sliding[2, 0] * t2 + b1 * t2 - turn * ay
    )
    gradient[1] = (
        sliding[0, 1] * t0 + sliding[1, 1] * t1 + sliding[2, 1] * t2 - b0 * t2 + turn * ax
    )
    gradient[2] = b0 * t1 - b1 * t0
    gradient[3] = sliding[0, 3] * t0 + sliding[1, 3] * t1 + sliding[2, 3] * t2
    return arc * chord, scale, t0, t1, t2


@kernel(allocates=False)
def chord_across(
    a0: float, a1: float, b0: float, b1: float, scratch: Scratch, g: int
) -> tuple[float, float, float]:
    """Return the chord across joint g, from (a0, a1) to (b0, b1) [m] in its ends, local [m]."""
    R, half = scratch.joint_rotation[g], scratch.arc[g, 5]
    return (
        half * R[2, 0] + b0 - R[0, 0] * a0 - R[1, 0] * a1,
        half * R[2, 1] + b1 - R[0, 1] * a0 - R[1, 1] * a1,
        half * (R[2, 2] + 1.0) - R[0, 2] * a0 - R[1, 2] * a1,
    )


@kernel(allocates=False)
def relax_foundation(
    cables: CableParameters, state: ArmState, push: Array, scratch: Scratch, h: float
) -> None:
    """
    Write the change of cut_in within a step: without new tension, and per newton of it.

    `push` (m, N + 1, 2) is any other force on the points [N]; it may be empty.

    Implicit Euler of K_t ds (relaxation w' + w) + T dl/dw = 0 with the cable's own stiffness
    T d2l/dw2 taken across the chords (isotropic) and at the old tension.
    """
    segments = state.cut_in.shape[1] - 1
    pushed = push.shape[0] > 0
    inverse = scratch.inverse_pivots
    for i in range(cables.first.shape[0]):
        stiffness = cables.foundation[i]
        base = (cables.relaxation[i] + h) * stiffness
        pull, back = h * state.tension[i], h * stiffness
        edge, slope, cut_in = scratch.edge[i], scratch.slope[i], state.cut_in[i]
        relaxed, unit = scratch.relaxed[i], scratch.unit[i]
        # Elimination terms from the previous point, for both directions across the section.
        factor, x0, x1, y0, y1 = 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(1, segments):
            pivot = base + pull * (edge[k - 1] + edge[k])
            if k > 1:
                factor = pull * edge[k - 1] * inverse[k - 1]
                pivot -= factor * pull * edge[k - 1]
            inverse[k] = 1.0 / pivot
            x0, x1 = factor * x0 - back * cut_in[k, 0], factor * x1 - back * cut_in[k, 1]
            if pushed:
                x0, x1 = x0 + h * push[i, k, 0], x1 + h * push[i, k, 1]
            y0, y1 = factor * y0 - h * slope[k, 0], factor * y1 - h * slope[k, 1]
            relaxed[k, 0], relaxed[k, 1], unit[k, 0], unit[k, 1] = x0, x1, y0, y1
        x0, x1, y0, y1 = 0.0, 0.0, 0.0, 0.0
        for k in range(segments - 1, 0, -1):
            held = pull * edge[k] if k < segments - 1 else 0.0
            x0, x1 = relaxed[k, 0] + held * x0, relaxed[k, 1] + held * x1
            y0, y1 = unit[k, 0] + held * y0, unit[k, 1] + held * y1
            x0, x1, y0, y1 = x0 * inverse[k], x1 * inverse[k], y0 * inverse[k], y1 * inverse[k]
            relaxed[k, 0], relaxed[k, 1], unit[k, 0], unit[k, 1] = x0, x1, y0, y1


@kernel(allocates=False)
def cut(state: ArmState, scratch: Scratch) -> None:
    """Let the cables cut in under the tensions in `state`."""
    for i in range(state.tension.shape[0]):
        for k in range(1, state.cut_in.shape[1] - 1):
            for c in range(2):
                state.cut_in[i, k, c] += (
                    scratch.relaxed[i, k, c] + state.tension[i] * scratch.unit[i, k, c]
                )


@kernel(allocates=False)
def thread_lengths(body: BodyParameters, cables: CableParameters, segments: int, i: int) -> float:
    """Return the length of cable i along the bending parts of the straight, unstressed arm [m]."""
    total = 0.0
    for g in range(cables.first[i] + segments):
        total += body.segment_length[g]
    return total


@kernel(allocates=False)
def couple_cables(
    body: BodyParameters,
    cables: CableParameters,
    state: ArmState,
    target: Array,
    scratch: Scratch,
    h: float,
) -> None:
    """
    Write compliance and gap of all cables together for one step.

    With stretch s of a thread, T = max(0, k (s' + damping_time (s' - max(s, 0))/h)), where s' at
    the end of the step decreases linearly with all tensions.
    """
    m, segments = cables.first.shape[0], state.cut_in.shape[1] - 1
    compliance, gap = scratch.compliance, scratch.gap
    compliance[:] = 0.0
    for i in range(m):
        rest = thread_lengths(body, cables, segments, i)
        stretch = scratch.length[i] - rest + state.contraction[i]
        lag = cables.damping_time[i] / (h + cables.damping_time[i])
        missing = scratch.length[i] - rest + target[i] - lag * max(stretch, 0.0)
        yielding = h / (cables.stiffness[i] * (h + cables.damping_time[i]))
        for k in range(1, segments):
            for c in range(2):
                missing += scratch.slope[i, k, c] * scratch.relaxed[i, k, c]
                yielding -= scratch.slope[i, k, c] * scratch.unit[i, k, c]
        gap[i], compliance[i, i] = missing, yielding
    couple_chain(state.velocity, cables.reach, scratch, h)
