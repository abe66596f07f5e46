"""The DAQ driver and the real nidaqmx package against the emulated host, in simulated time."""

import numpy as np
import pytest
from daq_cases import CALIBRATION, daq_config
from manual_clock import ManualClock
from streamed import Streamed

pytest.importorskip('nidaqmx', reason='nidaqmx is not installed (extra hardware)')
pytest.importorskip('grpc', reason='grpcio is not installed (extra hardware)')

from daq_memory import MemoryDaq

from softarm_ros.drivers.daq import DaqDriver
from softarm_ros.drivers.problems import DriverError

REPORT_S = 0.3  # from a fault to the driver's report of it
PRESSURES = np.array([1e4, 2e4, 3e4, 4e4, 5e4, 6e4])


class Rig(Streamed):
    """An emulated DAQ and a driver; tests stream commands to it."""

    def __init__(self, **changes):
        config = daq_config(port=1, **changes)
        self.clock = ManualClock()
        self.daq = MemoryDaq(config, self.clock).start()
        self.daq.volts[6:] = 0.0
        self.driver = DaqDriver(config, self.clock, self.daq.channel)
        self.driver.start()

    def up(self):
        def ready():
            state = self.driver.state()
            return state.reading and state.writing

        self.clock.until(ready, 5.0, 'connection')

    def move(self, seconds=0.2):
        self.up()
        self.driver.enable()
        self.stream(seconds)
        assert np.allclose(self.daq.output_V[:6], PRESSURES / 1e4, atol=4e-4)

    def stream(self, seconds):
        end = self.clock.now_s() + seconds
        while self.clock.now_s() < end:
            self.send()
            self.clock.sleep(0.01)

    def send(self):
        self.driver.set_outputs(PRESSURES)

    def safe(self):
        return not self.daq.output_V[:6].any()

    def close(self):
        self.driver.close()
        self.daq.close()
        assert self.clock.failures == []


@pytest.fixture
def rig():
    rig = Rig()
    yield rig
    rig.close()


def test_values_wrench_and_outputs_have_the_right_order_and_scale(rig):
    loads = np.array([3.0, -4.0, 10.0, 0.1, -0.2, 0.3])
    rig.daq.volts[:6] = [1.0, 2.0, 3.0, 4.0, 4.5, 1.5]
    rig.daq.volts[6:] = np.linalg.solve(CALIBRATION, loads)
    rig.move(0.3)
    state = rig.driver.state()
    expected = 0.25e6 * (rig.daq.volts[:6] - 1.0)
    assert np.allclose(state.values, expected, atol=150.0)  # noise of the mean of ten: 24 Pa
    assert np.allclose(state.wrench, loads, atol=0.01)
    assert np.allclose(state.outputs[:6], PRESSURES, atol=5.0)
    assert state.problems == ()
    assert state.enabled
    assert state.age_s < 0.2


def test_no_sample_is_lost_and_stamps_follow_the_sample_clock(rig):
    rig.up()
    rig.driver.take_blocks()
    blocks = []
    for _ in range(10):
        rig.clock.sleep(0.1)
        blocks += rig.driver.take_blocks()
    stamps = np.concatenate([block.stamps_s for block in blocks])
    steps = np.diff(stamps)
    assert stamps.size > 700
    assert (steps >= 0.0).all()
    assert steps.mean() == pytest.approx(1e-3, rel=0.03)
    assert np.median(np.abs(steps - 1e-3)) < 1e-6
    assert sum(b.values.shape[1] for b in blocks) == stamps.size
    counts = rig.driver.counts()
    assert (counts.overruns, counts.dropped_blocks, counts.starts) == (0, 0, 1)


def test_outputs_are_safe_before_enabling_and_after_disabling(rig):
    rig.up()
    assert rig.driver.set_outputs(PRESSURES) == 'DAQ outputs not enabled'
    rig.stream(0.1)
    assert rig.safe()
    rig.move()
    rig.driver.disable()
    rig.clock.until(rig.safe, REPORT_S, 'safe outputs')
    assert rig.driver.state().problems == ()
    rig.move()


