"""The effect of a single motor step on the tip, compared with static equilibria."""

import numpy as np
import pytest

from softarm_reproduction.motor_steps import main, motor_step
from softarm_reproduction.nominal import NOMINAL
from softarm_ros import load_rig
from softarm_ros.runtime.arm_assembly import build_plant

FREE = (*NOMINAL, 'plant.cable_friction_coefficient=0')


def test_motor_step_moves_the_tip_by_the_distance_of_the_equilibria():
    rig = load_rig('cable_arm_single', FREE)
    plant, config = build_plant(rig, 0), rig.plant_for('sim')
    step, backlash = config.stepper.step_m, config.stepper.backlash_m
    wound = np.array([step * np.ceil(backlash / step + 1.0) - 0.5 * backlash, 0.0, 0.0])
    at, further = (
        plant.drives.static_equilibrium(wound + extra).section_tips[-1, :3, 3]
        for extra in (np.zeros(3), np.array([step, 0.0, 0.0]))
    )
    found = motor_step(rig)
    assert found.way_m == pytest.approx(float(np.linalg.norm(further - at)), rel=0.02)
    # The acceleration of a suddenly displaced oscillator exceeds its way over a window squared.
    assert found.tip_m_s2 > found.way_m / 0.1**2
    assert found.limits == (rig.tracker.max_acceleration_m_s2, rig.tracker.max_jerk_m_s3)


def test_arm_without_steppers_is_refused(capsys):
    with pytest.raises(SystemExit, match='2'):
        main(['pam_arm'])
    assert 'pam_arm: has no stepper motors' in capsys.readouterr().err
