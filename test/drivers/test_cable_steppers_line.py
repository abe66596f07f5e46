"""Stepper driver at a real port: the AVR binary in simavr, and the core compiled here."""

import numpy as np
import pytest
from stepper_cases import MOTORS, STEP_M, rig_at

pytestmark = pytest.mark.wall_clock
# This checks executed steps, not how soon a busy computer notices that it was late.
PATIENT = {'command_timeout_s': 1.0, 'link_timeout_s': 0.25}


@pytest.mark.parametrize('emulator', ['native', 'simavr'])
def test_commanded_steps_are_executed_exactly_also_after_unplugging(tmp_path, emulator):
    with rig_at(tmp_path, emulator, **PATIENT) as rig:
        rig.home()
        phases = np.arange(MOTORS)
        wave = lambda t: 0.006 * (np.cos(phases) - np.cos(2.0 * t + phases))  # noqa: E731
        assert rig.drive(wave, 1.0) is None
        rig.arrive(0.00731)
        target = [round(0.00731 / step) for step in np.where(phases == 2, -STEP_M, STEP_M)]
        rig.until(lambda: list(rig.bench()['shafts']) == target)
        assert rig.bench()['jumps'] == (0,) * MOTORS

        rig.inject('unplug')
        rig.says('link: lost')
        rig.inject('plug')
        rig.says('STOPPED cause 2')  # cause reported by the board: watchdog
        rig.driver.reset()
        rig.ready()  # the step counts are still valid: no homing
        assert list(rig.bench()['shafts']) == target
        rig.arrive(0.0)
        assert rig.bench()['shafts'] == (0,) * MOTORS
