"""Stepper boards: the AVR binary in simavr, and the core compiled here, in simulated time.

Reports of the firmware are compared with the I2C traffic at the emulated motor shields.
"""

import math
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from boards import Host, in_memory
from firmware_made import FIRMWARE, FOLDER
from memory_board import avr_binary

from softarm_ros.drivers import messages
from softarm_ros.drivers.messages import Cause, ResetCause, Result, State, Type


@pytest.fixture(params=['native', 'avr'])
def board(request):
    elf = None if request.param == 'native' else avr_binary()
    with in_memory('steppers', elf) as (port, bench):
        host = Host(port)
        yield host, bench
        host.close()


def circle(t: float) -> list[int]:
    """Return positions of six cables for a slow circle: about 500 microsteps/s at most."""
    return [
        round(400 * (1 - math.cos(1.2 * t + m))) - round(400 * (1 - math.cos(m))) for m in range(6)
    ]


def test_handshake_reports_board_version_and_boot(board):
    host, _ = board
    reply = host.hello()
    assert (reply.version, reply.kind) == (messages.PROTOCOL_VERSION, messages.Kind.STEPPERS)
    assert reply.channels == messages.MOTORS
    assert reply.reset_cause is ResetCause.POWER
    assert host.hello().boot_id == reply.boot_id


def test_targets_are_reached_with_every_step_executed_once(board):
    host, bench = board
    host.hello()
    host.prepare_steppers()
    targets = [100, -100, 1, 0, 867, -528]
    host.follow(lambda _: targets, 2.5)
    assert host.state.positions == tuple(targets)
    assert host.state.moving == 0
    seen = bench.status()
    assert seen['shafts'] == targets
    assert seen['moved'] == [abs(target) for target in targets]  # no step twice, none backwards
    assert seen['jumps'] == [0] * 6


def test_circle_at_100_hz_is_followed_without_lost_frames_or_steps(board):
    host, bench = board
    host.hello()
    host.prepare_steppers(acceleration=20000)
    host.follow(circle, 5.0)
    host.follow(lambda _: circle(5.0), 0.3)
    assert list(host.state.positions) == circle(5.0)
    assert bench.status()['shafts'] == circle(5.0)
    assert bench.status()['jumps'] == [0] * 6
    counters = host.counters()
    assert (counters.lost, counters.corrupt, counters.malformed, counters.refused) == (0, 0, 0, 0)
    received = host.receiver.counters
    assert received.corrupt == received.malformed == 0
    assert received.lost == counters.skipped_states
    assert received.frames > 500


@pytest.mark.parametrize('how', ['silence', 'unplugged'])
def test_motors_stop_within_250_ms_without_a_host(board, how):
    host, bench = board
    host.hello()
    host.prepare_steppers()
    host.follow(lambda _: [5000, -5000] * 3, 1.0)
    host.send(Type.TARGETS, messages.targets([5000, -5000] * 3))
    last = host.clock.now_s()
    if how == 'unplugged':
        host.close()
    while host.clock.now_s() < last + 0.6:
        bench.read()
        host.clock.sleep(0.005)
    stood = bench.changes[-1][0] - last
    assert 0.15 < stood < 0.25, f'stood after {1e3 * stood:.0f} ms'
    assert 300 < bench.shafts[0] < 900
    if how == 'unplugged':
        host = Host(host.port)
        reply = host.hello()
        host.wait(lambda m: isinstance(m, messages.StepperState))
        assert reply.reset_cause is ResetCause.POWER  # the board kept running
    else:
        host.wait_state(State.STOPPED)
    assert (host.state.state, host.state.cause) == (State.STOPPED, Cause.WATCHDOG)
    assert list(host.state.positions) == bench.shafts
    assert host.state.zeroed == 0x3F
    # It continues from there on command, without another zero.
    assert host.ask(Type.RESET) is Result.OK
    assert host.ask(Type.ARM) is Result.OK
    host.follow(lambda _: [0] * 6, 2.0)
    assert bench.status()['shafts'] == [0] * 6
    host.close()


