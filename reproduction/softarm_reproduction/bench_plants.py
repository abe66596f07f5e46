"""Times the simulated arms beside the time that they simulate."""

from __future__ import annotations

from softarm_reproduction.bench_rows import BenchRow, median_us
from softarm_ros import load_rig
from softarm_ros.runtime.arm_assembly import build_plant

PERIOD_S = 0.05
BAR = 100.0  # times real time
# What one actuator of each arm is commanded beyond where it starts, in its unit.
MOVES = {'cable_arm': 5e-3, 'hydraulic_arm': 1e5, 'pneumatic_arm': 2e4, 'fishbone_arm': 1.0}


def rows(repeats: int = 15) -> list[BenchRow]:
    """Return a row for each arm: 50 ms in motion, with the frames of the pose sensor."""
    return [*(_commanded(name, repeats) for name in MOVES), _muscles(repeats)]


def _commanded(name: str, repeats: int) -> BenchRow:
    plant = build_plant(load_rig(name), 0)
    target = plant.actuator_state().position
    target[0] += MOVES[name]
    plant.step(target, PERIOD_S)
    us = median_us(lambda: plant.step(target, PERIOD_S), repeats)
    return _row(f'{name}, plant, 50 ms', us)


def _muscles(repeats: int) -> BenchRow:
    # Under switched relays the plant runs without the driver, whose tables take as long.
    plant = build_plant(load_rig('pam_arm'), 0)
    us = median_us(lambda: plant.advance(PERIOD_S), repeats)
    return _row('pam_arm, plant without driver, 50 ms', us)


def _row(name: str, compiled_us: float) -> BenchRow:
    simulated_us = 1e6 * PERIOD_S
    return BenchRow(name, compiled_us, simulated_us, 'the time simulated', simulated_us / BAR)
