"""Tabulation of an arm at the nodes of the integration scheme."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import exp_so3, quaternion_from_matrix
from softarm_ros.models.cosserat.config import CosseratConfig, RodSegmentConfig
from softarm_ros.models.cosserat.strain_kernels import REST, ROUTES
from softarm_ros.models.cosserat.tables import NODES, Grid

# Gauss-Legendre: exact for every profile offered (mass per length at most quadratic in s).
_GAUSS_POINTS, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(4)


def build_grid(config: CosseratConfig, steps: int) -> Grid:
    """Return the tables of an arm with `steps` steps in each segment."""
    segments, cables = config.segments, config.cables
    total = steps * len(segments)
    index = {segment.name: k for k, segment in enumerate(segments)}
    table = np.zeros((total, 5, ROUTES + 6 * len(cables)))
    mass_beyond = np.zeros((total, 5))
    step_length = np.zeros(total)
    segment_of_step = np.repeat(np.arange(len(segments))[::-1], steps)
    by_segment = [{index[route.segment]: route for route in cable.routes} for cable in cables]
    fractions = 1.0 - (np.arange(steps)[:, None] + np.array(NODES)) / steps  # (steps, 5)
    for k, segment in enumerate(segments):
        own = segment_of_step == k
        step_length[own] = segment.length_m / steps
        rows = np.zeros((steps, 5, table.shape[2]))
        stiffness = segment.profile.stiffness(fractions)
        rows[..., :REST] = stiffness.reshape(*stiffness.shape[:-2], REST)
        rows[..., REST:ROUTES] = [*segment.rest_curvature_1_m, 0.0, 0.0, 1.0]
        passing = [(c, routes[k]) for c, routes in enumerate(by_segment) if k in routes]
        for a, (c, route) in enumerate(passing):
            place = ROUTES + 6 * a
            rows[..., place : place + 6] = route.offset(fractions, segment.length_m)
            rows[..., place + 5] = cables[c].bore
        table[own] = rows
        mass_beyond[own] = _mass_beyond(segment, fractions)
    active = np.zeros((len(segments), max(len(cables), 1)), dtype=np.int64)
    n_active = np.zeros(len(segments), dtype=np.int64)
    connectors = np.zeros((len(segments), 16))
    for k, segment in enumerate(segments):
        present = [c for c, of_segment in enumerate(by_segment) if k in of_segment]
        active[k, : len(present)] = present
        n_active[k] = len(present)
        connector = segment.connector
        rotation = exp_so3(np.radians(connector.rotation_vector_deg))
        connectors[k] = [
            connector.mass_kg,
            connector.length_m,
            *rotation.ravel(),
            *quaternion_from_matrix(rotation.T),
            0.5 * connector.length_m
            if connector.centre_of_mass_m is None
            else connector.centre_of_mass_m,
        ]
    return Grid(
        segment_of_step,
        step_length,
        table,
        mass_beyond,
        active,
        n_active,
        np.array([float(_mass_beyond(segment, np.zeros(()))) for segment in segments]),
        connectors,
        6 if config.extensible else 3,
        sum(segment.length_m for segment in segments),
    )


def _mass_beyond(segment: RodSegmentConfig, fraction: Array) -> Array:
    """Return the masses (...) [kg] of the flexible part from fractions (...) to its end."""
    half = 0.5 * (1.0 - fraction)
    points = fraction[..., None] + half[..., None] * (1.0 + _GAUSS_POINTS)
    per_length = np.broadcast_to(segment.profile.mass_per_length(points), points.shape)
    return np.asarray(per_length @ _GAUSS_WEIGHTS * half * segment.length_m)
