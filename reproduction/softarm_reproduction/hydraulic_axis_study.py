"""A single water-hydraulic axis: eigenvalues, step response and integration error."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.linalg import expm

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.hydraulics.axes import WaterHydraulics, linear_system
from softarm_ros.models.hydraulics.config import HydraulicAxisConfig


def print_axis(console: Console) -> None:
    """Print the response of one axis to 2.5 N m and the integration error over the step size."""
    table = Table(title='one axis alone, eq. (36) with the wall as printed: step of 2.5 N m')
    for heading in ('damping N s/m', 'eigenvalues 1/s', 'peak MPa', 'settled to 2 % after ms'):
        table.add_column(heading, justify='right')
    dt = 2e-5
    for damping in (400.0, 1000.0, 2000.0, 4000.0):
        axis = HydraulicAxisConfig(piston_damping_N_s_m=damping)
        pressure = _axis_run(axis, dt, 0.1)
        outside = np.flatnonzero(np.abs(pressure - 1e6) > 0.02e6)
        values = np.sort_complex(np.linalg.eigvals(linear_system(axis)[0]))
        table.add_row(
            f'{damping:g}', ', '.join(f'{value:.4g}' for value in values),
            f'{pressure.max() / 1e6:.3f}', f'{1e3 * dt * (outside[-1] + 1):.1f}',
        )  # fmt: skip
    console.print(table)

    axis = HydraulicAxisConfig(piston_damping_N_s_m=400.0)
    a, b = linear_system(axis)
    rest = np.linalg.solve(a, -2.5 * b[:, 0])
    end = 4e-3
    truth = (rest - expm(a * end) @ rest)[1]
    table = Table(title='its pressure after 4 ms against the matrix exponential')
    table.add_column('step us', justify='right')
    table.add_column('relative error', justify='right')
    for steps in (40, 80, 160, 320, 640):
        error = abs(_axis_run(axis, end / steps, end)[-1] / truth - 1.0)
        table.add_row(f'{1e6 * end / steps:g}', f'{error:.2e}')
    console.print(table)
    line = HydraulicAxisConfig(line_cells=1)
    console.print(
        f'line of {line.line_length_m:g} m: {1e3 * line.line_delay_s:.2f} ms at the speed of '
        'sound; '
        f'its water weighs {line.line_inertance_Pa_s2_m3 * line.piston_area_m2**2:.0f} kg as '
        f'seen from the piston of {line.piston_mass_kg:g} kg'
    )


def _axis_run(axis: HydraulicAxisConfig, dt_s: float, duration_s: float) -> Array:
    """Return the chamber pressure [Pa] of one axis after every step under 2.5 N m."""
    hydraulics = WaterHydraulics([axis])
    state, pressure = hydraulics.rest_state(), []
    for _ in range(round(duration_s / dt_s)):
        state = hydraulics.step(state, np.array([2.5]), dt_s).state
        pressure.append(hydraulics.chamber_pressure(state)[0])
    return np.array(pressure)
