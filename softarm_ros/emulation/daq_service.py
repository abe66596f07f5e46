"""Emulate NI's gRPC device server, with which the real `nidaqmx` package communicates."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import grpc
import numpy as np
from nidaqmx._stubs import nidaqmx_pb2 as messages
from nidaqmx._stubs import nidaqmx_pb2_grpc as services
from numpy.typing import NDArray

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.drivers.polling import PollingThread
from softarm_ros.emulation.daq_device import (
    ERROR_TEXTS,
    SAMPLES_NOT_YET_AVAILABLE,
    DaqFaults,
    DaqmxError,
    EmulatedDaqDevice,
)
from softarm_ros.geometry.arrays import Array

Levels = NDArray[np.bool_]
Call = TypeVar('Call', bound=Callable[..., Any])


# Attributes that the `nidaqmx` package reads, by their numbers in NIDAQmx.h.
_TASK_NAME, _TASK_CHANNELS, _TASK_CHANNEL_COUNT = 0x1276, 0x1273, 0x2181
_READ_CHANNELS, _READ_CHANNEL_COUNT, _WRITE_CHANNEL_COUNT = 0x1823, 0x217B, 0x217E
_BOOLEANS_PER_CHANNEL, _CHANNEL_TYPE, _MEASUREMENT = 0x217F, 0x187F, 0x0695
_VOLTAGE = 10322
_CHANNEL_TYPES = {'ai': 10100, 'ao': 10102, 'do': 10153}
_VERSION = {0x1272: 24, 0x1923: 5, 0x2F22: 0}  # of the driver: major, minor, update
_ATTACH = 2
# A read acquires its samples itself, and an arm those before each of its steps: this acquires the
# rest, so that a buffer that nobody reads overflows.
_TICK_S = 0.02
_BIND_S = 3.0


@dataclass
class HostFaults:
    """
    Faults between driver and host; may be set at any time.

    Attributes
    ----------
    delay_s :
        Every answer is delayed by this time.
    hang :
        No call is answered, as with an unplugged cable.
    fail_next :
        The next call of this name returns this DAQmx code.

    """

    delay_s: float = 0.0
    hang: bool = False
    fail_next: tuple[str, int] | None = None


class EmulatedDaq:
    """
    A DAQ host with one device, on a port of the loopback interface.

    Parameters
    ----------
    config :
        The channels and lines of the device.
    source :
        Returns the voltages at all inputs, in the order of `config.input_channels`. Noise of
        0.3 mV and the 16 bits of the converter are added here.
    sink :
        Receives the volts of all outputs and the levels of all lines after every write.

    """

    def __init__(
        self,
        config: DaqConfig,
        source: Callable[[], Array] | None = None,
        sink: Callable[[Array, Levels], None] | None = None,
        *,
        seed: int = 0,
    ) -> None:
        self.config = config
        self.host_faults = HostFaults()
        self.volts = np.full(len(config.input_channels), 2.0)  # used without a source
        self.device = EmulatedDaqDevice(
            config,
            source or (lambda: self.volts.copy()),
            sink or (lambda volts, levels: None),
            seed,
        )
        self.errors: list[str] = []
        self.port = 0
        self._server: grpc.Server | None = None
        self._ticking = PollingThread('emulated daq', self._tick, self._on_failure)

    @property
    def faults(self) -> DaqFaults:
        """Faults of the device."""
        return self.device.faults

    @property
    def output_V(self) -> Array:
        """Volts at the outputs, in the order of the rig file."""
        return self.device.output_V.copy()

    @property
    def lines(self) -> tuple[bool, ...]:
        """Levels at the lines, in the order of the rig file."""
        return tuple(map(bool, self.device.line_levels))

    def start(self, port: int = 0) -> EmulatedDaq:
        """Listen on a port of 127.0.0.1 (0: any free one) and start the sample clock."""
        self.port = port
        self._serve()
        self._ticking.start()
        return self

    def close(self) -> None:
        """Stop the host and the clock; may be called twice."""
        self._ticking.close()
        self.kill()

    def __enter__(self) -> EmulatedDaq:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def kill(self) -> None:
        """End the host process: its tasks are lost, the outputs keep their values."""
        server, self._server = self._server, None
        if server is not None:
            server.stop(None).wait(5.0)
            self.device.clear_all()

    def revive(self) -> None:
        """Restart the host on the same port, unless it is running."""
        if self._server is None:
            self._serve()

    def _serve(self) -> None:
        server = grpc.server(
            ThreadPoolExecutor(max_workers=16), options=(('grpc.so_reuseport', 0),)
        )
        services.add_NiDAQmxServicer_to_server(_Service(self.device, self.host_faults), server)
        self.port = _bound(server, self.port)
        server.start()
        self._server = server

    def _tick(self, thread: PollingThread) -> None:
        while not thread.ending.is_set():
            self.device.advance()
            thread.wait(MONOTONIC.now_s() + _TICK_S)

    def _on_failure(self, error: BaseException) -> None:
        """Record the error: a broken plant must not look like a broken device."""
        self.errors.append(repr(error))


def service(device: EmulatedDaqDevice, faults: HostFaults, clock: Clock) -> Any:
    """Return the gRPC service of a host, for any transport of its calls."""
    return _Service(device, faults, clock)


def _bound(server: grpc.Server, port: int) -> int:
    """Bind the server and return its port; retry, as a port in use may soon become free."""
    give_up_s = time.monotonic() + _BIND_S
    while True:
        try:
            return int(server.add_insecure_port(f'127.0.0.1:{port}'))
        except RuntimeError:
            if port == 0 or time.monotonic() > give_up_s:
                raise
            time.sleep(0.05)


def _answered(call: Call) -> Call:
    """Report DAQmx errors as NI's server does, with the code as trailing metadata."""

    @wraps(call)
    def answer(self: _Service, request: Any, context: Any) -> Any:
        faults = self.faults
        while faults.hang and context.is_active():
            self.clock.sleep(0.005)
        self.clock.sleep(faults.delay_s)
        try:
            if faults.fail_next is not None and faults.fail_next[0] == call.__name__:
                code, faults.fail_next = faults.fail_next[1], None
                raise DaqmxError(code)
            return call(self, request, context)
        except DaqmxError as error:
            context.set_trailing_metadata((('ni-error', str(error.code)),))
            context.abort(grpc.StatusCode.UNKNOWN, f'{error}\n\nStatus Code: {error.code}')

    return answer  # type: ignore[return-value]


