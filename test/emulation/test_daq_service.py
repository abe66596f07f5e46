"""The emulated DAQ host as any program sees it: plain nidaqmx, in simulated time."""

import numpy as np
import pytest

nidaqmx = pytest.importorskip('nidaqmx', reason='nidaqmx is not installed (extra hardware)')
grpc = pytest.importorskip('grpc', reason='grpcio is not installed (extra hardware)')

from daq_memory import MemoryDaq
from manual_clock import ManualClock, wait_until
from nidaqmx.constants import AcquisitionType, LineGrouping
from nidaqmx.errors import DaqError, DaqReadError, RpcError
from nidaqmx.grpc_session_options import GrpcSessionOptions, SessionInitializationBehavior

from softarm_ros.drivers.daq_config import DaqConfig, DaqHost
from softarm_ros.emulation.daq_service import EmulatedDaq

CONFIG = DaqConfig.model_validate(
    {
        'inputs': [{'name': f'p{i}', 'channel': f'Dev1/ai{i}'} for i in range(3)],
        'outputs': [
            {'name': f'v{i}', 'channel': f'Dev1/ao{i}', 'low': 0, 'high': 10, 'safe': 0}
            for i in range(2)
        ],
        'lines': [{'name': f'l{i}', 'line': f'Dev1/port0/line{i}'} for i in range(2)],
    }
)
ATTACH = SessionInitializationBehavior.ATTACH_TO_SERVER_SESSION
NEW = SessionInitializationBehavior.INITIALIZE_SERVER_SESSION


@pytest.fixture
def daq():
    daq = MemoryDaq(CONFIG, ManualClock()).start()
    daq.volts[:] = [0.5, -1.5, 2.5]
    yield daq
    daq.close()
    assert daq.clock.failures == []


@pytest.fixture
def channel(daq):
    return daq.channel(DaqHost(host='memory', port=1))


def make_task(channel, name='', behaviour=SessionInitializationBehavior.AUTO):
    options = GrpcSessionOptions(channel, name, initialization_behavior=behaviour)
    return nidaqmx.Task(name, grpc_options=options)


def inputs(channel, rate=2000.0, buffer=2000, physical='Dev1/ai0:2'):
    task = make_task(channel)
    for part in ('Dev1/ai0', 'Dev1/ai1', 'Dev1/ai2') if physical == 'Dev1/ai0:2' else (physical,):
        task.ai_channels.add_ai_voltage_chan(part)
    mode = AcquisitionType.CONTINUOUS
    task.timing.cfg_samp_clk_timing(rate, sample_mode=mode, samps_per_chan=buffer)
    return task


def code_of(work):
    with pytest.raises(DaqError) as caught:
        work()
    return caught.value.error_code


def test_samples_arrive_at_the_sample_rate_with_16_bit_resolution(daq, channel):
    with inputs(channel) as task:
        task.start()
        began = daq.clock.now_s()
        count = 0
        while count < 2000:
            volts = np.array(task.read(100, timeout=1.0))
            count += volts.shape[1]
        elapsed = daq.clock.now_s() - began
    assert elapsed == pytest.approx(1.0, abs=0.01)
    assert np.abs(volts.mean(axis=1) - [0.5, -1.5, 2.5]).max() < 2e-4
    assert 1e-4 < volts.std(axis=1).max() < 1e-3
    step = 10.0 / 2**16  # of 16 bits over +-5 V, the range of the channels
    assert np.allclose(volts / step, np.round(volts / step), atol=1e-6)


def test_narrower_input_range_has_finer_steps(daq, channel):
    with make_task(channel) as task:
        task.ai_channels.add_ai_voltage_chan('Dev1/ai0', min_val=-1.0, max_val=1.0)
        task.timing.cfg_samp_clk_timing(1000.0, sample_mode=AcquisitionType.CONTINUOUS)
        task.start()
        volts = np.array(task.read(10, timeout=1.0))
    step = 2.0 / 2**16
    assert np.allclose(volts / step, np.round(volts / step), atol=1e-6)


def test_values_beyond_the_range_are_clipped(daq, channel):
    daq.volts[0] = 3.0
    with make_task(channel) as task:
        task.ai_channels.add_ai_voltage_chan('Dev1/ai0', min_val=-1.0, max_val=1.0)
        task.timing.cfg_samp_clk_timing(1000.0, sample_mode=AcquisitionType.CONTINUOUS)
        task.start()
        assert max(task.read(10, timeout=1.0)) == pytest.approx(1.0, abs=1e-3)


def test_read_without_samples_times_out(daq, channel):
    with inputs(channel) as task:
        task.start()
        daq.faults.stall = True
        with pytest.raises(DaqReadError) as caught:
            task.read(1000, timeout=0.1)
        assert caught.value.error_code == -200284


