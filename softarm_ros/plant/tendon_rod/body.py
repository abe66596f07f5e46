"""Conversion of the plant's config to the chain of joints and the paths of its cables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import rotation_z
from softarm_ros.plant.cable_friction import CableFriction
from softarm_ros.plant.layout import BodyParameters, Loads, new_scratch, rest_state
from softarm_ros.plant.lumps import Lump, Span, lumps_along, rises
from softarm_ros.plant.tendon_rod.config import (
    PlantRodSegmentConfig,
    PlantTendon,
    TendonRodPlantConfig,
)
from softarm_ros.plant.tendon_rod.layout import Rod


def rod_of(
    config: TendonRodPlantConfig, tendons: Sequence[PlantTendon], gravity: Array, load_kg: float
) -> Rod:
    """
    Return the rod with a payload at its tip, unstressed.

    The chain does not follow the rotations of connectors about their axis; instead, all properties
    of a segment are given in the axes of the base.
    """
    body = body_of(config, gravity, load_kg)
    per, n = config.pieces_per_segment, len(body.mass)
    law, rest = np.empty((n, 3, 3)), np.empty((n, 3))
    for k, (segment, turn) in enumerate(zip(config.segments, turns_before(config))):
        ds, axes = segment.length_m / per, rotation_z(turn)
        here = slice(k * per, (k + 1) * per)
        law[here] = axes @ _bending_law(segment) @ axes.T / ds
        rest[here] = axes @ np.array(segment.rest_curvature_1_m) * ds
    place, runs = cable_paths(config, tendons)
    return Rod(
        body=body,
        solver=body._replace(damping_time=body.damping_time.copy()),
        state=rest_state(n, 0, 1),
        loads=Loads(np.zeros(3), np.zeros(3)),
        scratch=new_scratch(n, 0, 1),
        law=law,
        rest=rest,
        place=place,
        runs=runs,
        tension=np.zeros_like(runs),
        nodes=CableFriction.of_stiffness(_bristles(config, len(tendons))),
    )


def _bristles(config: TendonRodPlantConfig, cables: int) -> Array:
    """Return the stiffness (cables, joints + 1) [N/m] of the bristles in guide and rod."""
    ds = [segment.length_m / config.pieces_per_segment for segment in config.segments]
    inside = config.presliding_stiffness_N_m2 * np.repeat(ds, config.pieces_per_segment)
    return np.tile([config.winch.guide_presliding_stiffness_N_m, *inside], (cables, 1))


def turns_before(config: TendonRodPlantConfig) -> Array:
    """Return the rotation of each segment, and of the tip, about the rod's axis [rad]."""
    own = [math.radians(s.connector.rotation_vector_deg[2]) for s in config.segments]
    return np.cumsum([0.0, *own])


def _bending_law(segment: PlantRodSegmentConfig) -> Array:
    """Return the stiffness (3, 3) [N m^2] about local x, y, z, of core and sleeve."""
    bending, torsion = segment.sleeve_bending_stiffness_N_m2, segment.sleeve_torsion_stiffness_N_m2
    core = segment.profile.stiffness(0.5)[:3, :3]
    return np.asarray(core + np.diag([bending, bending, torsion]))


def body_of(config: TendonRodPlantConfig, gravity: Array, load_kg: float) -> BodyParameters:
    """Return the chain with a payload at its tip."""
    per = config.pieces_per_segment
    spans = [_span(config, segment) for segment in config.segments]
    lumps = lumps_along(spans)
    end = config.segments[-1].connector.length_m
    ball = 0.4 * load_kg * config.payload_radius_m**2
    lumps[-1].join(Lump(load_kg, end, ball, ball))
    moved = lumps[1:]
    ds = np.array([segment.length_m / per for segment in config.segments])
    stiffness, damping = np.zeros((len(ds), 3)), np.zeros((len(ds), 2))
    stiffness[:, 2] = [float(s.profile.stiffness(0.5)[5, 5]) for s in config.segments] / ds
    # The sleeve does not damp the stretch of a metal core.
    damping[:, 0] = [segment.damping_time_s for segment in config.segments]
    return BodyParameters(
        segment_length=np.repeat(ds, per),
        offset=np.array(rises(spans)),
        stiffness=np.repeat(stiffness, per, axis=0),
        damping_time=np.repeat(damping, per, axis=0),
        mass=np.array([lump.mass for lump in moved]),
        centre=np.array([lump.centre for lump in moved]),
        inertia=np.array([[lump.across, lump.along] for lump in moved]),
        base_rotation=np.eye(3),
        gravity=gravity,
        tip_offset=np.array([end]),
    )


def _span(config: TendonRodPlantConfig, segment: PlantRodSegmentConfig) -> Span:
    connector, radius = segment.connector, config.connector_radius_m
    rigid = Lump.cylinder(connector.mass_kg, radius, 0.0, connector.length_m)
    if connector.centre_of_mass_m is not None:
        rigid.centre = connector.centre_of_mass_m
    mass = segment.sleeve_mass_kg + float(segment.profile.mass_per_length(0.5)) * segment.length_m
    return Span(
        segment.length_m,
        config.pieces_per_segment,
        mass,
        config.outer_radius_m,
        connector.length_m,
        rigid,
    )


def cable_paths(
    config: TendonRodPlantConfig, tendons: Sequence[PlantTendon]
) -> tuple[Array, Array]:
    """
    Return the positions (n, m, 2) [m] of cables at joints, and whether they run there (n, m).

    Paths are parallel to the rod; `rigs` refuses others. The second array is 0 or 1.
    """
    per, n = config.pieces_per_segment, config.pieces_per_segment * len(config.segments)
    place, runs = np.zeros((n, len(tendons), 2)), np.zeros((n, len(tendons)))
    turns = turns_before(config)
    for i, tendon in enumerate(tendons):
        own = dict(zip(tendon.segment_indices, tendon.routes))
        side = math.radians(tendon.routes[0].angle_deg)
        for k in range(max(own) + 1):
            if k in own:
                drawn = config.segments[k].cable_radius_m
                radius = own[k].radius_m if drawn is None else drawn
                radius += config.segments[k].cable_radius_error_m
                angle = math.radians(own[k].angle_deg)
            else:
                radius, angle = config.passage_radius_m, side
            angle += float(turns[k])
            here = slice(k * per, (k + 1) * per)
            place[here, i] = radius * math.cos(angle), radius * math.sin(angle)
            runs[here, i] = 1.0
    return place, runs
