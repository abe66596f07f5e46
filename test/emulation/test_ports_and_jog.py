"""
`softarm ports` and `softarm jog` with the emulated devices of every rig that has devices.

In simulated time, with the time-outs of the rig files; the command with Ctrl-C runs on the
computer's clock.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('serial')
pytest.importorskip('pymodbus')
pytest.importorskip('nidaqmx')

from memory_arm import MemoryArm

from softarm_ros.cli.ports_command import show_rig
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.sensors import Sensors
from softarm_ros.runtime.jog import PERIOD_S, READY_S, Jog, JogError, JogMove

REPOSITORY = Path(__file__).parents[2]
# How to cut the line of the device that moves the arm.
CUTS = {
    'cable_arm': 'steppers unplug',
    'hydraulic_arm': 'servo kill',
    'pneumatic_arm': 'daq kill',
    'pam_arm': 'valves unplug',
    'trunk': 'dynamixel unplug',
    'fishbone_arm': 'daq kill',
}
# A fault of a device, and its report.
ARMS = {
    'cable_arm': ('steppers unplug', 'is not there'),
    'hydraulic_arm': ('servo fault distal_2 0x2310', '0x2310 continuous over-current'),
    'pneumatic_arm': ('daq open distal_chamber_2', 'open circuit'),
    'pam_arm': ('valves unplug', 'is not there'),
    'trunk': ('dynamixel overload tip_1', 'hardware 0x20 overload'),
    'fishbone_arm': ('daq open down_4', 'open circuit'),
}
# Shares of an actuator's range: the motion, and the tolerance for its end.
WAY, NEAR = 0.05, 0.02


@pytest.fixture(params=list(ARMS))
def bench(request, tmp_path):
    rig = load_rig(request.param)
    # Pose sensors are checked in test_sensor_checks.
    sensors = Sensors.of({}, rig.sensors.poses)
    running = MemoryArm(rig.model_copy(update={'sensors': sensors}), tmp_path)
    yield running
    running.close()


def jogging(bench, stopped=lambda: False):
    driver, feed = bench.driver()
    return driver, Jog(driver, bench.rig.actuator_limits(), feed, stopped, bench.clock)


def move_of(rig, share=WAY, seconds=1.5):
    limits = rig.actuator_limits()
    amount = share * float(limits.position_max[0] - limits.position_min[0])
    return JogMove(0, amount, min(amount / seconds, float(limits.max_speed[0])))


def shown(bench, test=None):
    """Return the output of `softarm ports RIG`, and whether all is well."""
    said = []
    well = show_rig(bench.rig, None, test, said.append, bench.connections)
    return said, well


def test_ports_reports_all_devices_and_moves_nothing(bench):
    before = bench.arm.plant.actuator_state().position
    said, well = shown(bench)
    assert well, '\n'.join(said)
    assert said[-1].endswith('nothing was moved')
    found = [line for line in said[:-1] if ' measures ' not in line]
    assert found and all(line.startswith('OK') for line in found)
    # The actuator states for loop and estimator, and their rate.
    (measured,) = (line for line in said if ': actuators/state, ' in line)
    rate_hz = float(measured.rpartition(', ')[2].removesuffix(' Hz'))
    assert 20.0 <= rate_hz <= 200.0
    said, well = shown(bench, test=False)
    assert well and len(said) == len(bench.rig.devices.names)
    moved = bench.arm.plant.actuator_state().position - before
    limits = bench.rig.actuator_limits()
    noise = 0.5 * NEAR * (limits.position_max - limits.position_min)  # sensor noise
    assert np.all(np.abs(moved) < noise)


def test_jog_moves_one_actuator_and_the_others_stay(bench):
    limits = bench.rig.actuator_limits()
    near = NEAR * (limits.position_max - limits.position_min)
    driver, jog = jogging(bench)
    steps = []
    try:
        jog.start()
        jog.make_ready(home=True)
        before = driver.reading().position
        move = move_of(bench.rig)
        end = jog.move(move, steps.append)
        after = driver.reading().position
    finally:
        jog.close()
    assert end.command == pytest.approx(before[0] + move.amount, abs=near[0])
    assert end.measured == pytest.approx(end.command, abs=near[0])
    assert np.all(np.abs(after - before)[1:] < near[1:])
    commands, times = np.array([(step.command, step.time_s) for step in steps]).T
    assert np.all(np.diff(commands) >= 0.0)
    # In simulated time the period is kept exactly, and so is the speed.
    assert np.diff(times) == pytest.approx(PERIOD_S, abs=1e-9)
    assert np.max(np.diff(commands) / np.diff(times)) <= move.speed * (1.0 + 1e-6)


def test_jog_at_full_speed_keeps_the_acceleration_limit(bench):
    limits = bench.rig.actuator_limits()
    _, jog = jogging(bench)
    steps = []
    try:
        jog.start()
        jog.make_ready(home=True)
        amount = move_of(bench.rig).amount
        jog.move(JogMove(0, amount, float(limits.max_speed[0])), steps.append)
    finally:
        jog.close()
    commands = np.array([step.command for step in steps])
    speeds = np.diff(commands, prepend=commands[0]) / PERIOD_S
    assert commands[-1] - commands[0] == pytest.approx(amount)
    assert np.max(speeds) <= limits.max_speed[0] * (1.0 + 1e-6)
    assert np.max(np.abs(np.diff(speeds))) <= limits.max_acceleration[0] * PERIOD_S * (1.0 + 1e-6)


def test_jog_does_not_make_up_for_a_pause(bench):
    pause_s = 0.07  # shorter than any watchdog
    _, jog = jogging(bench)
    steps = []

    def progress(step):
        steps.append(step)
        if len(steps) == 50:
            bench.clock.sleep(pause_s)

    try:
        jog.start()
        jog.make_ready(home=True)
        move = move_of(bench.rig)
        jog.move(move, progress)
    finally:
        jog.close()
    commands, times = np.array([(step.command, step.time_s) for step in steps]).T
    assert np.max(np.diff(times)) >= pause_s
    assert np.max(np.diff(commands)) <= 0.75 * pause_s * move.speed
    assert commands[-1] - commands[0] == pytest.approx(move.amount)


def test_stopped_jog_leaves_the_actuator_where_it_is(bench):
    limits = bench.rig.actuator_limits()
    range_0 = float(limits.position_max[0] - limits.position_min[0])
    steps = []
    driver, jog = jogging(bench, lambda: len(steps) > 30)
    try:
        jog.start()
        jog.make_ready(home=True)
        move = move_of(bench.rig, 3.0 * WAY, 6.0)
        with pytest.raises(JogError, match=r'^stopped$'):
            jog.move(move, steps.append)
        assert len(steps) == 31
        stopped_at = steps[-1]
        assert abs(stopped_at.command - steps[0].command) < 0.7 * abs(move.amount)
        bench.clock.sleep(0.5)
        rest = driver.reading().position[0]
        assert rest == pytest.approx(stopped_at.command, abs=NEAR * range_0)
        bench.clock.sleep(0.3)
        assert driver.reading().position[0] == pytest.approx(rest, abs=0.5 * NEAR * range_0)
    finally:
        jog.close()


def test_jog_beyond_the_limit_is_refused_and_moves_nothing(bench):
    _, jog = jogging(bench)
    steps = []
    try:
        jog.start()
        jog.make_ready(home=True)
        with pytest.raises(ValueError, match=rf'^{bench.rig.actuator_names[0]} = .* outside \['):
            jog.move(move_of(bench.rig, 1.5), steps.append)
        assert steps == []
    finally:
        jog.close()


@pytest.mark.parametrize('bench', ['trunk'], indirect=True)
def test_jog_moves_nothing_if_another_actuator_would_jump_to_its_limit(bench):
    servos = bench.rig.devices.dynamixel.servos
    wrong = servos[1].model_copy(update={'zero_deg': servos[1].zero_deg + 100.0})
    servos = (servos[0], wrong, *servos[2:])
    block = bench.rig.devices.dynamixel.model_copy(update={'servos': servos})
    devices = bench.rig.devices.model_copy(update={'dynamixel': block})
    bench.rig = bench.rig.model_copy(update={'devices': devices})
    before = bench.arm.plant.actuator_state().position
    _, jog = jogging(bench)
    steps = []
    try:
        jog.start()
        jog.make_ready(home=False)
        refused = rf'^not moved: {wrong.name} stands at -17\.4.* mm, and would jump .*--home'
        with pytest.raises(JogError, match=refused):
            jog.move(move_of(bench.rig), steps.append)
    finally:
        jog.close()
    bench.clock.sleep(0.5)
    assert steps == []
    assert bench.arm.plant.actuator_state().position == pytest.approx(before, abs=1e-5)


def test_jog_is_not_ready_without_homing_unless_none_is_needed(bench):
    began, limit_s = bench.clock.now_s(), 1.0
    driver, jog = jogging(bench, lambda: bench.clock.now_s() - began > limit_s)
    try:
        jog.start()
        # Gauge pressures and absolute encoders need no homing.
        if bench.rig.devices.DRIVING in ('daq', 'dynamixel'):
            jog.make_ready(home=False)
            assert bench.clock.now_s() - began < limit_s
        else:
            with pytest.raises(JogError, match=r'^stopped before anything moved$'):
                jog.make_ready(home=False)
            assert 'not homed' in driver.not_ready()
    finally:
        jog.close()


@pytest.mark.parametrize('bench', ['hydraulic_arm'], indirect=True)
def test_jog_stopped_while_homing_moves_the_chambers_says_so(bench):
    driver, jog = jogging(bench, lambda: driver.values()['loop'].startswith('homing'))
    try:
        jog.start()
        with pytest.raises(JogError, match=r'^stopped while homing$'):
            jog.make_ready(home=True)
    finally:
        jog.close()


@pytest.mark.parametrize('bench', ['cable_arm'], indirect=True)
def test_jog_gives_up_after_ready_s_and_names_the_cause(bench):
    _, jog = jogging(bench)
    began = bench.clock.now_s()
    try:
        jog.start()
        with pytest.raises(JogError, match='not homed'):
            jog.make_ready(home=False)
        assert bench.clock.now_s() - began == pytest.approx(READY_S, abs=0.1)
    finally:
        jog.close()


def test_cut_line_ends_a_jog_within_half_a_second(bench):
    _, jog = jogging(bench)
    steps, cut_s = [], []

    def progress(step):
        steps.append(step)
        if len(steps) == 30:
            bench.arm.inject(CUTS[bench.rig.name])
            cut_s.append(bench.clock.now_s())

    try:
        jog.start()
        jog.make_ready(home=True)
        move = move_of(bench.rig, 3.0 * WAY, 6.0)
        with pytest.raises(JogError, match=r'link|lost|daq|outputs|inputs|grpc'):
            jog.move(move, progress)
        assert bench.clock.now_s() - cut_s[0] < 0.5
        assert abs(steps[-1].command - steps[0].command) < 0.9 * abs(move.amount)
    finally:
        jog.close()


def failure_of_a_late_jog(bench, home, fault=None):
    """Return why jog fails if this process waits 0.3 s for the processor, after a fault."""
    _, jog = jogging(bench)
    steps = []

    def progress(step):
        steps.append(step)
        if len(steps) == 30:
            if fault is not None:
                bench.arm.inject(fault)
            bench.clock.sleep(0.3)

    try:
        jog.start()
        jog.make_ready(home=home)
        with pytest.raises(JogError) as raised:
            jog.move(move_of(bench.rig, 3.0 * WAY, 6.0), progress)
    finally:
        jog.close()
    return str(raised.value)


@pytest.mark.parametrize('bench', ['trunk'], indirect=True)
def test_jog_does_not_blame_a_late_computer_for_a_fault_of_the_device(bench):
    said = failure_of_a_late_jog(bench, home=False, fault='dynamixel overload tip_1')
    assert 'hardware 0x20 overload' in said
    assert 'too slow' not in said


@pytest.mark.parametrize('bench', ['cable_arm'], indirect=True)
def test_jog_reports_a_computer_too_slow_for_the_board_watchdog(bench):
    said = failure_of_a_late_jog(bench, home=True)
    assert re.search(r'computer is too slow: jog was late by [23]\d\d ms', said)


@pytest.mark.parametrize('bench', ['cable_arm'], indirect=True)
def test_jog_fails_if_the_driver_refuses_near_the_end(bench):
    driver, feed = bench.driver()
    steps, follow = [], driver.follow
    # Near the end of the motion: it ends before the refusal has lasted too long.
    driver.follow = lambda command: 'resting' if len(steps) > 100 else follow(command)
    jog = Jog(driver, bench.rig.actuator_limits(), feed, lambda: False, bench.clock)
    try:
        jog.start()
        jog.make_ready(home=True)
        with pytest.raises(JogError, match='not followed: resting'):
            jog.move(move_of(bench.rig, seconds=1.0), steps.append)
    finally:
        jog.close()


def test_ports_reports_a_device_fault(bench):
    fault, words = ARMS[bench.rig.name]
    bench.arm.inject(fault)
    bench.clock.sleep(0.05)
    said, well = shown(bench)
    assert not well
    assert words in '\n'.join(said)


@pytest.mark.wall_clock
def test_jog_command_stops_at_ctrl_c():
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
            if line.startswith('  1.'):  # after one second it moves
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
