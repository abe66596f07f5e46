"""
Latency between the drivers and their emulated devices, compared with the bare libraries.

The emulated devices run in a separate process on the same machine: the latencies include the
software on both sides, but no field bus and no converter.
"""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softarm_reproduction.bench_rows import BenchRow
from softarm_ros.geometry.arrays import Array

if TYPE_CHECKING:
    from softarm_ros.drivers.daq_config import DaqConfig
    from softarm_ros.drivers.servo_config import ServoConfig

_PERIOD_S = 0.01  # between commands
_PER_REPEAT = 10  # commands
_READY_S = 5.0
AXES = 6


def missing() -> tuple[str, ...]:
    """Return the names of the libraries that are not installed."""
    return tuple(
        name for name in ('pymodbus', 'nidaqmx', 'grpc') if importlib.util.find_spec(name) is None
    )


def rows(repeats: int) -> list[BenchRow]:
    """
    Return p50 and p99 of every path from 10 commands per repeat; no rows without the libraries.

    Raises
    ------
    TimeoutError
        If an emulated device does not start.

    """
    if missing():
        return []
    count = _PER_REPEAT * repeats
    return _servo_rows(count) + _daq_rows(count)


def _pair(
    name: str, ours: Sequence[float], bare: Sequence[float], reference: str
) -> list[BenchRow]:
    return [
        BenchRow(
            f'{name}, p{percent}',
            1e6 * float(np.percentile(ours, percent)),
            1e6 * float(np.percentile(bare, percent)),
            reference,
        )
        for percent in (50, 99)
    ]


def _wait(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _READY_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f'{what} not within {_READY_S:g} s')
        time.sleep(0.005)


def _timed(work: Callable[[], Any], count: int) -> list[float]:
    """Call `work` once per period and return the durations of the calls [s]."""
    taken = []
    for _ in range(count):
        began = time.monotonic()
        work()
        taken.append(time.monotonic() - began)
        time.sleep(max(_PERIOD_S - taken[-1], 0.0))
    return taken


class _Device:
    """An emulated device in another process, reached through its TCP port."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self.port = int(self._answer())

    def written(self) -> list[tuple[float, float]]:
        """Return and clear the last channel's writes: monotonic time [s] and value of each."""
        self._pipe.send('written')
        answer: list[tuple[float, float]] = self._answer()
        return answer

    def _answer(self) -> Any:
        if not self._pipe.poll(6.0 * _READY_S):
            raise TimeoutError('the emulated device does not answer')
        return self._pipe.recv()


@contextlib.contextmanager
def _device(serve: Callable[[Connection], None]) -> Iterator[_Device]:
    spawning = multiprocessing.get_context('spawn')
    here, there = spawning.Pipe()
    process = spawning.Process(target=serve, args=(there,), daemon=True)
    process.start()
    try:
        yield _Device(here)
    finally:
        with contextlib.suppress(OSError):
            here.send('end')
        process.join(_READY_S)
        if process.is_alive():
            process.kill()
        here.close()
        there.close()


def _serve_drives(pipe: Connection) -> None:
    from softarm_ros.emulation.modbus_drive import EmulatedDrives

    with EmulatedDrives(_servo_config(), watchdog_s=1.0) as drives:
        pipe.send(drives.port)
        while pipe.recv() == 'written':
            writes = drives.torque_writes()
            pipe.send([(at, torque) for at, axis, torque in writes if axis == AXES - 1])


def _serve_daq(pipe: Connection) -> None:
    from softarm_ros.emulation.daq_service import EmulatedDaq

    writes: list[tuple[float, float]] = []

    def sink(volts: Array, lines: NDArray[np.bool_]) -> None:
        writes.append((time.monotonic(), float(volts[-1])))

    with EmulatedDaq(_daq_config(), sink=sink) as daq:
        pipe.send(daq.port)
        while pipe.recv() == 'written':
            pipe.send(writes[:])
            writes.clear()


