"""
Compiled friction of threads in the chain's guides (`friction_kernels`): turns and sliding.

A thread turns at each node from one chord to the next. Its own stretch causes no sliding.
"""

from __future__ import annotations

import math

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.plant.cable_kernels import chord_across
from softarm_ros.plant.friction_kernels import hold_cable
from softarm_ros.plant.layout import ArmState, CableParameters, Scratch
from softarm_ros.plant.thread_friction import ThreadFriction


@kernel(allocates=False)
def hold_threads(
    cables: CableParameters, state: ArmState, threads: ThreadFriction, scratch: Scratch
) -> None:
    """
    Move the bristles with the cables; add the friction forces to joint loads and `push`.

    `measure_cables` and `load_bodies` must have been called for this state.
    """
    segments = state.cut_in.shape[1] - 1
    for i in range(threads.nodes.stiffness.shape[0]):
        _follow_thread(cables, state, threads, scratch, i, segments)
        hold_cable(threads.nodes, i, cables.reach[i], 0.0, state.tension[i])
        first = cables.first[i]
        for g in range(cables.reach[i]):
            lost = threads.nodes.lost[i, g]
            for j in range(4):
                scratch.load[g, j] += lost * scratch.gradient[i, g, j]
        for k in range(1, segments):
            before, after = threads.nodes.lost[i, first + k - 1], threads.nodes.lost[i, first + k]
            arriving, leaving = threads.arriving[i, first + k - 1], threads.leaving[i, first + k]
            stretch_before = scratch.arc[first + k - 1, 3]
            stretch_after = scratch.arc[first + k, 3]
            for c in range(2):
                threads.push[i, k, c] = (
                    before * stretch_before * arriving[c] - after * stretch_after * leaving[c]
                )


@kernel(allocates=False)
def _follow_thread(
    cables: CableParameters,
    state: ArmState,
    threads: ThreadFriction,
    scratch: Scratch,
    i: int,
    segments: int,
) -> None:
    """Write length and directions of cable i along every segment it passes, and its turns."""
    first, anchor = cables.first[i], cables.anchor[i]
    for g in range(cables.reach[i]):
        arc = scratch.arc[g, 3]
        if g < first:
            share = cables.passing[i, g]
            ax, ay = share * anchor[0], share * anchor[1]
            bx, by = ax, ay
        else:
            k = g - first
            ax, ay = anchor[0] + state.cut_in[i, k, 0], anchor[1] + state.cut_in[i, k, 1]
            bx, by = anchor[0] + state.cut_in[i, k + 1, 0], anchor[1] + state.cut_in[i, k + 1, 1]
        e0, e1, e2 = chord_across(ax, ay, bx, by, scratch, g)
        chord = math.sqrt(e0 * e0 + e1 * e1 + e2 * e2)
        threads.nodes.arc[i, g] = arc * chord
        e0, e1, e2 = e0 / chord, e1 / chord, e2 / chord
        R, arriving, leaving = (
            scratch.joint_rotation[g],
            threads.arriving[i, g],
            threads.leaving[i, g],
        )
        arriving[0], arriving[1], arriving[2] = e0, e1, e2
        for r in range(3):
            leaving[r] = R[r, 0] * e0 + R[r, 1] * e1 + R[r, 2] * e2
        threads.nodes.angle[i, g] = threads.coefficient[0] * _turn_at(threads, i, g, segments)


@kernel(allocates=False)
def _turn_at(threads: ThreadFriction, i: int, g: int, segments: int) -> float:
    """Return the turn [rad] of cable i at node g; endcaps hold cables parallel to their axis."""
    leaving = threads.leaving[i, g]
    if g % segments != 0:
        return _turn_between(threads.arriving[i, g - 1], leaving)
    turn = threads.crossing[i, g] + _turn_from_axis(leaving)
    if g > 0:
        turn += _turn_from_axis(threads.arriving[i, g - 1])
    return turn


@kernel(allocates=False)
def _turn_from_axis(b: Array) -> float:
    return _turn_across(b[0], b[1], b[2] - 1.0)


@kernel(allocates=False)
def _turn_between(a: Array, b: Array) -> float:
    """Return the angle [rad] between two unit vectors (3,)."""
    return _turn_across(b[0] - a[0], b[1] - a[1], b[2] - a[2])


@kernel(allocates=False)
def _turn_across(x: float, y: float, z: float) -> float:
    """Return the angle [rad] between unit vectors that differ by (x, y, z)."""
    return 2.0 * math.asin(min(0.5 * math.sqrt(x * x + y * y + z * z), 1.0))
