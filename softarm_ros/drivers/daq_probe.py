"""Check that a DAQ device has the channels of a rig file, and read once; write nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.drivers.connections import OF_THIS_COMPUTER, Connections
from softarm_ros.drivers.daq_config import AnalogInput, DaqConfig
from softarm_ros.drivers.daq_inputs import InputReader
from softarm_ros.drivers.daq_session import DaqFaultError, DaqSession, daq_errors
from softarm_ros.drivers.problems import import_library
from softarm_ros.geometry.arrays import Array

if TYPE_CHECKING:
    from nidaqmx.task import Task

_PATIENCE_S = 1.0
# A separate session: a driver clears tasks of its own name, even those of a running arm.
_SESSION_SUFFIX = '_ports'


@dataclass(frozen=True)
class ChannelReport:
    """
    Report on one channel or line.

    Attributes
    ----------
    name, channel :
        Name in the rig file; physical channel.
    volts :
        Mean of a block; NaN for outputs and for inputs that could not be read.
    value, unit :
        The same in the unit of the rig file.
    trouble :
        Fault found, with the device's own code; '' if there is none.

    """

    name: str
    channel: str
    volts: float
    value: float
    unit: str
    trouble: str


def probe_daq(
    config: DaqConfig, connections: Connections = OF_THIS_COMPUTER
) -> list[ChannelReport]:
    """
    Return a report on every input, gauge, output and line, in the order of the rig file.

    Outputs are checked for existence, not written.

    Raises
    ------
    DriverError
        If nidaqmx is not installed.
    DaqFaultError
        If the driver or the host does not answer at all.

    """
    import_library('nidaqmx.stream_readers')
    if config.host is not None:
        import_library('grpc', 'nidaqmx._grpc_interpreter')
    patient = config.model_copy(
        update={
            'session': config.session + _SESSION_SUFFIX,
            'call_timeout_s': max(_PATIENCE_S, config.call_timeout_s),
            'read_margin_s': max(_PATIENCE_S, config.read_margin_s),
        }
    )
    absent = _absent(patient, connections)
    volts, trouble = np.full(len(config.input_channels), np.nan), ''
    if config.input_channels and not any(c in absent for c in config.input_channels):
        volts, trouble = _read_block(patient, connections)
    reports = []
    for k, channel in enumerate(config.input_channels):
        part = config.inputs[k] if k < len(config.inputs) else None
        found = absent.get(channel, trouble) or _judged(part, volts[k])
        reports.append(
            ChannelReport(
                name=part.name if part else f'gauge_{k - len(config.inputs)}',
                channel=channel,
                volts=float(volts[k]),
                value=float(part.value(volts[k]) if part else volts[k]),
                unit=part.unit if part else 'V',
                trouble=found,
            )
        )
    nan = float('nan')
    for output in config.outputs:
        known = absent.get(output.channel, '')
        reports.append(ChannelReport(output.name, output.channel, nan, nan, output.unit, known))
    for line in config.lines:
        known = absent.get(line.line, '')
        reports.append(ChannelReport(line.name, line.line, nan, nan, '', known))
    return reports


def _absent(config: DaqConfig, connections: Connections) -> dict[str, str]:
    """Return the channels that cannot be added to a task, with the reasons."""
    wanted: list[tuple[str, str, Callable[[Task, str], object]]] = []
    wanted += [('in', name, _add_input) for name in config.input_channels]
    wanted += [('out', output.channel, _add_output) for output in config.outputs]
    wanted += [('lines', line.line, _add_line) for line in config.lines]
    absent: dict[str, str] = {}
    with DaqSession(config, connections.open_channel) as session:
        tasks: dict[str, Task] = {}
        for kind, channel, add in wanted:
            if kind not in tasks:
                tasks[kind] = session.task(kind)
            try:
                with daq_errors():
                    add(tasks[kind], channel)
            except DaqFaultError as error:
                if error.code.startswith('grpc'):
                    raise
                absent[channel] = f'{error.code} {error.text}'
    return absent


def _add_input(task: Task, channel: str) -> object:
    return task.ai_channels.add_ai_voltage_chan(channel)


def _add_output(task: Task, channel: str) -> object:
    return task.ao_channels.add_ao_voltage_chan(channel, min_val=0.0, max_val=10.0)


def _add_line(task: Task, line: str) -> object:
    from nidaqmx.constants import LineGrouping

    return task.do_channels.add_do_chan(line, line_grouping=LineGrouping.CHAN_PER_LINE)


def _read_block(config: DaqConfig, connections: Connections) -> tuple[Array, str]:
    """Return the means (channels,) [V] of the first block, and the error or ''."""
    volts = np.full(len(config.input_channels), np.nan)
    trouble = ''
    done = connections.clock.event()

    def on_block(stamps: Array, block: Array) -> None:
        volts[:] = block.mean(axis=1)
        done.set()

    def on_fault(source: str, error: DaqFaultError) -> None:
        nonlocal trouble
        trouble = f'{error.code} {error.text}'
        done.set()

    InputReader(config, on_block, on_fault, connections.clock, connections.open_channel).run(done)
    return volts, trouble


def _judged(part: AnalogInput | None, volts: float) -> str:
    if part is None:
        return ''
    for limit, beyond in (
        (part.open_below_V, part.open_below_V is not None and volts < part.open_below_V),
        (part.open_above_V, part.open_above_V is not None and volts > part.open_above_V),
    ):
        if beyond:
            return f'open circuit: {volts:.3f} V, limit {limit:g} V'
    value = float(part.value(volts))
    if part.low is not None and value < part.low:
        return f'{value:.6g} {part.unit} is below {part.low:g} {part.unit}'
    if part.high is not None and value > part.high:
        return f'{value:.6g} {part.unit} is above {part.high:g} {part.unit}'
    return ''
