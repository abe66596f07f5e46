"""Gripper: its sequence alone, and with the emulated DAQ and a chamber that fills."""

import numpy as np
import pytest
from daq_cases import daq_config
from hypothesis import example, given, settings
from hypothesis import strategies as st
from manual_clock import ManualClock

pytest.importorskip('nidaqmx', reason='nidaqmx is not installed (extra hardware)')
pytest.importorskip('grpc', reason='grpcio is not installed (extra hardware)')

from daq_memory import MemoryDaq

from softarm_ros.drivers.daq import DaqDriver
from softarm_ros.drivers.gripper import GripperDriver
from softarm_ros.drivers.gripper_logic import GripperDriveConfig, GripperLogic, GripperPhase

CONFIG = GripperDriveConfig(
    pressure_output='gripper_pressure',
    vacuum_line='vacuum',
    pressure_input='gripper',
    open_pressure_Pa=-30e3,
    close_pressure_Pa=60e3,
    settle_s=0.3,
    action_timeout_s=1.0,
)
SENSOR = {
    'name': 'gripper',
    'channel': 'Dev1/ai7',
    'scale': 50e3,
    'zero': -200e3,
    'unit': 'Pa',
    'open_below_V': 0.5,
}


# -- the sequence


@settings(max_examples=150, derandomize=True, deadline=None)
@example([(-1.0, 0.0), (0.0, 0.0), (1.0, 0.0)])  # with a command of zero in between
@given(st.lists(st.tuples(st.floats(-5e4, 9e4), st.floats(0.0, 0.4)), min_size=1, max_size=12))
def test_pressure_and_vacuum_never_overlap_and_are_separated_by_a_pause(commands):
    logic = GripperLogic(CONFIG)
    now, last_pressure, last_vacuum = 0.0, -np.inf, -np.inf
    for target, wait in commands:
        logic.command(target, now)
        for _ in range(int(wait / 0.01) + 1):
            logic.step(now, None)
            levels = logic.levels
            assert levels.pressure_Pa >= 0.0 >= levels.vacuum_Pa
            assert levels.pressure_Pa == 0.0 or levels.vacuum_Pa == 0.0
            if levels.pressure_Pa > 0.0:
                last_pressure = now
                assert now - last_vacuum >= CONFIG.changeover_s - 0.011
            if levels.vacuum_Pa < 0.0:
                last_vacuum = now
                assert now - last_pressure >= CONFIG.changeover_s - 0.011
            now += 0.01
    for _ in range(150):
        now += 0.01
        logic.step(now, None)
    assert logic.phase is GripperPhase.DONE
    assert logic.levels.pressure_Pa + logic.levels.vacuum_Pa == commands[-1][0]


def test_vacuum_waits_until_the_pressure_has_dropped():
    logic = GripperLogic(CONFIG)
    logic.command(60e3, 0.0)
    assert logic.step(0.1, 60e3) is GripperPhase.DONE
    logic.command(-30e3, 1.0)
    assert logic.step(1.5, 20e3) is GripperPhase.CHANGEOVER
    assert logic.levels.vacuum_Pa == 0.0
    assert logic.step(1.6, 4e3) is GripperPhase.MOVING
    assert logic.levels.vacuum_Pa == -30e3
    assert logic.step(1.7, -40e3) is GripperPhase.DONE


@pytest.mark.parametrize('measured', [20e3, 80e3])
def test_unreached_pressure_times_out_and_stays_commanded(measured):
    logic = GripperLogic(CONFIG)
    logic.command(60e3, 0.0)
    assert logic.step(0.99, measured) is GripperPhase.MOVING
    assert logic.step(1.01, measured) is GripperPhase.TIMED_OUT
    assert logic.levels.pressure_Pa == 60e3


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'vacuum_line': None}, 'exactly one of'),
        ({'vacuum_output': 'x'}, 'exactly one of'),
        ({'action_timeout_s': 0.2}, 'is not more than settle_s'),
    ],
)
def test_inconsistent_gripper_configurations_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        GripperDriveConfig.model_validate(CONFIG.model_dump() | change)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'pressure_output': 'valve_1'}, 'is streamed'),
        ({'pressure_output': 'nothing'}, "no output 'nothing'"),
        ({'vacuum_line': 'nothing'}, "no line 'nothing'"),
        ({'pressure_input': 'nothing'}, "no input 'nothing'"),
        ({'close_pressure_Pa': 95e3, 'pressure_input': None}, 'outside'),
    ],
)
def test_unusable_daq_channels_are_refused_by_name(change, message):
    daq = DaqDriver(daq_config())
    config = CONFIG.model_copy(update={'pressure_input': None} | change)
    with pytest.raises(ValueError, match=message):
        GripperDriver(config, daq)


# -- at the device


