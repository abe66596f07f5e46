"""Lines of water hydraulics: speed of sound, inertia, losses of pipes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from water_cases import run

from softarm_ros.models.hydraulics.axes import WaterHydraulics
from softarm_ros.models.hydraulics.config import HydraulicAxisConfig
from softarm_ros.models.hydraulics.pipe_loss_kernels import loss_factor, pipe_loss


def test_pressure_travels_at_the_speed_of_sound():
    """Half of the first rise in the chamber arrives after l / c, for a line of 10 m."""
    axis = HydraulicAxisConfig(
        line_cells=64, line_length_m=10.0, chamber_compliance_m3_Pa=0.0, chamber_volume_m3=1e-6
    )
    hydraulics = WaterHydraulics([axis])
    dt = 2e-5
    pressure = run(hydraulics, 1.0, dt, 800)[:, 0, -1]
    top = pressure[: int(1.8 * axis.line_delay_s / dt)].max()
    arrival = dt * int(np.argmax(pressure > 0.5 * top))
    early = pressure[int(0.8 * axis.line_delay_s / dt)]
    assert axis.line_delay_s == pytest.approx(10.0 / math.sqrt(2.1e9 / 998.0))
    assert abs(early) < 0.01 * top

    assert arrival == pytest.approx(axis.line_delay_s, rel=0.15)


def test_line_of_one_cell_matches_the_matrix_written_by_hand():
    """The matrix exponential gives the reference, with the inertia of the line."""
    axis = HydraulicAxisConfig(line_cells=1)
    hydraulics = WaterHydraulics([axis])
    inert, loss = axis.line_inertance_Pa_s2_m3, axis.line_resistance_Pa_s_m3
    line = axis.line_area_m2 * axis.line_length_m / axis.bulk_modulus_Pa
    c0, cn = axis.cylinder_capacity_m3_Pa + line / 2, axis.chamber_capacity_m3_Pa + line / 2
    area, mass = axis.piston_area_m2, axis.piston_mass_kg
    a = np.array(
        [
            [-axis.piston_damping_N_s_m / mass, -area / mass, 0, 0],
            [area / c0, 0, -1 / c0, 0],
            [0, 1 / inert, -loss / inert, -1 / inert],
            [0, 0, 1 / cn, 0],
        ]
    )
    b = np.array([axis.force_per_torque / mass, 0, 0, 0])
    augmented = np.zeros((5, 5))
    augmented[:4, :4], augmented[:4, 4] = a, 2.0 * b
    truth = (expm(augmented * 0.02) @ [0, 0, 0, 0, 1.0])[:4]
    last = run(hydraulics, 2.0, 1e-6, 20000)[-1, 0]
    np.testing.assert_allclose(last[[0, 2, 3, 4]], truth, rtol=2e-4)


@pytest.mark.parametrize('reynolds', [1.5, 50.0, 1000.0, 1900.0])
def test_pipe_loss_is_laminar_below_the_transition(reynolds):
    assert loss_factor(reynolds, 0.0)[0] == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize('reynolds', [1e4, 5e4, 1e5])
def test_pipe_loss_is_turbulent_above_the_transition(reynolds):
    """Prandtl-Karman: 1/sqrt(f) = 2 log10(Re sqrt(f)) - 0.8, Churchill agrees to 2 %."""
    friction = 64.0 / reynolds * loss_factor(reynolds, 0.0)[0]
    implicit = 2.0 * math.log10(reynolds * math.sqrt(friction)) - 0.8
    assert 1.0 / math.sqrt(friction) == pytest.approx(implicit, rel=0.012)


@settings(max_examples=100, deadline=None)
@given(log_flow=st.floats(-9.0, -3.0), sign=st.sampled_from([-1.0, 1.0]), rough=st.floats(0, 0.01))
def test_pipe_loss_slope_matches_finite_differences(log_flow, sign, rough):
    flow, step = sign * 10.0**log_flow, 1e-5 * 10.0**log_flow
    value, slope = pipe_loss(flow, 6.3e7, 2.1e8, rough)
    above, _ = pipe_loss(flow + step, 6.3e7, 2.1e8, rough)
    below, _ = pipe_loss(flow - step, 6.3e7, 2.1e8, rough)
    assert value * sign > 0 and slope >= 6.3e7 * (1 - 1e-12)
    assert (above - below) / (2 * step) == pytest.approx(slope, rel=1e-5)


def test_pressure_drop_of_a_turbulent_line_equals_the_pipe_loss():
    """The chamber draws a steady flow."""
    axis = HydraulicAxisConfig(turbulent_line=True)
    hydraulics = WaterHydraulics([axis])
    flow = np.array([5e-5])  # Re about 10600
    state = run(hydraulics, 2.0, 1e-3, 500, flow=flow)[-1]
    loss, _ = pipe_loss(5e-5, axis.line_resistance_Pa_s_m3, hydraulics.parameters[0, 12], 0.0)
    assert loss > 3.0 * 5e-5 * axis.line_resistance_Pa_s_m3
    assert state[0, 2] - state[0, 4] == pytest.approx(loss, rel=1e-6)