def test_stop_frame_stops_the_motors_within_70_ms(board):
    host, bench = board
    host.hello()
    host.prepare_steppers()
    host.follow(lambda _: [5000] * 6, 0.6)
    host.send(Type.STOP)
    sent = host.clock.now_s()
    while host.clock.now_s() < sent + 0.3:
        host.poll()
        bench.read()
        host.clock.sleep(0.002)
    assert bench.changes[-1][0] - sent < 0.07
    assert (host.state.state, host.state.cause) == (State.STOPPED, Cause.STOP_FRAME)
    assert list(host.state.positions) == bench.shafts
    host.send(Type.TARGETS, messages.targets([0] * 6))
    refused = host.wait(lambda m: isinstance(m, messages.Ack) and m.type == Type.TARGETS)
    assert refused.result is Result.STATE


def test_reset_is_reported_and_frames_for_the_old_boot_are_rejected(board):
    host, bench = board
    first = host.hello().boot_id
    host.prepare_steppers()
    host.follow(lambda _: [300] * 6, 0.5)
    bench.order('reset')
    host.wait_state(State.BOOT)
    assert host.state.zeroed == 0
    shafts = bench.status()['shafts']
    for _ in range(20):
        host.send(Type.TARGETS, messages.targets([0] * 6))
        host.send(Type.ARM)
        host.poll()
        host.clock.sleep(0.01)
    assert host.counters().corrupt == 40
    reply = host.hello()
    assert reply.boot_id != first
    assert reply.reset_cause is ResetCause.PIN or reply.reset_cause is ResetCause.POWER
    assert host.ask(Type.ARM) is Result.NOT_READY
    assert bench.status()['shafts'] == shafts


def test_unpowered_shield_is_a_fault_and_needs_a_new_zero(board):
    host, bench = board
    host.hello()
    host.prepare_steppers()
    host.follow(lambda _: [500] * 6, 0.4)
    bench.order('shield 1 off')
    host.follow(lambda _: [500] * 6, 0.2)
    assert (host.state.state, host.state.cause) == (State.FAULT, Cause.COIL_BUS)
    assert host.state.zeroed == 0
    assert list(host.state.positions) == bench.status()['shafts']
    assert host.ask(Type.RESET) is Result.OK
    assert host.ask(Type.ARM) is Result.NOT_READY
    assert host.ask(Type.ZERO, messages.zero(0x3F, [0] * 6)) is Result.COIL_BUS
    bench.order('shield 1 on')
    assert host.ask(Type.ZERO, messages.zero(0x3F, [0] * 6)) is Result.OK
    assert host.ask(Type.ARM) is Result.OK


def test_noise_between_frames_is_counted_and_moves_nothing(board):
    host, bench = board
    host.hello()
    host.prepare_steppers()
    noise = os.urandom(3000)
    zeros = messages.targets([0] * 6)
    for start in range(0, len(noise), 30):
        host.line.write(noise[start : start + 30] + b'\0')
        host.send(Type.TARGETS, zeros)
        host.poll()
        host.clock.sleep(0.01)
    host.wait(lambda m: isinstance(m, messages.StepperState))
    assert host.state.state is State.RUNNING
    counters = host.counters()
    assert counters.corrupt + counters.malformed >= 100
    assert counters.lost == 0
    assert bench.status()['moved'] == [0] * 6


def test_noisy_line_loses_frames_but_no_steps(board):
    host, bench = board
    host.hello()
    host.prepare_steppers()
    bench.order('line noise 0.0005')
    bench.order('line loss 0.0002')
    host.follow(lambda t: [round(300 * t)] * 6, 3.0)
    bench.order('line noise 0')
    bench.order('line loss 0')
    host.follow(lambda _: [900] * 6, 0.5)
    assert host.state.state is State.RUNNING
    assert host.state.positions == (900,) * 6
    assert bench.status()['shafts'] == [900] * 6
    counters = host.counters()
    assert counters.corrupt + counters.malformed > 0
    assert counters.lost > 0
    assert host.receiver.counters.corrupt + host.receiver.counters.malformed > 0


