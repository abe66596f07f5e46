"""Laboratory measurements of the parts of a muscle arm, as fields of its rig file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from softarm_ros.cli.identification.written import write
from softarm_ros.cli.identify_muscles import (
    BenchReadings,
    MuscleIdentification,
    describe_muscles,
    identify_muscles,
    measure_muscles,
    tables,
)
from softarm_ros.plant.pam_arm.config import PamPlantConfig
from softarm_ros.rigs.arms.muscle import MuscleArm
from softarm_ros.rigs.schema import Rig

# Standard deviations of a tape measure, a caliper between holes and a kitchen scale.
TAPE_M, CALIPER_M, SCALE_KG = 5e-4, 1e-4, 1e-3


def identified_fields(rig: Rig, seed: int, output: Path | None) -> Iterator[str]:
    """
    Measure the parts of a seed's simulated arm; yield the results and write the rig file.

    Raises
    ------
    UsageError, RigError
        If the file cannot be written, or the values are invalid for the rig (`written.write`).

    """
    readings = measure_muscles(rig, seed)
    found = identify_muscles(rig, readings)
    yield from describe_muscles(rig, readings, found)
    measured = measured_parts(rig, seed)
    for name, value in measured.items():
        yield f'{name}: {value:.5g}'
    if output is not None:
        values = bench_fields(rig, readings, found) | measured
        files = write(rig, output, values, None, f'[I] softarm identify, seed {seed}')
        yield f'written: {", ".join(str(path) for path in files)}'


def measured_parts(rig: Rig, seed: int) -> dict[str, float]:
    """Return measured length and anchor radius, and the mass per length from a scale."""
    rng = np.random.default_rng((seed, 7))
    plant = rig.plant_of(PamPlantConfig).of_machine(seed)
    rod = plant.backbone
    length = round(rod.length_m + TAPE_M * float(rng.standard_normal()), 4)
    radius = round(plant.anchor_radius_m + CALIPER_M * float(rng.standard_normal()), 5)
    mass = rod.mass_per_length_kg_m * rod.length_m + SCALE_KG * float(rng.standard_normal())
    return {
        'arm.backbone.length_m': length,
        'arm.modules.anchor_radius_m': radius,
        'arm.backbone.mass_per_length_kg_m': round(mass, 3) / length,
    }


def bench_fields(
    rig: Rig, readings: BenchReadings, found: MuscleIdentification
) -> dict[str, float]:
    """Return the rig file's fields with the values identified on the bench."""
    fields = {
        'arm.modules.min_length_m': found.law.shortest_m,
        'arm.modules.max_length_m': found.full_m.value,
        'arm.modules.max_pull_N': found.max_pull_N.value,
        'arm.modules.supply_push_N': found.supply_push_N.value,
        'arm.valves.empty_length_m': found.law.shortest_m,
        'arm.valves.full_length_m': found.full_m.value,
        'arm.valves.max_pull_N': found.max_pull_N.value,
        'arm.valves.supply_push_N': found.supply_push_N.value,
        'arm.valves.leak_time_s': found.leak_time_s.value,
    }
    valves = MuscleArm.of(rig).valves
    points = len(valves.deflating.times_s), len(valves.inflating.times_s)
    for name, curve in zip(('deflating', 'inflating'), tables(readings, found, points)):
        for i, (time_s, length_m) in enumerate(zip(curve.x, curve.y)):
            fields[f'arm.valves.{name}.times_s[{i}]'] = round(float(time_s), 4)
            fields[f'arm.valves.{name}.lengths_m[{i}]'] = round(float(length_m), 6)
    return fields