def _latencies(
    sent: dict[int, float], written: Sequence[tuple[float, float]], scale: float
) -> list[float]:
    """Return the times [s] from sending a value to its first write, for all written values."""
    arrived: dict[int, float] = {}
    for at, value in written:
        arrived.setdefault(round(scale * value), at)
    return [arrived[code] - at for code, at in sent.items() if code in arrived]


# -- servo drives


def _servo_config() -> ServoConfig:
    from softarm_ros.drivers.servo_config import ServoConfig

    places = {
        'control_word': {'address': 0, 'type': 'uint16'},
        'torque_command': {'address': 1, 'scale': 0.001},
        'status_word': {'address': 16, 'type': 'uint16'},
        'torque': {'address': 17, 'scale': 0.001},
        'speed': {'address': 18, 'type': 'int32', 'scale': 0.001},
        'position': {'address': 20, 'type': 'int32', 'scale': 0.001},
        'fault_code': {'address': 22, 'type': 'uint16'},
    }
    axes = [
        {
            'name': f'axis_{i + 1}',
            'unit': i + 1,
            'torque_limit_N_m': 2.5,
            'speed_limit_rad_s': 1000.0,
        }
        for i in range(AXES)
    ]
    fields = {'host': '127.0.0.1', 'registers': places, 'axes': axes}
    slack = {'command_timeout_s': 1.0, 'response_timeout_s': 0.5, 'link_timeout_s': 1.0}
    return ServoConfig.model_validate(fields | slack)


def _servo_rows(count: int) -> list[BenchRow]:
    from pymodbus.client import ModbusTcpClient

    from softarm_ros.drivers.servo import ServoDriver

    config = _servo_config()
    with _device(_serve_drives) as drives:
        client = ModbusTcpClient('127.0.0.1', port=drives.port, timeout=1.0, retries=0)
        client.connect()

        def bare_write() -> None:
            for unit in range(1, AXES + 1):
                client.write_registers(0, [0, 0], device_id=unit)

        def bare_exchange() -> None:
            bare_write()
            for unit in range(1, AXES + 1):
                client.read_holding_registers(16, count=7, device_id=unit)

        bare_writes = _timed(bare_write, count)
        bare_exchanges = _timed(bare_exchange, count)
        client.close()

        driver = ServoDriver(config.model_copy(update={'port': drives.port}))
        driver.start()
        try:
            _wait(lambda: driver.state().connected, 'connection to the emulated drives')
            driver.enable()
            _wait(lambda: driver.state().enabled, 'operation of the emulated drives')
            drives.written()
            sent = _stream_torques(driver.set_torque, count)
            problems = driver.state().problems
            if problems:
                raise RuntimeError(f'servo benchmark: {problems[0]}')
            cycle = driver.counts().cycle
            latencies = _latencies(sent, drives.written(), 1000.0)
        finally:
            driver.close()
    rows = _pair(
        f'servo: command -> last of {AXES} drives', latencies, bare_writes, 'pymodbus, 6 writes'
    )
    for row, ours in zip(
        _pair('servo: write and read all drives', [0.0], bare_exchanges, 'pymodbus, 12 requests'),
        (cycle.p50_s, cycle.p99_s),
    ):
        rows.append(BenchRow(row.name, 1e6 * ours, row.reference_us, row.reference))
    return rows


def _stream_torques(send: Callable[[Array], str | None], count: int) -> dict[int, float]:
    """Send torques that differ by one count each; return the time [s] of each count's command."""
    sent: dict[int, float] = {}
    for k in range(1, count + 1):
        code = 1 + k % 400  # mN m
        sent.setdefault(code, time.monotonic())
        send(np.full(AXES, 0.001 * code))
        time.sleep(_PERIOD_S)
    return sent


# -- DAQ


def _daq_config(port: int | None = None) -> DaqConfig:
    from softarm_ros.drivers.daq_config import DaqConfig

    fields = {
        'host': None if port is None else {'host': '127.0.0.1', 'port': port},
        'inputs': [{'name': f'p_{i}', 'channel': f'Dev1/ai{i}'} for i in range(AXES)],
        'outputs': [
            {'name': f'v_{i}', 'channel': f'Dev1/ao{i}', 'low': 0.0, 'high': 10.0, 'safe': 0.0}
            for i in range(AXES)
        ],
        'command_timeout_s': 1.0,
        'read_margin_s': 0.5,
        'call_timeout_s': 0.5,
    }
    return DaqConfig.model_validate(fields)