def test_command_from_before_enabling_is_not_followed(rig):
    rig.move()
    rig.driver.disable()
    rig.clock.until(rig.safe, REPORT_S, 'safe outputs')
    rig.driver.enable()
    rig.clock.sleep(0.25)
    assert rig.safe()
    assert rig.driver.state().problems == ()  # no command yet, hence none is stale


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        ([0.0] * 5, '5 output values; expected 6'),
        ([0.0, np.nan, 0.0, 0.0, 0.0, 0.0], 'valve_2 = nan'),
        ([0.0, 0.0, 1e5, 0.0, 0.0, 0.0], r'valve_3 = 100000 Pa outside \[0, 90000\] Pa'),
    ],
)
def test_invalid_commands_are_refused_by_name(values, message):
    driver = DaqDriver(daq_config())
    with pytest.raises(ValueError, match=message):
        driver.set_outputs(values)


def test_unknown_line_and_single_writes_to_a_streamed_output_are_refused():
    driver = DaqDriver(daq_config())
    with pytest.raises(ValueError, match="no line 'air'; there are vacuum"):
        driver.set_line('air', True)
    with pytest.raises(ValueError, match='valve_1 is streamed'):
        driver.set_output('valve_1', 1.0)


def test_stale_commands_make_the_outputs_safe(rig):
    rig.move()
    assert rig.clock.until(rig.safe, REPORT_S, 'safe outputs') < REPORT_S
    assert str(rig.driver.state().problems[0]) == 'command: stale no command for 150 ms'
    with pytest.raises(DriverError, match='command: stale'):
        rig.driver.enable()
    rig.driver.reset()
    rig.move()


def test_reset_without_problems_does_not_release_the_arm(rig):
    rig.move(0.3)
    rig.driver.reset()
    rig.stream(0.3)
    state = rig.driver.state()
    assert state.enabled
    assert np.allclose(state.outputs[:6], PRESSURES, atol=5.0)


def test_buffer_overrun_makes_the_outputs_safe_until_reset(rig):
    rig.move()
    rig.daq.device.overrun()
    assert rig.reported('inputs', '-200279') < REPORT_S
    rig.clock.until(rig.safe, REPORT_S, 'safe outputs')
    assert 'not able to keep up' in rig.driver.state().problems[0].text
    rig.up()  # reading resumes by itself, moving does not
    rig.stream(0.2)
    assert rig.safe()
    assert (rig.driver.counts().overruns, rig.driver.counts().starts) == (1, 2)
    rig.driver.reset()
    rig.move()


def test_reads_slower_than_the_buffer_lasts_cause_a_reported_overrun():
    rig = Rig(buffer_samples=150, block_samples=5)
    try:
        rig.move()
        rig.daq.host_faults.delay_s = 0.17  # longer than the buffer lasts
        assert rig.reported('inputs', '-200279') < 2.0
        rig.daq.host_faults.delay_s = 0.0
        rig.clock.until(rig.safe, 2.0, 'safe outputs')
    finally:
        rig.close()


def test_reader_catches_up_if_calls_take_longer_than_their_block(rig):
    rig.up()
    rig.driver.reset()
    rig.driver.take_blocks()
    rig.daq.host_faults.delay_s = 0.06  # of a call for ten samples, in which sixty are taken
    rig.clock.sleep(1.0)
    ages = [rig.driver.state().age_s for _ in range(20) if rig.clock.sleep(0.02) is None]
    assert np.median(ages) < 0.2
    blocks = rig.driver.take_blocks()
    stamps = np.concatenate([block.stamps_s for block in blocks])
    assert stamps.size > 1000
    assert np.median(np.diff(stamps)) == pytest.approx(1e-3, rel=0.01)
    # The newest samples of a call are not averaged with those that had to wait.
    sizes = [block.stamps_s.size for block in blocks]
    assert max(sizes) > 30
    assert set(sizes[1::2]) == {10} or set(sizes[::2]) == {10}
    assert np.allclose(rig.driver.values, blocks[-1].values.mean(axis=1))
    assert rig.driver.counts().overruns == 0
    assert rig.driver.state().problems == ()
    rig.daq.host_faults.delay_s = 0.0


def test_open_circuit_makes_the_outputs_safe_until_mended_and_reset(rig):
    rig.move()
    rig.daq.faults.open_V['Dev1/ai2'] = -0.02
    assert rig.reported('pressure_3', 'open') < REPORT_S
    rig.clock.until(rig.safe, REPORT_S, 'safe outputs')
    assert str(rig.driver.state().problems[0]).startswith('pressure_3: open circuit: -0.0')
    assert rig.driver.state().problems[0].outside
    rig.driver.reset()
    rig.clock.until(lambda: rig.driver.state().problems, REPORT_S, 'report again')
    rig.daq.faults.open_V.clear()
    rig.clock.until(lambda: rig.driver.state().values[2] > 1e5, 2.0, 'a sound sensor')
    rig.driver.reset()
    rig.move()


