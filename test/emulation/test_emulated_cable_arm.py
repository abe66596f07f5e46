"""
The stepper board on the simulated cable arm: coils turn shafts, shafts wind cables.

In simulated time, with the AVR binary and with the core compiled here.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from manual_clock import ManualClock, wait_until
from memory_board import MemoryBoard, avr_binary
from passing_arm import CHUNK_S, PassingArm

import softarm_ros
from softarm_ros.drivers.cable_steppers import CableSteppers
from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.emulation.emulated_cable_arm import EmulatedCableArm
from softarm_ros.rigs.arms.cable_driven import cable_limits
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_emulated_arm, build_plant


class Running(PassingArm):
    """An emulated arm in passing time, and the driver of the rig."""

    def __init__(self, rig, folder, elf=None):
        clock = ManualClock()
        self.board = MemoryBoard('steppers', clock, elf=elf)
        steppers = rig.devices.steppers
        arm = EmulatedCableArm(
            build_plant(rig, 0),
            rig.plant.stepper.step_m,
            steppers.motors,
            clock=clock,
            board=self.board,
        )
        arm.start(folder)
        limits = cable_limits(rig.actuator_limits())
        driver = CableSteppers(steppers, limits, clock, self.board.open_port)
        super().__init__(clock, arm, driver)

    def home(self):
        self.driver.start()
        self.until(lambda: 'not homed' in self.driver.not_ready())
        self.driver.home()
        self.until(lambda: not self.driver.not_ready())


@pytest.fixture(scope='module')
def rig():
    loaded = load_rig('cable_arm')
    build_plant(loaded, 0).step(np.zeros(6), CHUNK_S)  # compiles now, not in real time
    return loaded


@pytest.fixture(params=['native', 'avr'])
def running(rig, request, tmp_path):
    started = Running(rig, tmp_path, None if request.param == 'native' else avr_binary())
    yield started
    started.close()


@pytest.fixture
def idle(rig, tmp_path):
    """Return an arm with a board; its time passes only by `advance`."""
    motors = rig.devices.steppers.motors
    arm = EmulatedCableArm(build_plant(rig, 0), rig.plant.stepper.step_m, motors, 'native')
    arm.start(tmp_path)
    yield arm
    arm.close()


def test_step_counts_agree_in_driver_board_coils_and_arm(running, rig):
    running.home()
    target = np.array([0.008, -0.004, -0.0031, 0.0052, 0.0, -0.002])
    running.follow(target, 1.5)
    steps = [round(value / rig.plant.stepper.step_m) for value in target]
    # Commanded, reported by the board in a state, turned on the bench, wound in the arm.
    assert running.driver.values()['targets_microsteps'] == ' '.join(map(str, steps))
    reading = running.driver.reading()
    assert np.rint(reading.position / rig.plant.stepper.step_m).tolist() == steps
    counts = running.board.wait_for_status()
    assert list(counts['shafts']) == steps
    assert list(counts['moved']) == np.abs(steps).tolist()

    def wound():
        position = running.arm.plant.actuator_state().position
        return np.rint(position / rig.plant.stepper.step_m).tolist() == steps

    running.until(wound)
    report = running.arm.report()
    assert report['shafts_microsteps'] == running.driver.values()['positions_microsteps']


def test_emulated_arm_ends_at_the_tip_of_the_simulated_arm(running, rig):
    running.home()
    target = np.array([0.008, -0.004, -0.004, 0.002, 0.002, -0.002])
    simulated = build_plant(rig, 0)
    for _ in range(300):
        simulated.step(target, 0.01)
    running.follow(target, 3.0)
    tip = running.arm.plant.true_section_tips()[-1, :3, 3]
    expected = simulated.true_section_tips()[-1, :3, 3]
    assert np.linalg.norm(expected - build_plant(rig, 0).true_section_tips()[-1, :3, 3]) > 0.02
    np.testing.assert_allclose(tip, expected, atol=1e-3)


def test_unplugging_stops_the_arm_and_is_reported(running):
    running.home()
    running.follow(np.full(6, 0.02), 0.5)
    assert running.arm.inject('steppers unplug') == 'steppers: unplug'
    pulled = running.clock.now_s()
    running.until(lambda: running.driver.problems())
    assert running.driver.problems()[0].since_s - pulled < 0.3

    def contraction():
        return running.arm.plant.actuator_state().position

    def still():
        before = contraction()
        running.clock.sleep(0.2)
        return np.array_equal(contraction(), before)

    running.until(still)
    assert 0.003 < contraction()[0] < 0.019
    assert running.arm.report()['faults'] == 'unplug'


def test_invalid_faults_are_refused_and_valid_ones_are_named_with_their_device(idle):
    with pytest.raises(ValueError, match="no device 'valves' here; known: steppers"):
        idle.inject('valves unplug')
    with pytest.raises(ValueError, match=r"no fault 'unplug 3'; known: unplug, .*shield N"):
        idle.inject('steppers unplug 3')
    for wrong in ('', 'steppers', 'steppers noise 1.5', 'steppers delay', 'steppers shield 3 off'):
        with pytest.raises(ValueError, match='known:'):
            idle.inject(wrong)
    for fault in ('delay 5', 'loss 0.1', 'noise 0', 'shield 2 off', 'reset', 'brownout', 'plug'):
        assert idle.inject(f'steppers {fault}') == f'steppers: {fault}'

    def restarted_twice():
        idle.advance(CHUNK_S)
        return idle.report()['board_resets'] == '2'

    wait_until(restarted_twice, 20.0, 'restarts')
    assert idle.report()['emulator'].startswith('native')


def test_ended_board_process_raises_emulation_error(idle):
    idle._board.order('quit')

    def ended():
        try:
            idle.advance(CHUNK_S)
        except EmulationError as error:
            return 'emulated steppers: native (as asked for) has ended (0)' in str(error)
        return False

    wait_until(ended, 20.0, 'end')
    idle.close()
    idle.close()
    with pytest.raises(EmulationError, match='not started'):
        idle.advance(CHUNK_S)


def test_board_process_ends_with_its_parent(tmp_path):
    script = (
        'import sys, time\n'
        'from pathlib import Path\n'
        'from softarm_ros.emulation.firmware_board import FirmwareBoard\n'
        "board = FirmwareBoard('steppers', 'native')\n"
        'board.start(Path(sys.argv[1]))\n'
        'print(board._process.pid, flush=True)\n'
        'time.sleep(60)\n'
    )
    here = str(Path(softarm_ros.__file__).parents[1])
    parent = subprocess.Popen(
        [sys.executable, '-c', script, str(tmp_path / 'port')],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, 'PYTHONPATH': here},
    )
    pid = int(parent.stdout.readline())
    assert Path(f'/proc/{pid}').exists()
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    running = Path(f'/proc/{pid}/cmdline')
    wait_until(lambda: not running.exists() or b'runner' not in running.read_bytes(), 20.0, 'end')


@pytest.mark.parametrize(('name', 'step_m'), [('cable_arm', 3.1e-5), ('trunk', 1.6e-5)])
def test_motor_step_over_10_percent_off_its_pulley_is_refused(name, step_m):
    build_emulated_arm(load_rig(name, [f'plant.stepper.step_m={step_m}']), 0)  # a gain error
    with pytest.raises(EmulationError, match=r'plant\.stepper\.step_m = 5e-05 m: .*within 10 %'):
        build_emulated_arm(load_rig(name, ['plant.stepper.step_m=5e-5']), 0)
