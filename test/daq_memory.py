"""An emulated DAQ that the real `nidaqmx` package calls in memory, in the time of a clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import grpc
import numpy as np
from manual_clock import ManualClock
from numpy.typing import NDArray

from softarm_ros.drivers.daq_config import DaqConfig, DaqHost
from softarm_ros.emulation.daq_device import DaqFaults, EmulatedDaqDevice
from softarm_ros.emulation.daq_service import HostFaults, service

Array = NDArray[np.float64]
TICK_S = 0.002  # time step of the device
CALL_S = 5e-4  # from a call to its answer


class MemoryDaq:
    """A DAQ host with one device, as `EmulatedDaq`, which advances with the clock."""

    def __init__(
        self,
        config: DaqConfig,
        clock: ManualClock,
        source: Callable[[], Array] | None = None,
        sink: Callable[[Array, NDArray[np.bool_]], None] | None = None,
        *,
        seed: int = 0,
    ) -> None:
        self.config = config
        self.clock = clock
        self.port = 1
        self.errors: list[str] = []  # stays empty: errors of the device become clock failures
        self.host_faults = HostFaults()
        self.volts = np.full(len(config.input_channels), 2.0)  # inputs if there is no source
        self.device = EmulatedDaqDevice(
            config,
            source or (lambda: self.volts.copy()),
            sink or (lambda volts, levels: None),
            seed,
            clock,
        )
        self.service = service(self.device, self.host_faults, clock)
        self.listening = True
        self.calls: list[_Call] = []  # under way
        self._stop = clock.event()
        self._ticking = clock.task(self._tick, 'daq')

    def start(self) -> MemoryDaq:
        self._ticking.start()
        return self

    @property
    def faults(self) -> DaqFaults:
        return self.device.faults

    @property
    def output_V(self) -> Array:
        return self.device.output_V.copy()

    @property
    def lines(self) -> tuple[bool, ...]:
        return tuple(map(bool, self.device.line_levels))

    def channel(self, host: DaqHost) -> MemoryChannel:
        """Return a channel to the host; this method is an `OpenChannel`."""
        return MemoryChannel(self)

    def kill(self) -> None:
        """End the host process: its tasks are lost, the outputs keep their values."""
        self.listening = False
        self.device.clear_all()
        for call in self.calls:
            call.end(grpc.StatusCode.UNAVAILABLE, 'the host has ended')

    def revive(self) -> None:
        self.listening = True

    def close(self) -> None:
        self._stop.set()
        self._ticking.join()

    def _tick(self) -> None:
        while not self._stop.wait(TICK_S):
            self.device.advance()


class _Metadatum(NamedTuple):
    key: str
    value: str


class _CallError(grpc.RpcError):
    """Error of a failed call, with the methods of `grpc.Call`."""

    def __init__(self, code: grpc.StatusCode, details: str, trailing: Any) -> None:
        super().__init__(details)
        self._code, self._details, self._trailing = code, details, trailing

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> Any:
        return self._trailing


class _AbortError(Exception):
    """Ends the service's work on a call."""


class _Call:
    """One call: the service runs in a task of its own, the caller waits until a deadline."""

    def __init__(self, daq: MemoryDaq, method: str, request: Any, timeout_s: float) -> None:
        self._daq, self._method, self._request = daq, method, request
        self._deadline_s = daq.clock.now_s() + timeout_s
        self._trailing: Any = ()
        self._ended = daq.clock.event()
        self._answer: Any = None
        self._error: _CallError | None = None

    def perform(self) -> Any:
        """Return the answer; raises `_CallError`."""
        if not self._daq.listening:
            raise _CallError(grpc.StatusCode.UNAVAILABLE, 'nobody listens', ())
        self._daq.calls.append(self)
        self._daq.clock.task(self._work, self._method).start()
        if not self._ended.wait(self._deadline_s - self._daq.clock.now_s()):
            self.end(grpc.StatusCode.DEADLINE_EXCEEDED, 'Deadline Exceeded')
        self._daq.calls.remove(self)
        if self._error is not None:
            raise self._error
        return self._answer

    def end(self, code: grpc.StatusCode, details: str) -> None:
        if not self._ended.is_set():
            self._error = _CallError(code, details, self._trailing)
            self._ended.set()

    def _work(self) -> None:
        self._daq.clock.sleep(CALL_S)
        try:
            answer = getattr(self._daq.service, self._method)(self._request, self)
        except _AbortError:
            return
        if not self._ended.is_set():
            self._answer = answer
            self._ended.set()

    # -- the context of the service

    def is_active(self) -> bool:
        return not self._ended.is_set()

    def set_trailing_metadata(self, trailing: Any) -> None:
        self._trailing = [_Metadatum(*entry) for entry in trailing]

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        self.end(code, details)
        raise _AbortError


class _Method:
    """Calls one method of the service."""

    def __init__(self, daq: MemoryDaq, path: str) -> None:
        self._daq, self._name = daq, path.rpartition('/')[2]

    def __call__(self, request: Any, timeout: float | None = None, **_: Any) -> Any:
        limit_s = np.inf if timeout is None else timeout
        return _Call(self._daq, self._name, request, limit_s).perform()


class MemoryChannel(grpc.Channel):  # type: ignore[misc]
    """Replaces a channel over the network."""

    def __init__(self, daq: MemoryDaq) -> None:
        self._daq = daq

    def unary_unary(self, method: str, *_: Any, **__: Any) -> _Method:
        return _Method(self._daq, method)

    def unary_stream(self, *_: Any, **__: Any) -> Any:
        return None

    def stream_unary(self, *_: Any, **__: Any) -> Any:
        return None

    def stream_stream(self, *_: Any, **__: Any) -> Any:
        return None

    def subscribe(self, callback: Any, try_to_connect: bool = False) -> None:
        return None

    def unsubscribe(self, callback: Any) -> None:
        return None

    def close(self) -> None:
        return None

    def __enter__(self) -> MemoryChannel:
        return self

    def __exit__(self, *_: object) -> None:
        return None