def _attribute(known: Mapping[int, Any], request: Any, context: Any) -> Any:
    value = known.get(request.attribute_raw)
    if value is None:
        context.abort(grpc.StatusCode.UNIMPLEMENTED, f'attribute {request.attribute_raw:#x}')
    return value


class _Service(services.NiDAQmxServicer):
    """The calls that a driver of analogue inputs, analogue outputs and digital lines makes."""

    def __init__(
        self, device: EmulatedDaqDevice, faults: HostFaults, clock: Clock = MONOTONIC
    ) -> None:
        self._device = device
        self.faults = faults
        self.clock = clock

    # -- sessions and attributes

    @_answered
    def CreateTask(self, request: Any, context: Any) -> Any:
        name = request.session_name
        found = self._device.find(name) if name else None
        behaviour = request.initialization_behavior
        if behaviour == _ATTACH and found is None:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f'no session {name!r}')
        if found is not None and behaviour == 1:
            context.abort(grpc.StatusCode.ALREADY_EXISTS, f'session {name!r} exists')
        number = found if found is not None else self._device.create(name)
        answer = messages.CreateTaskResponse(new_session_initialized=found is None)
        answer.task.id = number
        return answer

    @_answered
    def ClearTask(self, request: Any, context: Any) -> Any:
        self._device.clear(self._number(request))
        return messages.ClearTaskResponse()

    @_answered
    def GetSystemInfoAttributeUInt32(self, request: Any, context: Any) -> Any:
        value = _attribute(_VERSION, request, context)
        return messages.GetSystemInfoAttributeUInt32Response(value=value)

    @_answered
    def GetTaskAttributeString(self, request: Any, context: Any) -> Any:
        task = self._device.task(self._number(request))
        known = {_TASK_NAME: task.name, _TASK_CHANNELS: task.channel_names}
        value = _attribute(known, request, context)
        return messages.GetTaskAttributeStringResponse(value=value)

    @_answered
    def GetTaskAttributeUInt32(self, request: Any, context: Any) -> Any:
        task = self._device.task(self._number(request))
        value = _attribute({_TASK_CHANNEL_COUNT: len(task.channels)}, request, context)
        return messages.GetTaskAttributeUInt32Response(value=value)

    @_answered
    def GetReadAttributeString(self, request: Any, context: Any) -> Any:
        task = self._device.task(self._number(request))
        value = _attribute({_READ_CHANNELS: task.channel_names}, request, context)
        return messages.GetReadAttributeStringResponse(value=value)

    @_answered
    def GetReadAttributeUInt32(self, request: Any, context: Any) -> Any:
        task = self._device.task(self._number(request))
        value = _attribute({_READ_CHANNEL_COUNT: len(task.channels)}, request, context)
        return messages.GetReadAttributeUInt32Response(value=value)

    @_answered
    def GetWriteAttributeUInt32(self, request: Any, context: Any) -> Any:
        task = self._device.task(self._number(request))
        known = {_WRITE_CHANNEL_COUNT: len(task.channels), _BOOLEANS_PER_CHANNEL: 1}
        value = _attribute(known, request, context)
        return messages.GetWriteAttributeUInt32Response(value=value)

    @_answered
    def GetChanAttributeInt32(self, request: Any, context: Any) -> Any:
        task = self._device.task(self._number(request))
        known = {_CHANNEL_TYPE: _CHANNEL_TYPES.get(task.kind), _MEASUREMENT: _VOLTAGE}
        value = _attribute(known, request, context)
        return messages.GetChanAttributeInt32Response(value_raw=value)

    @_answered
    def GetErrorString(self, request: Any, context: Any) -> Any:
        text = ERROR_TEXTS.get(request.error_code, '')
        return messages.GetErrorStringResponse(error_string=text)

    # -- channels and timing

    @_answered
    def CreateAIVoltageChan(self, request: Any, context: Any) -> Any:
        self._add(request, 'ai', request.physical_channel, request.min_val, request.max_val)
        return messages.CreateAIVoltageChanResponse()

    @_answered
    def CreateAOVoltageChan(self, request: Any, context: Any) -> Any:
        self._add(request, 'ao', request.physical_channel, request.min_val, request.max_val)
        return messages.CreateAOVoltageChanResponse()

    @_answered
    def CreateDOChan(self, request: Any, context: Any) -> Any:
        self._add(request, 'do', request.lines, 0.0, 1.0)
        return messages.CreateDOChanResponse()

    @_answered
    def CfgSampClkTiming(self, request: Any, context: Any) -> Any:
        self._device.clock(self._number(request), request.rate, request.samps_per_chan)
        return messages.CfgSampClkTimingResponse()

    @_answered
    def StartTask(self, request: Any, context: Any) -> Any:
        self._device.start(self._number(request))
        return messages.StartTaskResponse()

    @_answered
    def StopTask(self, request: Any, context: Any) -> Any:
        self._device.stop(self._number(request))
        return messages.StopTaskResponse()

    # -- data

    @_answered
    def ReadAnalogF64(self, request: Any, context: Any) -> Any:
        number, count = self._number(request), request.num_samps_per_chan
        try:
            samples = self._device.take(number, count, request.timeout)
        except DaqmxError as error:
            if error.code != SAMPLES_NOT_YET_AVAILABLE:
                raise
            # NI's server returns a status here, since it could also return samples read so far.
            return messages.ReadAnalogF64Response(status=error.code, samps_per_chan_read=0)
        by_scan = request.fill_mode_raw == 1
        flat = (samples.T if by_scan else samples).ravel()
        return messages.ReadAnalogF64Response(read_array=flat, samps_per_chan_read=count)

    @_answered
    def WriteAnalogF64(self, request: Any, context: Any) -> Any:
        self._device.put_volts(self._number(request), np.array(request.write_array))
        return messages.WriteAnalogF64Response(samps_per_chan_written=1)

    @_answered
    def WriteDigitalLines(self, request: Any, context: Any) -> Any:
        levels = np.frombuffer(request.write_array, dtype=bool)
        self._device.put_levels(self._number(request), levels)
        return messages.WriteDigitalLinesResponse(samps_per_chan_written=1)

    @staticmethod
    def _number(request: Any) -> int:
        return int(request.task.id)

    def _add(self, request: Any, kind: str, physical: str, low: float, high: float) -> None:
        for one in physical.split(','):
            self._device.add(self._number(request), kind, one.strip(), low, high)