def _daq_rows(count: int) -> list[BenchRow]:
    from softarm_ros.drivers.daq import DaqDriver

    with _device(_serve_daq) as daq:
        bare_writes, bare_ages = _bare_daq(daq.port, count)
        driver = DaqDriver(_daq_config(daq.port))
        driver.start()
        try:
            _wait(
                lambda: driver.state().reading and driver.state().writing,
                'connection to the emulated DAQ',
            )
            driver.enable()
            daq.written()
            sent: dict[int, float] = {}
            for k in range(count):
                code = 1 + k % 999  # 10 mV
                sent.setdefault(code, time.monotonic())
                driver.set_outputs(np.full(AXES, 0.01 * code))
                time.sleep(_PERIOD_S)
            problems = driver.state().problems
            if problems:
                raise RuntimeError(f'DAQ benchmark: {problems[0]}')
            age = driver.counts().read_age
            latencies = _latencies(sent, daq.written(), 100.0)
        finally:
            driver.close()
    rows = _pair(
        f'DAQ: command -> {AXES} valves', latencies, bare_writes, 'nidaqmx, a write to its end'
    )
    for row, ours in zip(
        _pair('DAQ: newest sample -> here', [0.0], bare_ages, 'nidaqmx, loop of reads'),
        (age.p50_s, age.p99_s),
    ):
        rows.append(BenchRow(row.name, 1e6 * ours, row.reference_us, row.reference))
    return rows


def _bare_daq(port: int, count: int) -> tuple[list[float], list[float]]:
    """Return write times and ages of each block's newest sample [s] with bare nidaqmx."""
    import grpc
    import nidaqmx
    from nidaqmx.constants import AcquisitionType
    from nidaqmx.grpc_session_options import GrpcSessionOptions
    from nidaqmx.stream_readers import AnalogMultiChannelReader
    from nidaqmx.stream_writers import AnalogMultiChannelWriter

    config = _daq_config()
    with grpc.insecure_channel(f'127.0.0.1:{port}') as channel:
        with nidaqmx.Task(grpc_options=GrpcSessionOptions(channel, '')) as task:
            for output in config.outputs:
                task.ao_channels.add_ao_voltage_chan(output.channel, min_val=0.0, max_val=10.0)
            writer = AnalogMultiChannelWriter(task.out_stream, auto_start=True)
            writer.verify_array_shape = False
            volts = np.zeros(AXES)
            writes = _timed(lambda: writer.write_one_sample(volts, timeout=0.0), count)
        with nidaqmx.Task(grpc_options=GrpcSessionOptions(channel, '')) as task:
            for part in config.inputs:
                task.ai_channels.add_ai_voltage_chan(part.channel)
            task.timing.cfg_samp_clk_timing(
                config.sample_rate_hz,
                sample_mode=AcquisitionType.CONTINUOUS,
                samps_per_chan=config.buffer_samples,
            )
            reader = AnalogMultiChannelReader(task.in_stream)
            reader.verify_array_shape = False
            block = np.zeros((AXES, config.block_samples))
            task.start()
            began = time.monotonic()
            arrivals = []
            for _ in range(count):
                reader.read_many_sample(block, config.block_samples, timeout=1.0)
                arrivals.append(time.monotonic())
    newest = (np.arange(1, count + 1) * config.block_samples - 1) / config.sample_rate_hz
    offset = min(began, float(np.min(np.array(arrivals) - newest)))
    return writes, list(np.array(arrivals) - newest - offset)


def main() -> None:
    """Measure and print the rows."""
    absent = missing()
    if absent:
        print(f'not measured: {", ".join(absent)} not installed (extra hardware)')
        return
    for row in rows(15):
        print(
            f'{row.name:45} {row.compiled_us / 1e3:7.2f} ms   '
            f'{row.reference_us / 1e3:7.2f} ms  {row.reference}'
        )


if __name__ == '__main__':
    main()
