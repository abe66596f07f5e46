"""Servo drives, brakes and pressure sensors of the simulated water-hydraulic arm."""

import numpy as np
import pytest
from hydraulic_cases import (
    PRELOAD,
    RATIO,
    SWING,
    plant,
    step_drives,
)

from softarm_ros.drivers.pressure_loop import PressureLoop, PressureLoopConfig
from softarm_ros.plant.hydraulic.config import (
    PressureSensorConfig,
    ServoDriveConfig,
)
from softarm_ros.plant.hydraulic.pressure_sensors import PressureSensors
from softarm_ros.plant.hydraulic.servo_drives import ServoDrives


def drives(gain=0.0, step=1e-9, lag=0.01, start=0.0):
    return ServoDrives(
        ServoDriveConfig(max_torque_N_m=2.5, torque_step_N_m=step, lag_s=lag),
        PressureLoop(
            PressureLoopConfig(gain=gain, filter_s=0.03),
            np.array([RATIO, RATIO]),
            np.full(2, start),
        ),
        np.ones(2),
    )


def test_torque_lag_matches_its_closed_form_at_any_step():
    for steps in (1, 7):
        drive = drives()
        drive.command(np.array([4e5, 0.0]))
        means = [drive.advance(np.zeros(2), 0.014 / steps) for _ in range(steps)]
        assert drive.torque[0] == pytest.approx(1.0 - np.exp(-1.4), rel=1e-8)
        mean = 1.0 - (1.0 - np.exp(-1.4)) / 1.4
        assert np.mean(means, axis=0)[0] == pytest.approx(mean, rel=1e-8)
        assert drive.torque[1] == 0.0


def test_torque_is_limited_and_quantised():
    drive = drives(step=0.1, lag=1e-4)
    drive.command(np.array([4e6, 3.3e4]))
    drive.advance(np.zeros(2), 0.1)
    np.testing.assert_allclose(drive.torque, [2.5, 0.1])


def test_pressure_loop_filters_the_measured_error():
    drive = drives(gain=2.0, lag=1e-6)
    drive.command(np.array([2e5, 2e5]))
    for _ in range(10):
        drive.advance(np.array([1e5, 2e5]), 0.003)
    error = 1e5 * (1.0 - np.exp(-1.0))
    np.testing.assert_allclose(drive.torque, [RATIO * (2e5 + 2.0 * error), RATIO * 2e5], rtol=1e-6)


def test_pressure_sensors_have_noise_offset_and_resolution():
    settings = PressureSensorConfig(noise_Pa=1000.0, offset_Pa=2500.0, step_Pa=98.0)
    sensors = PressureSensors(settings, 400, 1)
    rows = []
    for _ in range(200):
        sensors.sample(np.full(400, 3e5))
        rows.append(sensors.reading)
    readings = np.array(rows)
    np.testing.assert_allclose(np.round(readings / 98.0), readings / 98.0, atol=1e-6)
    assert readings.std(axis=0).mean() == pytest.approx(1000.0, rel=0.05)
    assert readings.mean(axis=0).std() == pytest.approx(2500.0, rel=0.15)
    again = PressureSensors(settings, 400, 1)
    again.sample(np.full(400, 3e5))
    np.testing.assert_array_equal(again.reading, rows[0])


# -- behind emulated drives -------------------------------------------------------------------

ALL, NONE = np.ones(6, dtype=bool), np.zeros(6, dtype=bool)
POSE = np.array([2.5e5, 1e5, 3e5, 1e5, 1e5, 4e5])


def posed(**changes):
    """Return an arm that its drives have brought into a pose, and its torques there."""
    arm = plant(friction=25.0, **changes)
    arm.drives.park()
    for k in range(100):
        step_drives(arm, RATIO * (PRELOAD + (POSE - PRELOAD) * (k + 1) / 100), ALL, 0.02)
    step_drives(arm, RATIO * POSE, ALL, 1.0)
    return arm, RATIO * POSE


def test_arm_driven_by_torques_moves_like_the_simulated_arm():
    simulated, driven = plant(friction=25.0, gain=0.0), plant(friction=25.0, gain=3.0)
    for _ in range(50):
        simulated.step(SWING, 0.02)
        step_drives(driven, np.round(RATIO * SWING, 6), ALL, 0.02)
    np.testing.assert_allclose(
        driven.true_section_tips(), simulated.true_section_tips(), atol=1e-12
    )
    assert driven.time_s == simulated.time_s
    assert len(driven.poll_poses()) == len(simulated.poll_poses()) > 30


