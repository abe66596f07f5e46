"""The stepper board on the simulated cable arm: coils turn shafts, shafts wind cables."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import softarm_ros
from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.emulation.emulated_cable_arm import EmulatedCableArm
from softarm_ros.emulation.firmware_build import FirmwareBuildError, built
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.addresses import addressed

CHUNK_S = 0.002


def until(condition, timeout=20.0, what=lambda: ''):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.002)


class Running:
    """An emulated arm whose time goes by, and the driver of the rig."""

    def __init__(self, rig, folder, emulator):
        step_m = rig.plant.stepper.step_m
        motors = rig.devices.steppers.motors
        self.arm = EmulatedCableArm(rig.simulated_arm(0), step_m, motors, emulator)
        self.arm.start(folder)
        self.driver = rig.actuator_driver(addressed(rig.devices, folder))
        self.lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._pass_time, daemon=True)
        self._thread.start()

    def _pass_time(self):
        origin = time.monotonic() - self.arm.time_s
        while not self._stop.is_set():
            with self.lock:
                while self.arm.time_s < time.monotonic() - origin:
                    self.arm.advance(CHUNK_S)
                    if time.monotonic() - origin > self.arm.time_s + 0.1:
                        origin = time.monotonic() - self.arm.time_s
            time.sleep(0.001)

    def home(self):
        self.driver.start()
        until(lambda: 'not homed' in self.driver.not_ready(), what=self.driver.not_ready)
        self.driver.home()
        until(lambda: not self.driver.not_ready(), what=self.driver.not_ready)

    def follow(self, target, duration):
        end = time.monotonic() + duration
        while time.monotonic() < end:
            refusal = self.driver.follow(target)
            assert refusal is None, refusal
            time.sleep(0.01)

    def close(self):
        self.driver.close()
        self._stop.set()
        self._thread.join()
        self.arm.close()


@pytest.fixture(scope='module')
def rig():
    loaded = load_rig('cable_arm')
    loaded.simulated_arm(0).step(np.zeros(6), CHUNK_S)  # compiled now, not in real time
    return loaded


@pytest.fixture(params=['native', 'simavr'])
def running(rig, request, tmp_path):
    try:
        built('steppers', request.param)
    except FirmwareBuildError as error:
        pytest.skip(str(error))
    started = Running(rig, tmp_path, request.param)
    yield started
    started.close()


@pytest.fixture
def idle(rig, tmp_path):
    """An arm with a board, and nobody to pass time."""
    motors = rig.devices.steppers.motors
    arm = EmulatedCableArm(rig.simulated_arm(0), rig.plant.stepper.step_m, motors, 'native')
    arm.start(tmp_path)
    yield arm
    arm.close()


def test_steps_are_the_same_in_driver_board_coils_and_arm(running, rig):
    running.home()
    target = np.array([0.008, -0.004, -0.0031, 0.0052, 0.0, -0.002])
    running.follow(target, 1.5)
    steps = [round(value / rig.plant.stepper.step_m) for value in target]
    # Told, said by the board in a state, turned on the bench, wound in the arm.
    assert running.driver.values()['targets_microsteps'] == ' '.join(map(str, steps))
    reading = running.driver.reading()
    assert np.rint(reading.position / rig.plant.stepper.step_m).tolist() == steps
    with running.lock:
        counts = running.arm._board.wait_for_status()
    assert list(counts['shafts']) == steps
    assert list(counts['moved']) == np.abs(steps).tolist()

    def wound():
        with running.lock:
            position = running.arm.plant.actuator_state().position
        return np.rint(position / rig.plant.stepper.step_m).tolist() == steps

    until(wound)
    report = running.arm.report()
    assert report['shafts_microsteps'] == running.driver.values()['positions_microsteps']


def test_the_arm_ends_where_the_simulated_one_does(running, rig):
    running.home()
    target = np.array([0.008, -0.004, -0.004, 0.002, 0.002, -0.002])
    simulated = rig.simulated_arm(0)
    for _ in range(300):
        simulated.step(target, 0.01)
    running.follow(target, 3.0)
    with running.lock:
        tip = running.arm.plant.true_section_tips()[-1, :3, 3]
    expected = simulated.true_section_tips()[-1, :3, 3]
    assert np.linalg.norm(expected - rig.simulated_arm(0).true_section_tips()[-1, :3, 3]) > 0.02
    np.testing.assert_allclose(tip, expected, atol=1e-3)


def test_a_pulled_plug_stops_the_arm_itself(running):
    running.home()
    running.follow(np.full(6, 0.02), 0.5)
    with running.lock:
        assert running.arm.inject('steppers unplug') == 'steppers: unplug'
    pulled = time.monotonic()
    until(lambda: running.driver.problems())
    assert running.driver.problems()[0].since_s - pulled < 0.3

    def contraction():
        with running.lock:
            return running.arm.plant.actuator_state().position

    def still():
        before = contraction()
        time.sleep(0.2)
        return np.array_equal(contraction(), before)

    until(still)
    assert 0.003 < contraction()[0] < 0.019
    assert running.arm.report()['faults'] == 'unplug'


def test_faults_are_named_with_their_device(idle):
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

    until(restarted_twice, what=idle.report)
    assert idle.report()['emulator'].startswith('native')


def test_a_board_that_has_ended_is_an_error(idle):
    idle._board.order('quit')

    def ended():
        try:
            idle.advance(CHUNK_S)
        except EmulationError as error:
            return 'emulated steppers: native (as asked for) has ended (0)' in str(error)
        return False

    until(ended)
    idle.close()
    idle.close()
    with pytest.raises(EmulationError, match='not started'):
        idle.advance(CHUNK_S)


def test_a_board_ends_with_the_process_that_started_it(tmp_path):
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
    until(lambda: not running.exists() or b'runner' not in running.read_bytes())