def test_full_buffer_is_reported_as_an_overrun(daq, channel):
    with inputs(channel, buffer=200) as task:
        task.start()
        daq.clock.sleep(0.3)
        assert code_of(lambda: task.read(10, timeout=0.1)) == -200279


def test_invalid_requests_return_the_daqmx_error_codes(daq, channel):
    with make_task(channel) as task:
        add = task.ai_channels.add_ai_voltage_chan
        assert code_of(lambda: add('Dev7/ai0')) == -200220
        assert code_of(lambda: add('Dev1/ai9')) == -200170
        assert code_of(lambda: add('Dev1/ai0', min_val=-30.0, max_val=30.0)) == -200077
    with inputs(channel) as first, inputs(channel) as second:
        first.start()
        assert code_of(second.start) == -50103
    daq.faults.gone = True
    with make_task(channel) as task:  # of the host, as long as it has no channel
        assert code_of(lambda: task.ai_channels.add_ai_voltage_chan('Dev1/ai0')) == -201003
    daq.faults.gone = False


def test_outputs_keep_their_values_when_the_host_dies(daq, channel):
    task = make_task(channel)
    task.ao_channels.add_ao_voltage_chan('Dev1/ao0', min_val=0.0, max_val=10.0)
    task.ao_channels.add_ao_voltage_chan('Dev1/ao1', min_val=0.0, max_val=10.0)
    task.write([1.0, 7.5], auto_start=True)
    assert np.allclose(daq.output_V, [1.0, 7.5], atol=2e-4)
    assert code_of(lambda: task.write([1.0, 10.5])) == -200561
    daq.kill()
    with pytest.raises(RpcError):
        task.write([0.0, 0.0])
    with pytest.raises(RpcError):
        task.close()
    assert np.allclose(daq.output_V, [1.0, 7.5], atol=2e-4)


def test_digital_lines_are_written(daq, channel):
    with make_task(channel) as task:
        for line in ('Dev1/port0/line0', 'Dev1/port0/line1'):
            task.do_channels.add_do_chan(line, line_grouping=LineGrouping.CHAN_PER_LINE)
        from nidaqmx.stream_writers import DigitalMultiChannelWriter

        writer = DigitalMultiChannelWriter(task.out_stream, auto_start=True)
        writer.verify_array_shape = False
        writer.write_one_sample_one_line(np.array([False, True]))
    assert daq.lines == (False, True)


def test_abandoned_session_can_be_closed_by_its_name(daq, channel):
    left = make_task(channel, 'mine', NEW)
    with pytest.raises(RpcError, match='ALREADY_EXISTS'):
        make_task(channel, 'mine', NEW)
    make_task(channel, 'mine', ATTACH).close()
    make_task(channel, 'mine', NEW).close()
    with pytest.raises(RpcError, match='FAILED_PRECONDITION'):
        make_task(channel, 'mine', ATTACH)
    assert code_of(left.start) == -200088
    assert daq.device.tasks == {}


def test_open_terminal_shows_its_open_voltage_and_a_stuck_one_a_constant(daq, channel):
    with inputs(channel) as task:
        task.start()
        task.read(10, timeout=1.0)
        daq.faults.open_V['Dev1/ai1'] = 0.01
        daq.faults.stuck.add('Dev1/ai2')
        daq.clock.sleep(0.1)
        daq.volts[2] = 4.0
        task.read(400, timeout=1.0)
        volts = np.array(task.read(200, timeout=1.0))
    assert np.abs(volts[0] - 0.5).max() < 2e-3
    assert np.abs(volts[1] - 0.01).max() < 2e-3
    assert np.ptp(volts[2]) == 0.0
    assert volts[2, 0] == pytest.approx(2.5, abs=1e-3)


def test_source_of_the_wrong_size_is_reported():
    daq = EmulatedDaq(CONFIG, lambda: np.zeros(2)).start()
    wait_until(lambda: daq.errors, 20.0, 'error')
    daq.close()
    assert 'source gave shape (2,), expected (3,)' in daq.errors[0]


def test_samples_arrive_over_loopback_and_calls_to_a_killed_host_fail():
    with EmulatedDaq(CONFIG) as daq:
        daq.volts[:] = [0.5, -1.5, 2.5]
        channel = grpc.insecure_channel(f'127.0.0.1:{daq.port}')
        task = inputs(channel, buffer=100_000)  # a busy computer may come late
        task.start()
        volts = np.array(task.read(100, timeout=20.0))
        assert np.abs(volts.mean(axis=1) - [0.5, -1.5, 2.5]).max() < 3e-4
        daq.kill()
        with pytest.raises(RpcError):
            task.read(10, timeout=1.0)
        with pytest.raises(RpcError):
            task.close()
        daq.revive()
        grpc.channel_ready_future(channel).result(20.0)
        make_task(channel).close()
        channel.close()
        assert daq.errors == []