def test_block_with_a_wire_break_shows_either_the_sound_or_the_broken_value(rig):
    rig.move()
    rig.driver.take_blocks()
    sound = rig.driver.state().values[2]
    seen = []
    for k in range(40):  # breaks at every position in a block of 10 ms
        rig.daq.faults.open_V['Dev1/ai2'] = 0.02
        rig.clock.sleep(0.02)
        rig.daq.faults.open_V.clear()
        rig.clock.sleep(0.0303 + 1e-4 * k)
        seen += [block.values[2].mean() for block in rig.driver.take_blocks()]
    broken = rig.driver.config.inputs[2].value(0.02)
    near = np.abs(np.array(seen) - sound) < 0.01 * abs(sound)
    assert np.all(near | (np.abs(np.array(seen) - broken) < 0.01 * abs(broken)))
    assert np.any(near) and not np.all(near)


def test_stuck_sensor_makes_the_outputs_safe(rig):
    rig.move()
    rig.daq.faults.stuck.add('Dev1/ai0')
    assert rig.reported('pressure_1', 'stuck') < REPORT_S + 0.2  # stuck_after_s
    rig.clock.until(rig.safe, REPORT_S, 'safe outputs')


def test_pressure_beyond_its_limit_makes_the_outputs_safe(rig):
    rig.move()
    rig.daq.volts[4] = 5.2
    assert rig.reported('pressure_5', 'limit') < REPORT_S
    rig.clock.until(rig.safe, REPORT_S, 'safe outputs')


def test_force_beyond_the_rating_makes_the_outputs_safe(rig):
    rig.move()
    rig.daq.volts[6:] = np.linalg.solve(CALIBRATION, [60.0, 0, 0, 0, 0, 0])
    assert rig.reported('wrench', 'overload') < REPORT_S
    rig.clock.until(rig.safe, REPORT_S, 'safe outputs')


def test_stopped_sample_clock_makes_the_outputs_safe_until_reset(rig):
    rig.move()
    rig.daq.faults.stall = True
    assert rig.reported('inputs', '-200284') < REPORT_S
    rig.clock.until(rig.safe, REPORT_S, 'safe outputs')
    assert not rig.driver.state().reading
    rig.daq.faults.stall = False
    rig.driver.reset()
    rig.move()


def test_unplugged_device_is_reported_and_works_again_after_reset(rig):
    rig.move()
    rig.daq.faults.gone = True
    assert rig.reported('inputs', '-201003') < REPORT_S
    assert not rig.driver.state().enabled
    began = rig.clock.now_s()
    rig.clock.until(lambda: rig.clock.now_s() > began + 5.0, 10.0, 'attempts to open it again')
    assert {problem.code for problem in rig.driver.problems()} == {'-201003'}
    rig.daq.faults.gone = False
    rig.up()
    rig.clock.until(rig.safe, 1.0, 'safe outputs')
    rig.driver.reset()
    rig.move()


def test_killed_host_is_reported_and_outputs_are_safe_once_it_is_back(rig):
    rig.move()
    rig.daq.kill()
    assert rig.time_to(lambda: rig.driver.state().problems) < REPORT_S
    problem = rig.driver.state().problems[0]
    assert problem.code == 'grpc UNAVAILABLE' or problem.code == 'grpc CANCELLED'
    assert problem.outside and not problem.passing
    # A device keeps its outputs when its host dies; the driver cannot change that.
    assert np.allclose(rig.daq.output_V[:6], PRESSURES / 1e4, atol=4e-4)
    rig.daq.revive()
    rig.clock.until(rig.safe, 2.0, 'safe outputs')
    rig.up()
    rig.stream(0.2)
    assert rig.safe()
    with pytest.raises(DriverError, match='reset it first'):
        rig.driver.enable()
    rig.driver.reset()
    rig.move()


def test_unreachable_host_is_reported_and_outputs_are_safe_once_it_is_back(rig):
    rig.move()
    rig.daq.host_faults.hang = True
    assert rig.time_to(lambda: rig.driver.state().problems) < REPORT_S
    problem = rig.driver.state().problems[0]
    assert problem.code == 'grpc DEADLINE_EXCEEDED' and not problem.outside  # or merely late
    rig.clock.sleep(0.3)
    rig.daq.host_faults.hang = False
    # The host still has the old tasks; unless they are cleared, the device stays reserved.
    rig.clock.until(rig.safe, 3.0, 'safe outputs')
    rig.up()
    rig.driver.reset()
    rig.move()


