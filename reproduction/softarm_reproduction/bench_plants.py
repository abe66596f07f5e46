"""Times the simulated arms beside the time that they simulate."""

from __future__ import annotations

import numpy as np

from softarm_reproduction.bench_rows import BenchRow, median_us
from softarm_ros import load_rig
from softarm_ros.plant.hydraulic.hydraulic_plant import HydraulicPlant
from softarm_ros.plant.pam_arm.muscle_arm_plant import MuscleArmPlant
from softarm_ros.rigs.cable_rig import CableRig
from softarm_ros.rigs.hydraulic_rig import HydraulicRig
from softarm_ros.rigs.muscle_rig import MuscleRig

PERIOD_S = 0.05
BAR = 100.0  # times real time


def rows(repeats: int = 15) -> list[BenchRow]:
    """Return a row for each arm on the chain of elastic joints: one control period, in motion."""
    return [_cable(repeats), _muscle(repeats), *_hydraulic(repeats)]


def _row(name: str, compiled_us: float) -> BenchRow:
    simulated_us = 1e6 * PERIOD_S
    return BenchRow(name, compiled_us, simulated_us, 'the time simulated', simulated_us / BAR)


def _cable(repeats: int) -> BenchRow:
    rig = load_rig('cable_arm')
    assert isinstance(rig, CableRig)
    plant, target = rig.simulated_arm(0), 5e-3 * np.eye(len(rig.actuators))[0]
    us = median_us(lambda: plant.step(target, PERIOD_S), repeats)
    return _row('cable_arm, plant, 50 ms', us)


def _muscle(repeats: int) -> BenchRow:
    rig = load_rig('pam_arm')
    assert isinstance(rig, MuscleRig)
    plant = rig.simulated_arm(0)
    assert isinstance(plant, MuscleArmPlant)
    # Under switched relays the plant runs without the driver, whose tables take as long.
    return _row(
        'pam_arm, plant without driver, 50 ms',
        median_us(lambda: plant.advance(PERIOD_S), repeats),
    )


def _hydraulic(repeats: int) -> list[BenchRow]:
    rig = load_rig('hydraulic_arm')
    assert isinstance(rig, HydraulicRig)
    plant = rig.simulated_arm(0)
    assert isinstance(plant, HydraulicPlant)
    target = np.full(len(rig.actuators), rig.preload_Pa)
    target[0] += 1e5
    plant.step(target, PERIOD_S)
    body, h = plant.body, rig.required_plant().time_step_s
    force = plant.piston_forces()
    count = round(PERIOD_S / h)

    def motion() -> None:
        for _ in range(count):
            body.advance(force, h)

    body_us = median_us(motion, repeats) * PERIOD_S / (count * h)
    plant_us = median_us(lambda: plant.step(target, PERIOD_S), repeats)
    return [
        _row('hydraulic_arm, body and water, 50 ms', body_us),
        _row('hydraulic_arm, plant, 50 ms', plant_us),
    ]
