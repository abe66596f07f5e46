"""Tabulates an arm at the nodes of the integration scheme."""

from __future__ import annotations

import math

import numpy as np

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
    segment_of_step = np.zeros(total, dtype=np.int64)
    by_segment = [{index[route.segment]: route for route in cable.routes} for cable in cables]
    for j in range(total):
        k = len(segments) - 1 - j // steps
        segment = segments[k]
        segment_of_step[j] = k
        step_length[j] = segment.length_m / steps
        for node, share in enumerate(NODES):
            fraction = 1.0 - (j % steps + share) / steps
            row = table[j, node]
            row[:REST] = segment.profile.stiffness(fraction).ravel()
            row[REST:ROUTES] = [*segment.rest_curvature_1_m, 0.0, 0.0, 1.0]
            mass_beyond[j, node] = _mass_beyond(segment, fraction)
            passing = [(c, routes[k]) for c, routes in enumerate(by_segment) if k in routes]
            for a, (c, route) in enumerate(passing):
                place = ROUTES + 6 * a
                row[place : place + 6] = route.offset(fraction, segment.length_m)
                row[place + 5] = cables[c].bore
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
        np.array([_mass_beyond(segment, 0.0) for segment in segments]),
        connectors,
        6 if config.extensible else 3,
        sum(segment.length_m for segment in segments),
    )


def _mass_beyond(segment: RodSegmentConfig, fraction: float) -> float:
    """Return the mass [kg] of the flexible part between a fraction of its length and its end."""
    half = 0.5 * (1.0 - fraction)
    points = fraction + half * (1.0 + _GAUSS_POINTS)
    per_length = [segment.profile.mass_per_length(point) for point in points]
    return math.fsum(_GAUSS_WEIGHTS * per_length) * half * segment.length_m
