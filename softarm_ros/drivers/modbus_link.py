"""A Modbus TCP connection whose errors are exceptions with the device's code."""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.claim import TakenError, address_of, claim
from softarm_ros.drivers.counters import LinkCounter
from softarm_ros.drivers.modbus_registers import Span

# Host, port and time-out [s] of a client of pymodbus that is not connected yet.
ClientMaker = Callable[[str, int, float], Any]

EXCEPTIONS: dict[int, str] = {
    1: 'illegal function',
    2: 'illegal data address',
    3: 'illegal data value',
    4: 'device failure',
    5: 'acknowledge, still working',
    6: 'device busy',
    8: 'memory parity error',
    10: 'gateway path unavailable',
    11: 'gateway target failed to respond',
}


class LinkDownError(ConnectionError):
    """There is no connection (any more)."""


class NoAnswerError(TimeoutError):
    """The device did not answer in time; the connection stands."""


class RefusedError(ValueError):
    """The device answered with a Modbus exception."""

    def __init__(self, code: int, what: str) -> None:
        super().__init__(f'{EXCEPTIONS.get(code, "unknown exception")} ({what})')
        self.code = code


class ModbusLink:
    """
    Blocking requests over one connection, for one thread.

    Nothing is retried here: a torque that is late must not be sent again. `make_client` gives
    another client than that of TCP: one that has `deadline_s`, on this clock, and keeps it.
    An `exclusive` link is refused while another one of this computer leads to the same server;
    Modbus itself lets two programs write.
    """

    def __init__(
        self,
        host: str,
        port: int,
        response_timeout_s: float,
        counter: LinkCounter,
        clock: Clock = MONOTONIC,
        make_client: ClientMaker | None = None,
        *,
        exclusive: bool = False,
    ) -> None:
        self._host, self._port, self._timeout_s = host, port, response_timeout_s
        self._counter, self._clock = counter, clock
        self._make_client = make_client or _punctual_client
        self._client: Any = None
        self._exclusive = exclusive and make_client is None
        self._claim: socket.socket | None = None

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as known."""
        return self._client is not None

    def connect(self) -> None:
        """Connect; raises `LinkDownError` within the response time-out, or if not alone."""
        # Its messages say nothing that is not reported here; unhandled they go to stderr.
        logging.getLogger('pymodbus').addHandler(_SILENT)
        client = self._make_client(self._host, self._port, self._timeout_s)
        client.set_max_no_responses(1_000_000)  # when to give up is decided here
        if self._exclusive:
            self._claim = _claimed(self._host, self._port)
        if not client.connect():
            self.close()
            raise LinkDownError(f'no connection to {self._host}:{self._port}')
        self._client = client
        self._counter.connections += 1

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def read(self, span: Span) -> list[int]:
        """Return the words of a span; raises LinkDownError, NoAnswerError or RefusedError."""
        client = self._alive()
        read = (
            client.read_holding_registers
            if span.table == 'holding'
            else client.read_input_registers
        )
        what = f'read {span.count} from {span.table} {span.start} of unit {span.unit}'
        function = 3 if span.table == 'holding' else 4
        answer = self._exchange(
            lambda: read(span.start, count=span.count, device_id=span.unit), function, what
        )
        words = list(answer.registers)
        if len(words) != span.count:
            self.close()
            raise LinkDownError(f'{len(words)} registers in the answer to: {what}')
        return words

    def write(self, unit: int, start: int, words: Sequence[int]) -> None:
        """Write holding registers; raises as `read`."""
        client = self._alive()
        what = f'write {len(words)} to holding {start} of unit {unit}'
        self._exchange(
            lambda: client.write_registers(start, list(words), device_id=unit), 16, what
        )

    def send(self, unit: int, start: int, words: Sequence[int]) -> None:
        """Write holding registers without waiting for an answer, nor minding an error."""
        with contextlib.suppress(Exception):  # the last resort, on a line already given up
            self._alive().write_registers(
                start, list(words), device_id=unit, no_response_expected=True
            )

    def _alive(self) -> Any:
        # The client would silently reconnect within a request; that is for the driver to decide.
        if self._client is None or not self._client.connected:
            self.close()
            raise LinkDownError('not connected')
        return self._client

    def _exchange(self, request: Callable[[], Any], function: int, what: str) -> Any:
        self._counter.requests += 1
        try:
            answer = self._answer(request, what)
            if answer.isError():
                self._counter.refusals += 1
                raise RefusedError(int(answer.exception_code), what)
            if answer.function_code != function:
                self.close()
                raise LinkDownError(f'answer with function {answer.function_code} to: {what}')
        except (LinkDownError, NoAnswerError, RefusedError):
            self._counter.lost += 1
            raise
        self._counter.answers += 1
        return answer

    def _answer(self, request: Callable[[], Any], what: str) -> Any:
        from pymodbus.exceptions import ConnectionException, ModbusException, ModbusIOException

        client = self._alive()
        client.deadline_s = self._clock.now_s() + self._timeout_s
        try:
            return request()
        except ModbusIOException as error:
            if self._clock.now_s() >= client.deadline_s - 0.1 * self._timeout_s:
                self._counter.timeouts += 1
                limit_ms = 1e3 * self._timeout_s
                raise NoAnswerError(f'no answer within {limit_ms:.0f} ms to: {what}') from error
            self.close()
            raise LinkDownError(f'unreadable answer: {error}') from error
        except (ConnectionException, ModbusException, OSError) as error:
            self.close()
            raise LinkDownError(f'connection to {self._host}:{self._port} lost') from error


_SILENT = logging.NullHandler()


def _punctual_client(host: str, port: int, timeout_s: float) -> Any:
    """
    Return a client whose requests end at their deadline, `deadline_s` on the monotonic clock.

    pymodbus waits anew after every piece that is not the answer, such as a late one to the request
    before; then a request can take twice its time-out and more.
    """
    from pymodbus.client import ModbusTcpClient

    class PunctualClient(ModbusTcpClient):
        """Receives until the deadline of the request, whatever arrives."""

        deadline_s = 0.0

        def recv(self, size: int | None) -> bytes:
            left_s = self.deadline_s - time.monotonic()
            if left_s <= 0.0:
                return b''  # what pymodbus takes for a time-out
            self.comm_params.timeout_connect = left_s
            try:
                received: bytes = super().recv(size)
            finally:
                self.comm_params.timeout_connect = timeout_s
            return received

    return PunctualClient(host, port=port, timeout=timeout_s, retries=0)


def _claimed(host: str, port: int) -> socket.socket | None:
    """Return what marks a server as led to from here, until it is closed."""
    try:
        return claim(f'modbus-{address_of(host)}:{port}')
    except TakenError as error:
        raise LinkDownError(
            f'{host}:{port} is driven by another program of this computer; end that first'
        ) from error