def test_problems_from_before_enabling_end_without_a_reset(rig):
    rig.up()
    rig.daq.kill()
    rig.clock.until(lambda: rig.driver.state().problems, 1.0, 'report')
    assert all(problem.passing and problem.outside for problem in rig.driver.state().problems)
    rig.daq.revive()
    rig.clock.until(lambda: not rig.driver.state().problems, 3.0, 'recovery')
    rig.move()


@pytest.mark.parametrize('call', ['WriteAnalogF64', 'ReadAnalogF64', 'WriteDigitalLines'])
def test_error_code_of_a_call_is_reported_unchanged(rig, call):
    rig.move()
    rig.daq.host_faults.fail_next = (call, -200077)
    source = 'inputs' if call == 'ReadAnalogF64' else 'outputs'
    if call == 'WriteDigitalLines':
        rig.driver.set_line('vacuum', True)
    assert rig.reported(source, '-200077') < REPORT_S
    rig.clock.until(rig.safe, 1.0, 'safe outputs')


@pytest.mark.parametrize(
    ('parts', 'field', 'channel'),
    [
        ('inputs', 'channel', 'Dev2/ai0'),
        ('outputs', 'channel', 'Dev2/ao0'),
        ('lines', 'line', 'Dev2/port0/line0'),
    ],
)
def test_missing_channel_is_named_and_blocks_enabling(parts, field, channel):
    config, clock = daq_config(port=1), ManualClock()
    first, *others = getattr(config, parts)
    wrong = (first.model_copy(update={field: channel}), *others)
    daq = MemoryDaq(config, clock).start()
    driver = DaqDriver(config.model_copy(update={parts: wrong}), clock, daq.channel)
    driver.start()
    clock.until(lambda: driver.state().problems, 2.0, 'report')
    (problem,) = driver.state().problems
    assert (problem.code, problem.text.partition(': ')[0]) == ('-200220', channel)
    with pytest.raises(DriverError, match='-200220'):
        driver.enable()
    driver.close()
    daq.close()
    assert clock.failures == []


def test_the_caller_never_waits_for_a_slow_host(rig):
    rig.move()
    rig.daq.host_faults.delay_s = 0.03
    longest = 0.0
    for count in range(100):
        began = rig.clock.now_s()
        rig.driver.set_outputs(PRESSURES + 10.0 * count)  # equal ones are not written again
        rig.driver.state()
        longest = max(longest, rig.clock.now_s() - began)
        rig.clock.sleep(0.005)
    assert rig.driver.state().problems == ()
    assert longest == 0.0
    assert rig.driver.counts().superseded > 0


def test_device_is_reading_only_once_its_values_are_known(rig, monkeypatch):
    """Otherwise set points would start from values that are not numbers."""
    watch, early = rig.driver._watch, []
    look = watch.look

    def looked(volts, duration_s):
        state = rig.driver.state()
        early.append(state.reading and np.isnan(state.values).any())
        return look(volts, duration_s)

    monkeypatch.setattr(watch, 'look', looked)
    rig.up()
    assert early and not any(early)


def test_internal_error_is_reported_and_makes_the_outputs_safe(rig, monkeypatch):
    rig.move()
    monkeypatch.setattr(rig.driver._watch, 'look', lambda volts, duration_s: 1 / 0)
    assert rig.reported('daq inputs', 'internal') < REPORT_S
    rig.clock.until(rig.safe, REPORT_S, 'safe outputs')
    monkeypatch.undo()
    rig.is_helped_by_a_new_start_alone(lambda: rig.driver.state().reading, REPORT_S)


def test_tare_removes_the_bias_of_the_force_sensor(rig):
    rig.daq.volts[6:] = [0.1, -0.2, 0.3, 0.1, 0.0, -0.1]
    rig.up()
    rig.driver.tare()
    rig.clock.until(lambda: not rig.driver.taring, 2.0, 'tare')
    rig.clock.sleep(0.1)
    assert np.abs(rig.driver.state().wrench).max() < 0.01
    assert np.allclose(rig.driver.bias_V, rig.daq.volts[6:], atol=2e-4)


def test_close_makes_the_outputs_safe_and_clears_the_tasks(rig):
    rig.move()
    rig.driver.close()
    assert rig.safe()
    assert rig.daq.device.tasks == {}
