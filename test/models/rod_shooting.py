"""Independent solution of the held rod: a shooting method with scipy on Euler's equations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import root

from softarm_ros.models.minimum_energy.config import BackboneConfig


@dataclass(frozen=True)
class ShotRod:
    """Solution of the shooting method; positions (m, 3) are at evenly spaced arc lengths."""

    positions: np.ndarray
    tip_rotation: np.ndarray
    base_curvature: np.ndarray
    force: np.ndarray
    elastic_energy: float
    residual: float


def shoot(
    backbone: BackboneConfig,
    weight: np.ndarray,
    tip_force: np.ndarray,
    target: np.ndarray,
    start: np.ndarray,
    points: int = 81,
) -> ShotRod:
    """Solve for (w1, w2, w3 at the base, force) from `start` (6,); weight [N/m] (3,)."""
    length = backbone.length_m
    bending, torsion = backbone.bending_stiffness_N_m2, backbone.torsional_stiffness_N_m2
    stiffness = np.array([bending, bending, torsion])

    def slope(s, state, force):
        rotation, w = state[3:12].reshape(3, 3), state[12:15]
        internal = rotation.T @ (tip_force + force + weight * (length - s))
        moment = stiffness * w
        turn = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        bend = (-np.cross(w, moment) - np.cross([0.0, 0.0, 1.0], internal)) / stiffness
        energy = 0.5 * w @ moment
        return np.concatenate([rotation[:, 2], (rotation @ turn).ravel(), bend, [energy]])

    def run(unknown, arcs):
        state = np.concatenate([np.zeros(3), np.eye(3).ravel(), unknown[:3], [0.0]])
        return solve_ivp(
            slope, (0.0, length), state, args=(unknown[3:],), method='DOP853', rtol=1e-12,
            atol=1e-13, t_eval=arcs,
        ).y  # fmt: skip

    def defect(unknown):
        end = run(unknown, [length])[:, -1]
        return np.concatenate([end[:3] - target, end[12:15]])

    found = root(defect, start, method='hybr', tol=1e-13)
    states = run(found.x, np.linspace(0.0, length, points))
    return ShotRod(
        positions=states[:3].T,
        tip_rotation=states[3:12, -1].reshape(3, 3),
        base_curvature=found.x[:3],
        force=found.x[3:],
        elastic_energy=float(states[15, -1]),
        residual=float(np.abs(defect(found.x)).max()),
    )