def test_parked_arm_keeps_pressures_and_shafts_without_torque():
    arm = plant(friction=25.0)
    arm.drives.park()
    before, shafts = arm.true_section_tips(), arm.drives.shaft_positions()
    step_drives(arm, np.zeros(6), NONE, 2.0)
    np.testing.assert_array_equal(arm.actuator_state().effort, 0.0)
    np.testing.assert_allclose(arm.drives.true_pressures(), PRELOAD, rtol=0.01)
    np.testing.assert_array_equal(arm.drives.shaft_positions(), shafts)
    np.testing.assert_allclose(arm.true_section_tips(), before, atol=1e-4)


def test_brakes_open_and_close_with_their_delays():
    for lifted, delay_s in ((ALL, 0.05), (NONE, 0.02)):
        arm = plant()
        if lifted is ALL:
            arm.drives.park()
            torque = RATIO * 3e5 * np.ones(6)
        else:
            torque = np.zeros(6)
        shafts = arm.drives.shaft_positions()
        moved_at = []
        for k in range(40):
            before = arm.drives.shaft_positions()
            step_drives(arm, torque, lifted, 0.004)
            if np.abs(arm.drives.shaft_positions() - before).max() > 1e-3:
                moved_at.append(0.004 * k)
        if lifted is ALL:
            assert moved_at[0] == pytest.approx(delay_s, abs=0.005)
        else:
            assert moved_at[-1] == pytest.approx(delay_s, abs=0.009)
        assert np.abs(arm.drives.shaft_positions() - shafts).max() > 0.02


def test_brake_slips_beyond_its_torque():
    drive = {
        'max_torque_N_m': 2.5,
        'torque_step_N_m': 1e-6,
        'lag_s': 0.002,
        'brake': {'torque_N_m': 0.5},
    }
    arm = plant(drive=drive)
    arm.drives.park()
    shafts = arm.drives.shaft_positions()
    step_drives(arm, np.full(6, 0.5), NONE, 0.2)
    np.testing.assert_array_equal(arm.drives.shaft_positions(), shafts)
    step_drives(arm, np.array([1.5, 0.0, 0.0, 0.0, 0.0, 0.0]), NONE, 0.2)
    moved = arm.drives.shaft_positions() - shafts
    assert moved[0] > 0.1
    np.testing.assert_array_equal(moved[1:], 0.0)


def test_arm_stays_if_the_torque_is_kept_until_the_brakes_hold():
    arm, torque = posed()
    before = arm.true_section_tips()[-1, :3, 3]
    step_drives(arm, torque, NONE, 0.02)
    step_drives(arm, np.zeros(6), NONE, 2.0)
    assert np.linalg.norm(arm.true_section_tips()[-1, :3, 3] - before) < 5e-4
    np.testing.assert_array_equal(arm.drives.boiled_s, 0.0)


def test_sudden_torque_loss_lets_the_arm_sag_by_less_than_0_1_m():
    arm, _ = posed()
    before = arm.true_section_tips()[-1, :3, 3]
    lowest = np.inf
    for _ in range(200):
        step_drives(arm, np.zeros(6), NONE, 0.01)
        lowest = min(lowest, float(arm.drives.true_pressures().min()))
    assert lowest < -2e4  # the chambers are under suction
    moved = np.linalg.norm(arm.true_section_tips()[-1, :3, 3] - before)
    assert 2e-3 < moved < 0.1
    assert np.isfinite(arm.true_section_tips()).all()


def test_boiling_time_of_a_driven_arm_is_recorded():
    arm = plant(preload=0.0)
    arm.drives.park()
    for _ in range(50):
        step_drives(arm, np.array([2.5, 0.0, 0.0, 0.0, 0.0, 0.0]), ALL, 0.02)
    assert arm.drives.boiled_s.max() > 0.0
    assert arm.time_s == pytest.approx(1.0)


@pytest.mark.parametrize(
    ('torque', 'message'),
    [
        (np.zeros(5), r'torque has shape \(5,\)'),
        (np.full(6, np.nan), 'torque of c1 = nan; expected a finite number of N m'),
    ],
)
def test_invalid_torques_are_refused(torque, message):
    with pytest.raises(ValueError, match=message):
        step_drives(plant(), torque, ALL, 0.01)
