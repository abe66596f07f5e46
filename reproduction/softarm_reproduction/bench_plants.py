"""Time the simulated arms against the time span that they simulate."""

from __future__ import annotations

from softarm_reproduction.bench_rows import BenchRow, median_us
from softarm_ros import load_rig
from softarm_ros.runtime.arm_assembly import build_plant

PERIOD_S = 0.05
BAR = 100.0  # times real time
# Step of the first actuator's command from its initial position, in the actuator's unit.
MOVES = {'cable_arm': 5e-3, 'hydraulic_arm': 1e5, 'pneumatic_arm': 2e4, 'fishbone_arm': 1.0}


def rows(repeats: int = 15) -> list[BenchRow]:
    """Return a row for each arm: 50 ms of motion, including the pose sensor's frames."""
    return [*(_commanded(name, repeats) for name in MOVES), _muscles(repeats)]


def _commanded(name: str, repeats: int) -> BenchRow:
    plant = build_plant(load_rig(name), 0)
    target = plant.actuator_state().position
    target[0] += MOVES[name]
    plant.step(target, PERIOD_S)
    us = median_us(lambda: plant.step(target, PERIOD_S), repeats)
    return _row(f'{name}, plant, 50 ms', us)


def _muscles(repeats: int) -> BenchRow:
    # Without the driver: its tables take as long as the plant itself.
    plant = build_plant(load_rig('pam_arm'), 0)
    us = median_us(lambda: plant.advance(PERIOD_S), repeats)
    return _row('pam_arm, plant without driver, 50 ms', us)


def _row(name: str, compiled_us: float) -> BenchRow:
    simulated_us = 1e6 * PERIOD_S
    return BenchRow(name, compiled_us, simulated_us, 'the time simulated', simulated_us / BAR)