class Chamber:
    """A gripper that fills and empties with a time constant of 60 ms."""

    def __init__(self, clock):
        self.clock = clock
        self.pressure = 0.0
        self.supply = 0.0
        self.leak = 1.0
        self.together = False
        self.last = clock.now_s()

    def source(self):
        now = self.clock.now_s()
        share = -np.expm1(-(now - self.last) / 0.06)
        self.last = now
        self.pressure += share * (self.leak * self.supply - self.pressure)
        volts = np.full(13, 2.0)
        volts[6] = (self.pressure + 200e3) / 50e3
        volts[7:] = 0.0
        return volts

    def sink(self, volts, lines):
        self.supply = -35e3 if lines[0] else 1e4 * volts[6]
        self.together = self.together or (bool(lines[0]) and volts[6] > 0.01)


class Rig:
    def __init__(self):
        inputs = [part.model_dump() for part in daq_config().inputs] + [SENSOR]
        config = daq_config(port=1, inputs=inputs)
        self.clock = ManualClock()
        self.chamber = Chamber(self.clock)
        self.daq = MemoryDaq(config, self.clock, self.chamber.source, self.chamber.sink).start()
        self.driver = DaqDriver(config, self.clock, self.daq.channel)
        self.gripper = GripperDriver(CONFIG, self.driver)
        self.driver.start()
        self.gripper.start()

    def enable(self):
        self.clock.until(
            lambda: self.driver.state().reading and self.driver.state().writing, 5.0, 'connection'
        )
        self.driver.enable()

    def close(self):
        self.gripper.close()
        self.driver.close()
        self.daq.close()
        assert self.clock.failures == []
        assert not self.chamber.together


@pytest.fixture
def rig():
    rig = Rig()
    yield rig
    rig.close()


def done(rig):
    return rig.gripper.state().phase is GripperPhase.DONE


def test_gripper_closes_holds_and_opens(rig):
    rig.enable()
    assert rig.gripper.command('close') is None
    rig.clock.until(lambda: done(rig), 2.0, 'closing')
    assert rig.chamber.pressure == pytest.approx(60e3, abs=6e3)
    assert rig.gripper.state().pressure_Pa == pytest.approx(60e3, abs=6e3)
    rig.gripper.command('hold')
    rig.clock.sleep(0.2)
    assert rig.daq.output_V[6] == pytest.approx(6.0, abs=1e-3)
    assert rig.gripper.command('open') is None
    rig.clock.until(lambda: done(rig), 2.0, 'opening')
    assert rig.daq.lines == (True,)
    assert rig.daq.output_V[6] == 0.0
    assert rig.chamber.pressure < -24e3
    assert rig.gripper.state().problems == ()


def test_leak_is_reported_as_timeout_and_close_works_after_reset(rig):
    rig.enable()
    rig.chamber.leak = 0.5
    rig.gripper.command('close')
    rig.clock.until(lambda: rig.gripper.state().problems, 2.0, 'time-out')
    problem = rig.gripper.state().problems[0]
    assert problem.code == 'timeout'
    assert '6e+04 Pa not reached within 1 s, found' in problem.text
    rig.chamber.leak = 1.0
    rig.gripper.reset()
    rig.gripper.command('close')
    rig.clock.until(lambda: done(rig), 2.0, 'closing')


def test_grasp_is_kept_when_the_daq_stops_and_nothing_resumes_by_itself(rig):
    rig.enable()
    rig.gripper.command('close')
    rig.clock.until(lambda: done(rig), 2.0, 'closing')
    rig.daq.faults.open_V['Dev1/ai0'] = 0.0
    rig.clock.until(lambda: not rig.driver.state().enabled, 1.0, 'stop')
    rig.clock.sleep(0.2)
    assert rig.daq.output_V[6] == pytest.approx(6.0, abs=1e-3)
    assert rig.gripper.command('open') == 'DAQ outputs not enabled'
    assert rig.gripper.state().problems == ()
    rig.daq.faults.open_V.clear()
    rig.clock.until(lambda: rig.driver.state().values[0] > 1e5, 2.0, 'a sound sensor')
    rig.driver.reset()
    rig.driver.enable()
    rig.clock.sleep(0.2)
    assert rig.daq.output_V[6] == pytest.approx(6.0, abs=1e-3)
    assert rig.daq.lines == (False,)


def test_action_under_way_is_abandoned_when_the_daq_stops(rig):
    rig.enable()
    rig.chamber.leak = 0.5
    rig.gripper.command('close')
    rig.driver.disable()
    rig.clock.until(lambda: rig.gripper.state().problems, 1.0, 'report')
    assert 'abandoned: DAQ outputs not enabled' in str(rig.gripper.state().problems[0])
    assert rig.gripper.state().target_Pa is None


@pytest.mark.parametrize('pressure', [np.nan, 95e3, -31e3])
def test_invalid_pressures_and_actions_are_refused(rig, pressure):
    rig.enable()
    with pytest.raises(ValueError, match='gripper'):
        rig.gripper.set_pressure(pressure)
    with pytest.raises(ValueError, match="no gripper action 'grab'; there are open, close, hold"):
        rig.gripper.command('grab')
