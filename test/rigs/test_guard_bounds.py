"""Limits that no arm could exceed, or in a wrong unit, are refused: they guard nothing."""

import pytest

from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig

CASES = [
    ('cable_arm', 'controller.max_correction_speed_m_s=60', '> 0 and <= 10'),
    ('cable_arm', 'controller.straightening_gain_1_s=1e9', 'controller.rate_hz = 100'),
    ('cable_arm', 'controller.settle_timeout_s=3000', '>= 0 and <= 600'),
    ('trunk', 'controller.integral_gain_1_s2=1e9', 'expected at most 96.9'),
    ('fishbone_arm', 'controller.max_acceleration_m_s2=1e9', '> 0 and <= 100'),
    ('fishbone_arm', 'controller.max_jerk_m_s3=1e9', '> 0 and <= 10000'),
    ('fishbone_arm', 'drives.daq.inputs[0].stuck_after_s=200', '> 0 and <= 60'),
    (
        'fishbone_arm',
        'drives.daq.inputs[0].high=25000',
        'high = 25000 N outside [-137.5, 112.5] N, which scale and zero give for min_V to max_V',
    ),
    ('fishbone_arm', 'drives.daq.inputs[0].low=-138', 'low = -138 N outside'),
    ('hydraulic_arm', 'arm.actuators[0].max_rate_Pa_s=1e9', '> 0 and <= 1e+08'),
    ('hydraulic_arm', 'drives.servo.axes[0].speed_limit_rad_s=1e9', '> 0 and <= 10000'),
    ('hydraulic_arm', 'drives.servo.rate_hz=1e9', '> 0 and <= 1000'),
    ('hydraulic_arm', 'drives.servo.sensor_high_Pa=1e9', '> 0 and <= 1e+08'),
    ('hydraulic_arm', 'drives.servo.home_tolerance_Pa=1e9', '> 0 and <= 1e+08'),
    ('hydraulic_arm', 'supervisor.pressure_watch.max_error_Pa=1e9', '> 0 and <= 1e+08'),
    (
        'hydraulic_arm',
        'supervisor.pressure_watch.max_error_Pa=1e6',
        'the largest pressure_max_Pa of arm.actuators',
    ),
    (
        'pneumatic_arm',
        'drives.daq.force_sensor.limits[2]=1200',
        'limits[2] = 1200: expected at most',
    ),
    ('pneumatic_arm', 'controller.swing.frequency_hz=1e9', '> 0 and <= 10000'),
    ('pam_arm', 'tip_load_kg=1e9', '>= 0 and <= 1000'),
    ('pam_arm', 'sensors.em_tracker.position_noise_m=7', '>= 0 and <= 1'),
    ('pam_arm', 'arm.actuators[0].max_acceleration_m_s2=1e9', '> 0 and <= 100'),
    ('pam_arm', 'drives.valves.answer_timeout_s=300', '> 0 and <= 60'),
    ('trunk', 'drives.dynamixel.current_limit_A=2000', 'expected at most 5.506'),
    ('trunk', 'drives.dynamixel.current_limit_A=1e-3', 'expected at least one count'),
    ('trunk', 'drives.dynamixel.baud=4294967296', '>= 300 and <= 1.2e+07'),
    ('cable_arm', 'drives.steppers.baud=25', '>= 300 and <= 1.2e+07'),
    ('pam_arm', 'drives.valves.baud=4294967296', '>= 300 and <= 1.2e+07'),
    (
        'hydraulic_arm',
        'drives.servo.rate_hz=1',
        'expected at least 10, one exchange within command_timeout_s = 0.1',
    ),
    (
        'pneumatic_arm',
        'drives.daq.output_rate_hz=0.5',
        'expected at least 6.66667, one output within command_timeout_s = 0.15',
    ),
    # Of the arm and of the simulated one: in millimetres, grams, or impossible.
    ('cable_arm', 'arm.sections[0].length_m=120', '> 0 and <= 5'),
    ('cable_arm', 'arm.sections[0].cable_radius_m=17', '> 0 and <= 1'),
    ('cable_arm', 'arm.sections[0].endcap_length_m=20', '>= 0 and <= 1'),
    ('cable_arm', 'arm.sections[0].body_mass_kg=1e9', '>= 0 and <= 1000'),
    ('cable_arm', 'arm.sections[0].bending_stiffness_N_m2=1e13', '> 0 and <= 1e+12'),
    ('cable_arm', 'plant.sections[0].outer_radius_m=30', '> 0 and <= 1'),
    ('cable_arm', 'plant.sections[0].torsion_stiffness_N_m2=1e13', '> 0 and <= 1e+12'),
    ('hydraulic_arm', 'arm.sections[0].axial_stiffness_N=1e13', '> 0 and <= 1e+12'),
    ('hydraulic_arm', 'arm.sections[0].mass_kg=1e9', '> 0 and <= 1000'),
    ('pneumatic_arm', 'arm.sections[0].chamber_radius_m=17', '> 0 and <= 1'),
    ('pneumatic_arm', 'plant.sections[0].mass_per_length_kg_m=1e9', '> 0 and <= 1000'),
    ('fishbone_arm', 'arm.segments[0].length_m=50', '> 0 and <= 5'),
    ('fishbone_arm', 'plant.winch.cable_stiffness_N_m=1e13', '> 0 and <= 1e+12'),
    ('pam_arm', 'arm.modules.anchor_radius_m=20', '> 0 and <= 1'),
    ('pam_arm', 'arm.backbone.youngs_modulus_Pa=62e12', '> 0 and <= 1e+13'),
]


@pytest.mark.parametrize(('rig', 'setting', 'message'), CASES)
def test_limit_that_guards_nothing_is_refused_by_field(rig, setting, message):
    with pytest.raises(RigError) as error:
        load_rig(rig, [setting])
    field, _, _ = setting.partition('=')
    said = str(error.value)
    assert message in said and field.rpartition('.')[2].partition('[')[0] in said


def test_integral_gain_of_a_loop_that_decays_is_accepted():
    # The shipped gain, and one as high as the square of the feedback gain.
    for gain in (2.0, 9.0):
        load_rig('trunk', [f'controller.integral_gain_1_s2={gain}'])
