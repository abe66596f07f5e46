"""`softarm ports` and `softarm jog` at the emulated devices of every rig that has devices."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('serial')
pytest.importorskip('pymodbus')
pytest.importorskip('nidaqmx')

from softarm_ros.cli.ports_command import show_rig
from softarm_ros.drivers.actuator_driver import FedByPressures
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.addresses import addressed
from softarm_ros.runtime.assembly import build_actuator_driver
from softarm_ros.runtime.emulated_bench import EmulatedBench
from softarm_ros.runtime.jog import Jog, JogError, JogMove
from softarm_ros.runtime.pressure_feed import PressureFeed

pytestmark = pytest.mark.wall_clock

REPOSITORY = Path(__file__).parents[2]
# How to cut the line of the device that moves the arm, and how to mend it.
LINES = {
    'cable_arm': ('steppers unplug', 'steppers plug'),
    'hydraulic_arm': ('servo kill', 'servo revive'),
    'pneumatic_arm': ('daq kill', 'daq revive'),
    'pam_arm': ('valves unplug', 'valves plug'),
}
# A fault of a device, and what is said of it.
ARMS = {
    'cable_arm': ('steppers unplug', 'is not there'),
    'hydraulic_arm': ('servo fault distal_2 0x2310', '0x2310 continuous over-current'),
    'pneumatic_arm': ('daq open distal_chamber_2', 'open circuit'),
    'pam_arm': ('valves unplug', 'is not there'),
}
# Asked here is what a jog does, not how late a computer may be that runs both ends of the line.
PATIENT_DAQ = ['devices.daq.call_timeout_s=0.8', 'devices.daq.read_margin_s=0.5']
PATIENT = {
    'hydraulic_arm': [
        'devices.servo.pressure_timeout_s=0.8',
        'devices.servo.link_timeout_s=0.8',
        'devices.servo.response_timeout_s=0.4',
        'devices.servo.command_timeout_s=0.8',
        *PATIENT_DAQ,
    ],
    'pneumatic_arm': ['devices.daq.command_timeout_s=1.0', *PATIENT_DAQ],
}
# Of the range of an actuator: how far, and how near it must come.
WAY, NEAR = 0.05, 0.02


@pytest.fixture(scope='module', params=list(ARMS))
def bench(request):
    rig = load_rig(request.param, PATIENT.get(request.param, []))
    with EmulatedBench(rig) as running:
        yield rig, running


def jogging(rig, folder, stopped=lambda: False):
    driver = build_actuator_driver(rig, folder)
    feed = None
    if isinstance(driver, FedByPressures):
        feed = PressureFeed(addressed(rig.devices, folder).daq, rig.actuator_names, driver)
    return driver, Jog(driver, rig.actuator_limits(), feed, stopped)


def move_of(rig, share=WAY, seconds=1.5):
    limits = rig.actuator_limits()
    amount = share * float(limits.position_max[0] - limits.position_min[0])
    return JogMove(0, amount, min(amount / seconds, float(limits.max_speed[0])))


def test_all_devices_answer_and_nothing_moves(bench):
    rig, running = bench
    said = []
    assert show_rig(rig, running.folder, None, said.append), '\n'.join(said)
    assert said[-1].endswith('nothing was moved')
    assert all(line.startswith('OK') for line in said[:-1])
    assert show_rig(rig, running.folder, False, said.append)


def test_one_actuator_goes_and_the_others_stay(bench):
    rig, running = bench
    limits = rig.actuator_limits()
    near = NEAR * (limits.position_max - limits.position_min)
    driver, jog = jogging(rig, running.folder)
    steps = []
    try:
        jog.start()
        jog.make_ready(home=True)
        before = driver.reading().position
        move = move_of(rig)
        end = jog.move(move, steps.append)
        after = driver.reading().position
    finally:
        jog.close()
    assert end.command == pytest.approx(before[0] + move.amount, abs=near[0])
    assert end.measured == pytest.approx(end.command, abs=near[0])
    assert np.all(np.abs(after - before)[1:] < near[1:])
    commands = np.array([step.command for step in steps])
    assert np.all(np.diff(commands) >= 0.0)
    assert len(steps) > 20
    rate = np.diff(commands) / np.maximum(np.diff([step.time_s for step in steps]), 1e-3)
    assert np.max(rate) < 1.2 * move.speed


def test_ctrl_c_stops_it_where_it_is(bench):
    rig, running = bench
    limits = rig.actuator_limits()
    range_0 = float(limits.position_max[0] - limits.position_min[0])
    steps = []
    driver, jog = jogging(rig, running.folder, lambda: len(steps) > 30)
    try:
        jog.start()
        jog.make_ready(home=True)
        move = move_of(rig, 3.0 * WAY, 6.0)
        with pytest.raises(JogError, match=r'^stopped$'):
            jog.move(move, steps.append)
        stopped_at = steps[-1]
        assert abs(stopped_at.command - steps[0].command) < 0.7 * abs(move.amount)
        time.sleep(0.5)
        rest = driver.reading().position[0]
        assert rest == pytest.approx(stopped_at.command, abs=NEAR * range_0)
        time.sleep(0.3)
        assert driver.reading().position[0] == pytest.approx(rest, abs=0.5 * NEAR * range_0)
    finally:
        jog.close()


def test_beyond_its_limit_nothing_moves(bench):
    rig, running = bench
    _, jog = jogging(rig, running.folder)
    steps = []
    try:
        jog.start()
        jog.make_ready(home=True)
        with pytest.raises(ValueError, match=rf'^{rig.actuator_names[0]} = .* outside \['):
            jog.move(move_of(rig, 1.5), steps.append)
        assert steps == []
    finally:
        jog.close()


def test_the_line_is_cut_in_mid_motion(bench):
    rig, running = bench
    cut, mend = LINES[rig.name]
    _, jog = jogging(rig, running.folder)
    steps, cut_s = [], []

    def progress(step):
        steps.append(step)
        if len(steps) == 30:
            running.inject(cut)
            cut_s.append(time.monotonic())

    try:
        jog.start()
        jog.make_ready(home=True)
        move = move_of(rig, 3.0 * WAY, 6.0)
        with pytest.raises(JogError, match=r'link|lost|daq|outputs|inputs|grpc'):
            jog.move(move, progress)
        assert time.monotonic() - cut_s[0] < 2.0
        assert abs(steps[-1].command - steps[0].command) < 0.9 * abs(move.amount)
    finally:
        jog.close()
        running.inject(mend)


def test_what_is_wrong_is_named(bench):  # the last: it breaks the device
    rig, running = bench
    fault, words = ARMS[rig.name]
    running.inject(fault)
    end = time.monotonic() + 10.0
    while True:
        said = []
        well = show_rig_or_absent(rig, running.folder, said)
        # A plug pulled in mid-probe is said in other words.
        if words in '\n'.join(said) or time.monotonic() > end:
            break
    assert not well
    assert words in '\n'.join(said)


def show_rig_or_absent(rig, folder, said):
    """A board that is unplugged has no address in the folder: ask at the one it had."""
    devices = rig.devices
    for name in devices.names:
        if name in ('steppers', 'valves'):
            port = getattr(devices, name).model_copy(update={'port': str(folder / name)})
            rig = rig.model_copy(update={'devices': devices.model_copy(update={name: port})})
            return show_rig(rig, None, None, said.append)
    return show_rig(rig, folder, None, said.append)


def test_the_command_stops_at_ctrl_c():
    process = subprocess.Popen(
        [
            *(sys.executable, '-m', 'softarm_ros.cli', 'jog', 'cable_arm', 'proximal_1'),
            *('20', '--speed', '1', '--home', '--backend', 'emulated'),
        ],
        cwd=REPOSITORY,
        env={**os.environ, 'PYTHONPATH': str(REPOSITORY), 'ROS_DOMAIN_ID': '171'},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    said = []
    try:
        for line in process.stdout:
            said.append(line)
            if line.startswith('  1.'):  # second, it moves
                # As a terminal does: to all processes of the group, the emulated devices too.
                os.killpg(process.pid, signal.SIGINT)
                break
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert process.returncode == 130, ''.join(said) + rest
    assert 'proximal_1: stopped' in rest
