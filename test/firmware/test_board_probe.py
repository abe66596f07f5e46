"""Probe of a board: its report, its errors, and that it moves nothing."""

import os
import pty
import struct
import threading

import pytest
import serial
from boards import Host, in_memory, running
from firmware_made import build

from softarm_ros.drivers import board_probe, messages
from softarm_ros.drivers.board_probe import PINGS, probe_board
from softarm_ros.drivers.connections import Connections
from softarm_ros.drivers.messages import Kind, ResetCause, State, Type
from softarm_ros.drivers.problems import DriverError


@pytest.fixture
def steppers():
    with in_memory('steppers') as (port, bench):
        yield port, bench


def probed(bench):
    return probe_board('memory', connections=Connections(bench.clock, bench.board.open_port))


@pytest.mark.parametrize('kind', ['steppers', 'valves'])
def test_probe_reports_identity_state_and_ping(kind):
    with in_memory(kind) as (port, bench):
        report = probed(bench)
        host = Host(port)
        assert host.hello() == report.identity
        host.close()
    assert report.identity.kind is Kind[kind.upper()]
    assert report.identity.reset_cause in set(ResetCause)
    assert report.state.state is State.IDLE
    assert report.ping.count == PINGS
    assert 0.0 < report.ping.p50_s <= report.ping.p99_s < 0.005
    assert report.damaged == 0


def test_probe_moves_nothing_and_a_stopped_board_stays_stopped(steppers):
    port, bench = steppers
    host = Host(port)
    host.hello()
    host.prepare_steppers()
    host.follow(lambda _: [200] * 6, 0.9)
    assert host.ask(Type.STOP) is messages.Result.OK
    host.close()
    before = bench.status()
    report = probed(bench)
    assert report.state.state is State.STOPPED
    assert report.state.zeroed == 0x3F
    assert bench.status() == before


def test_probe_is_refused_while_a_board_moves_and_the_motion_continues(steppers):
    port, bench = steppers
    host = Host(port)
    host.hello()
    host.prepare_steppers()
    done = bench.clock.event()

    def drive():
        while not done.wait(0.01):
            host.send(Type.TARGETS, messages.targets([5000] * 6))

    driving = bench.clock.task(drive, 'drive')
    driving.start()
    bench.clock.sleep(0.1)
    with pytest.raises(DriverError, match='moves for another program'):
        probed(bench)
    looking = Host(port)
    looking.wait_state(State.RUNNING)
    done.set()
    driving.join()
    looking.close()


def test_probe_refuses_a_port_in_use(tmp_path):
    command = (build('native_runner'), '--kind', 'steppers')
    with (
        running(tmp_path, *command) as (port, _),
        serial.Serial(str(port), exclusive=True),
        pytest.raises(DriverError, match='in use by another program'),
    ):
        probe_board(str(port))


def test_probe_names_a_different_protocol_version(steppers, monkeypatch):
    monkeypatch.setattr(board_probe.messages, 'PROTOCOL_VERSION', 2)
    with pytest.raises(DriverError, match='speaks protocol 1, this driver 2'):
        probed(steppers[1])


def test_probe_names_the_version_of_a_board_with_states_of_another_form(steppers, monkeypatch):
    monkeypatch.setattr(messages, 'PROTOCOL_VERSION', 2)
    monkeypatch.setitem(messages._LAYOUTS, Type.STEPPER_STATE, struct.Struct('<IBB'))
    with pytest.raises(DriverError, match=r'speaks protocol 1, this driver 2: flash its firmware'):
        probed(steppers[1])


def test_probe_counts_damaged_frames_and_missing_pings(steppers):
    _, bench = steppers
    bench.order('line noise 0.003')
    report = probed(bench)
    assert report.damaged > 0
    assert report.ping.count < PINGS


def test_probe_reports_a_board_unplugged_during_the_probe(steppers):
    _, bench = steppers
    pulled = bench.clock.event()
    pull = bench.clock.task(lambda: (pulled.wait(0.01), bench.order('line unplug')), 'pull')
    pull.start()
    with pytest.raises(DriverError, match=r'^memory: the port is gone'):
        probed(bench)
    pull.join()


def test_probe_reports_no_answer_from_a_foreign_device():
    ours, theirs = pty.openpty()
    done = threading.Event()

    def talk():
        while not done.wait(0.05):
            os.write(ours, b'ok T:21.3\n')

    talking = threading.Thread(target=talk)
    talking.start()
    try:
        with pytest.raises(DriverError, match=r'no answer at 115200 baud \(\d+ bytes came'):
            probe_board(os.ttyname(theirs), [115200])
    finally:
        done.set()
        talking.join()
        os.close(ours)
        os.close(theirs)


def test_probe_reports_a_missing_port(tmp_path):
    with pytest.raises(DriverError, match='is not there'):
        probe_board(str(tmp_path / 'ttyACM9'))
