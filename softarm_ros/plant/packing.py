"""Conversion of the config of a simulated arm to the arrays of its kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.rotations import rotation_x, rotation_y
from softarm_ros.plant.config import PlantCable, PlantConfig, PlantSectionConfig
from softarm_ros.plant.layout import BodyParameters, CableParameters, Wiring
from softarm_ros.plant.lumps import Lump


def pack_body(config: PlantConfig, gravity_m_s2: ArrayLike) -> BodyParameters:
    """Return the chain of joints and bodies; body masses are lumped at the segments' ends."""
    gravity = np.array(gravity_m_s2, dtype=np.float64)
    if gravity.shape != (3,) or not np.isfinite(gravity).all():
        raise ValueError(f'gravity {gravity.tolist()} is not a finite vector (3,) [m/s^2]')
    count = config.segments_per_section
    lengths, offsets, stiffness, damping, pieces = [], [], [], [], []
    for index, section in enumerate(config.sections):
        ds = section.length_m / count
        before = config.sections[index - 1].endcap_length_m if index > 0 else 0.0
        for k in range(count):
            lengths.append(ds)
            offsets.append(before + section.endcap_length_m if k == 0 else 0.0)
            stiffness.append(
                [
                    section.bending_stiffness_N_m2 / ds,
                    section.torsion_stiffness_N_m2 / ds,
                    section.axial_stiffness_N / ds,
                ]
            )
            damping.append([section.damping_time_s] * 2)
            pieces.append(_slice(section, count, upper=k < count - 1))
        pieces[-1].join(_endcap(section, 0.0))
        if index + 1 < len(config.sections):
            after = config.sections[index + 1]
            height = section.endcap_length_m + after.endcap_length_m
            pieces[-1].join(_endcap(after, section.endcap_length_m))
            half = 0.5 * after.length_m / count
            mass = 0.5 * after.body_mass_kg / count
            pieces[-1].join(Lump.cylinder(mass, after.outer_radius_m, height, height + half))
    tilt_x, tilt_y = (math.radians(angle) for angle in config.base_tilt_deg)
    return BodyParameters(
        segment_length=np.array(lengths),
        offset=np.array(offsets),
        stiffness=np.array(stiffness),
        damping_time=np.array(damping),
        mass=np.array([piece.mass for piece in pieces]),
        centre=np.array([piece.centre for piece in pieces]),
        inertia=np.array([[piece.across, piece.along] for piece in pieces]),
        base_rotation=np.ascontiguousarray(rotation_x(tilt_x) @ rotation_y(tilt_y)),
        gravity=gravity,
        tip_offset=np.array([config.sections[-1].endcap_length_m]),
    )


def _slice(section: PlantSectionConfig, count: int, *, upper: bool) -> Lump:
    """Return the body between the middles of two segments, or its lower half."""
    half = 0.5 * section.length_m / count
    mass = section.body_mass_kg / count
    if upper:
        return Lump.cylinder(mass, section.outer_radius_m, -half, half)
    return Lump.cylinder(0.5 * mass, section.outer_radius_m, -half, 0.0)


def _endcap(section: PlantSectionConfig, start: float) -> Lump:
    return Lump.cylinder(
        section.endcap_mass_kg, section.outer_radius_m, start, start + section.endcap_length_m
    )


def pack_cables(config: PlantConfig, cables: Sequence[PlantCable]) -> CableParameters:
    """
    Return the cable parameters.

    Raises
    ------
    ValueError
        If the section of a cable does not exist, or its angle is not finite.

    """
    count = config.segments_per_section
    first, anchor, foundation, relaxation, stiffness = [], [], [], [], []
    passing = np.zeros((len(cables), count * len(config.sections)))
    for index, cable in enumerate(cables):
        if not 0 <= cable.section_index < len(config.sections):
            raise ValueError(
                f'cable {index}: section_index {cable.section_index} outside '
                f'[0, {len(config.sections) - 1}]'
            )
        if not math.isfinite(cable.angle_rad):
            raise ValueError(f'cable {index}: angle_rad {cable.angle_rad} is not finite')
        section = config.sections[cable.section_index]
        first.append(cable.section_index * count)
        anchor.append(
            [
                section.cable_radius_m * math.cos(cable.angle_rad),
                section.cable_radius_m * math.sin(cable.angle_rad),
            ]
        )
        foundation.append(section.cutting_in_stiffness_N_m2 * section.length_m / count)
        relaxation.append(section.cutting_in_relaxation_s)
        length = config.cable_free_length_m + section.endcap_length_m + section.length_m
        for k, before in enumerate(config.sections[: cable.section_index]):
            length += 2.0 * before.endcap_length_m + before.length_m
            share = before.passing_radius_m / section.cable_radius_m
            passing[index, k * count : (k + 1) * count] = share
        stiffness.append(config.cable_axial_stiffness_N / length)
    return CableParameters(
        first=np.array(first, dtype=np.int64),
        anchor=np.array(anchor, dtype=np.float64).reshape(-1, 2),
        foundation=np.array(foundation, dtype=np.float64),
        relaxation=np.array(relaxation, dtype=np.float64),
        stiffness=np.array(stiffness, dtype=np.float64),
        damping_time=np.full(len(cables), config.cable_damping_time_s),
        passing=passing,
        reach=np.array(first, dtype=np.int64) + count,
    )


def motor_count(cables: Sequence[PlantCable]) -> int:
    """Return the number of motors that wind the cables."""
    return len({_motor_of(index, cable) for index, cable in enumerate(cables)})


def pack_wiring(config: PlantConfig, cables: Sequence[PlantCable]) -> Wiring:
    """
    Return the assignment of cables to motors.

    Raises
    ------
    ValueError
        If motors are not numbered from 0 without gaps, or `zero_offset_m` has another length.

    """
    motor = np.array([_motor_of(i, cable) for i, cable in enumerate(cables)], dtype=np.int64)
    count = motor_count(cables)
    if set(motor.tolist()) != set(range(count)):
        raise ValueError(f'motors {sorted(set(motor.tolist()))}: expected 0 to {count - 1}')
    zero = np.zeros(count)
    if config.zero_offset_m:
        if len(config.zero_offset_m) != count:
            raise ValueError(
                f'zero_offset_m has {len(config.zero_offset_m)} values; expected {count}'
            )
        zero[:] = config.zero_offset_m
    sign = np.array([cable.sign for cable in cables], dtype=np.float64)
    paired = np.bincount(motor, minlength=count)[motor] > 1
    offset = sign * zero[motor] + config.pair_pretension_m * paired
    return Wiring(motor, sign, offset)


def _motor_of(index: int, cable: PlantCable) -> int:
    return index if cable.motor is None else cable.motor