def test_delayed_line_adds_latency_without_loss(board):
    host, bench = board
    host.hello()
    bench.order('line delay 30')
    host.clock.sleep(0.1)
    sent = host.clock.now_s()
    host.send(Type.PING, messages.ping(1))
    host.wait(lambda m: isinstance(m, messages.Pong))
    assert 0.0599 <= host.clock.now_s() - sent < 0.07
    host.prepare_steppers()
    host.follow(lambda _: [100] * 6, 0.8)
    assert bench.status()['shafts'] == [100] * 6
    assert host.counters().lost == 0


def test_unplugging_raises_a_port_error_and_stops_the_motors(board):
    host, bench = board
    boot = host.hello().boot_id
    host.prepare_steppers()
    host.follow(lambda _: [5000] * 6, 0.6)
    bench.order('line unplug')
    pulled = host.clock.now_s()
    with pytest.raises(OSError):
        while host.clock.now_s() < pulled + 1.0:
            host.send(Type.TARGETS, messages.targets([5000] * 6))
            host.poll()
            host.clock.sleep(0.01)
    assert host.clock.now_s() - pulled < 0.3
    assert not host.port.exists()
    host.clock.sleep(0.3)
    bench.read()
    assert bench.changes[-1][0] - pulled < 0.26
    bench.order('line plug')
    while not host.port.exists():
        host.clock.sleep(0.01)
    again = Host(host.port)
    assert again.hello().boot_id == boot
    again.wait_state(State.STOPPED)
    assert list(again.state.positions) == bench.status()['shafts']
    again.close()


def test_opening_the_port_resets_a_mega():
    with in_memory('steppers', avr_binary(), reset_on_open=True) as (port, bench):
        first = Host(port)
        boot = first.hello().boot_id
        first.prepare_steppers()
        first.follow(lambda _: [100] * 6, 0.5)
        first.close()
        bench.clock.sleep(0.1)
        again = Host(port)
        assert again.hello().boot_id != boot
        again.wait_state(State.IDLE)
        assert again.state.zeroed == 0
        assert again.ask(Type.ARM) is Result.NOT_READY
        assert bench.status()['shafts'] == [100] * 6  # the shields still hold
        again.close()


def test_sketch_folder_compiles_outside_the_repository(tmp_path):
    """Copied out of the repository, it has everything that the Arduino tools need."""
    avr_binary()
    sketch = tmp_path / 'steppers'
    shutil.copytree(FOLDER / 'sketch' / 'steppers', sketch)
    assert not [path for path in sketch.rglob('*') if path.is_symlink()]
    core = Path('/usr/share/arduino/hardware/arduino/avr')
    flags = ['-mmcu=atmega2560', '-DF_CPU=16000000L', '-DDECIMAL_DIG=__DECIMAL_DIG__', '-Os', '-w']
    flags += [f'-I{core}/{sub}' for sub in ('cores/arduino', 'variants/mega')]
    made = ['avr-g++', '-std=gnu++11', *flags, '-include', 'Arduino.h', '-x', 'c++', '-c']
    subprocess.run([*made, 'steppers.ino', '-o', 'steppers.o'], cwd=sketch, check=True)
    for source in sorted(sketch.rglob('*.c')):
        subprocess.run(
            ['avr-gcc', '-std=gnu11', *flags, '-c', str(source), '-o', 'core.o'],
            cwd=sketch,
            check=True,
        )
    for source in (sketch / 'src' / 'core').iterdir():
        assert source.read_text() == (FIRMWARE / 'core' / source.name).read_text()
