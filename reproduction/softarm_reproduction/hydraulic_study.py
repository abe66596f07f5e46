"""
The hydraulic arm of Chen et al. 2022: limit poses, static tips, experiments and axes.

The experiments run with arm and water coupled, and with the arm alone under pressures that lag
the motor torque by 20 ms. `python -m softarm_reproduction.hydraulic_study` prints the tables of
docs/models_hydraulics.md and of the arm in docs/models_dynamics.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.table import Table

from softarm_reproduction.hydraulic_axis_study import print_axis
from softarm_reproduction.hydraulic_motions import (
    Experiment,
    Record,
    experiments,
    on_motors,
    settling,
    simulate_apart,
    simulate_coupled,
    simulate_in_turn,
)
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.dynamics.tangents import equilibrium
from softarm_ros.models.hydraulics.axes import ATMOSPHERE_PA, VAPOUR_PA
from softarm_ros.models.hydraulics.config import HydraulicAxisConfig
from softarm_ros.models.hydraulics.identified_arm import HANGING_M_S2 as HANGING
from softarm_ros.models.hydraulics.identified_arm import (
    LIMIT_PRESSURE_PA,
    SET_B,
    ArmSet,
    build_body,
    build_hydraulic_arm,
    rest_pose,
)


def main() -> None:
    """Print all tables."""
    console = Console(width=170)
    _print_limit_poses(console)
    _print_static_tips(console)
    _print_experiments(console)
    _print_steps(console, SET_B[1])
    print_axis(console)


def _print_limit_poses(console: Console) -> None:
    """Print the limit poses of the identified sets, and of the set for n = 1 with 5 segments."""
    table = Table(title='set B, identified; limit poses of one hanging section at 1 MPa')
    for heading in ('set for n', 'segments', 'l0 m', 'EI N m^2', 'excess', 'actuators'):
        table.add_column(heading, justify='right')
    for heading in ('length m', 'paper', 'angle deg', 'paper', 'radius m', 'tip x, z m'):
        table.add_column(heading, justify='right')
    for n, values in (*SET_B.items(), (1, replace(SET_B[1], segments=5))):
        drive = build_body(values, 1)
        for name, on, length_m, angle in (
            ('2 3', (0.0, 1.0, 1.0), '0.401', '165.7'),
            ('1', (1.0, 0.0, 0.0), '(0.473)', '168'),
        ):
            pose = rest_pose(drive, LIMIT_PRESSURE_PA * np.array(on))
            bend, (x, _, z) = abs(pose.angles[0]), pose.tips[0]
            table.add_row(
                str(n), str(values.segments), f'{values.length_m:.5f}',
                f'{values.bending_stiffness_N_m2:.5f}', f'{values.excess:.5f}', name,
                f'{pose.lengths[0]:.4f}', length_m, f'{math.degrees(bend):.2f}', angle,
                f'{pose.lengths[0] / bend:.4f}', f'{x:.3f}, {z:.3f}',
            )  # fmt: skip
    console.print(table)


def _print_static_tips(console: Console) -> None:
    table = Table(title='two sections at rest, torque on one actuator alone (experiment 4.2)')
    for heading in ('n', 'actuator', 'torque N m', 'tip 1 x, z m', 'tip 2 x, z m', 'angles deg'):
        table.add_column(heading, justify='right')
    per_torque = HydraulicAxisConfig().pressure_per_torque_Pa_Nm
    for n, values in SET_B.items():
        drive = build_body(values)
        for actuator in (1, 4):
            for torque in (0.5, 1.0, 1.5, 2.0):
                pose = rest_pose(drive, per_torque * on_motors(actuator, torque_N_m=torque))
                (x, _, z), (far_x, _, far_z) = pose.tips
                first, second = np.degrees(pose.angles)
                table.add_row(
                    str(n), str(actuator), f'{torque:.1f}', f'{x:.3f}, {z:.3f}',
                    f'{far_x:.3f}, {far_z:.3f}', f'{first:.1f}, {second:.1f}',
                )  # fmt: skip
    console.print(table)


def _print_experiments(console: Console) -> None:
    table = Table(title='settling after the last change of the command (5 %), s')
    for heading in ('experiment', 'n', 'arm and water', 'curvature 1', 'curvature 2'):
        table.add_column(heading, justify='right')
    for heading in (
        'tip 2',
        'overshoot',
        'tip speed m/s',
        'pressures MPa',
        'end x, z m',
        'reported',
    ):
        table.add_column(heading, justify='right')
    line = HydraulicAxisConfig(line_cells=4, turbulent_line=True)
    seals = HydraulicAxisConfig(coulomb_friction_N=40.0, static_friction_N=60.0)
    for experiment in experiments():
        for n, values in SET_B.items():
            ways: list[tuple[str, Callable[[], Record]]] = [
                ('coupled', _coupled(values, None, experiment)),
                ('20 ms lag', _apart(values, experiment)),
            ]
            if n == 1:
                ways.append(('inert line', _coupled(values, line, experiment)))
                ways.append(('seals', _coupled(values, seals, experiment)))
            for name, way in ways:
                record = way()
                found = settling(record, experiment)
                x, _, z = record.tips[-1, 1]
                table.add_row(
                    experiment.name, str(n), name, f'{found.curvature_s[0]:.2f}',
                    f'{found.curvature_s[1]:.2f}', f'{found.tip_s:.2f}',
                    f'{100.0 * found.overshoot:.1f} %', f'{found.tip_speed:.2f}',
                    _span(record.pressure), f'{x:.3f}, {z:.3f}',
                    experiment.reported,
                )  # fmt: skip
    console.print(table)


def _span(pressure: Array) -> str:
    void = ' (void)' if pressure.min() < VAPOUR_PA - ATMOSPHERE_PA else ''
    return f'{pressure.min() / 1e6:.2f}..{pressure.max() / 1e6:.2f}{void}'


def _coupled(
    values: ArmSet, axis: HydraulicAxisConfig | None, experiment: Experiment
) -> Callable[[], Record]:
    return lambda: simulate_coupled(build_hydraulic_arm(values, axis), experiment, 2e-3)


def _apart(values: ArmSet, experiment: Experiment) -> Callable[[], Record]:
    return lambda: simulate_apart(values, experiment, 2e-3)


def _print_steps(console: Console, values: ArmSet) -> None:
    """Print accuracy, speed and stability over the step size."""
    experiment = replace(experiments()[0], duration_s=1.0)
    system = build_hydraulic_arm(values)
    truth = simulate_coupled(system, experiment, 1.25e-4)
    table = Table(title='3.2.1, first second: together against in turn')
    for heading in ('step ms', 'tip error mm', 'x real time', 'tip error in turn mm'):
        table.add_column(heading, justify='right')
    loads = system.arm.loads(HANGING)
    for dt in (2e-2, 1e-2, 5e-3, 2.5e-3, 2e-3, 1e-3, 5e-4):
        state = system.rest_state(equilibrium(system.arm, loads).strains)
        begin = time.perf_counter()
        for _ in range(round(1.0 / dt)):
            state = system.step(state, on_motors(1, 5, 6), dt, loads).state
        spent = time.perf_counter() - begin
        stride = round(dt / 1.25e-4)
        reference = truth.tips[stride - 1 :: stride, 1]
        errors = []
        for record in (
            simulate_coupled(system, experiment, dt),
            simulate_in_turn(values, experiment, dt),
        ):
            if record is None:
                errors.append('blows up')
                continue
            error = np.linalg.norm(record.tips[:, 1] - reference, axis=1).max()
            errors.append(f'{1e3 * error:.4f}')
        table.add_row(f'{1e3 * dt:g}', errors[0], f'{1.0 / spent:.0f}', errors[1])
    console.print(table)
    flow = 1e6 * system.drive.volume_change(
        equilibrium(
            system.arm,
            system.arm.loads(HANGING, drive=system.drive.drive(0.6e6 * (on_motors(1, 5, 6) > 0))),
        ).strains
    )
    record = simulate_coupled(system, replace(experiment, duration_s=4.0), 2e-3)
    console.print(
        'water the chambers take in 3.2.1, mL: ' + ', '.join(f'{value:.2f}' for value in flow)
    )
    console.print(
        'travel of the pistons, mm: ' + ', '.join(f'{1e3 * x:.2f}' for x in record.piston[-1])
    )


if __name__ == '__main__':
    main()
