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

# Makes an unconnected pymodbus client from host, port and time-out [s].
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
    """There is no connection, or it was lost."""


class NoAnswerError(TimeoutError):
    """The device did not answer in time; the connection is kept."""


class RefusedError(ValueError):
    """The device answered with a Modbus exception."""

    def __init__(self, code: int, what: str) -> None:
        super().__init__(f'{EXCEPTIONS.get(code, "unknown exception")} ({what})')
        self.code = code


class ModbusLink:
    """
    Blocking requests over one connection, for one thread.

    Requests are not retried: a late torque must not be sent again. `make_client` replaces the
    TCP client; its client must observe an attribute `deadline_s` on this clock. An `exclusive`
    link is refused while this computer has another one to the same server, because Modbus itself
    lets two programs write.
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
        """Whether there is a connection that is not known to be lost."""
        return self._client is not None

    def connect(self) -> None:
        """Connect; raises `LinkDownError` within the response time-out, or if in use."""
        # Silence its messages: they repeat errors reported here, and would go to stderr.
        logging.getLogger('pymodbus').addHandler(_SILENT)
        client = self._make_client(self._host, self._port, self._timeout_s)
        client.set_max_no_responses(1_000_000)  # this class decides when to give up
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
        """Return the words of a span; raise LinkDownError, NoAnswerError or RefusedError."""
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
        """Write holding registers; raise the same errors as `read`."""
        client = self._alive()
        what = f'write {len(words)} to holding {start} of unit {unit}'
        answer = self._exchange(
            lambda: client.write_registers(start, list(words), device_id=unit), 16, what
        )
        if (answer.address, answer.count) != (start, len(words)):
            self.close()
            written = f'{answer.count} written to {answer.address}'
            raise LinkDownError(f'{written}, in the answer to: {what}')

    def send(self, unit: int, start: int, words: Sequence[int]) -> None:
        """Write holding registers without waiting for an answer; ignore errors."""
        with contextlib.suppress(Exception):  # last resort on a failed connection
            self._alive().write_registers(
                start, list(words), device_id=unit, no_response_expected=True
            )

    def _alive(self) -> Any:
        # The client would silently reconnect within a request; the driver has to decide that.
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
            raise LinkDownError(f'unreadable answer to: {what}: {error}') from error
        except (ConnectionException, ModbusException, OSError) as error:
            self.close()
            raise LinkDownError(f'connection to {self._host}:{self._port} lost') from error


_SILENT = logging.NullHandler()


def _punctual_client(host: str, port: int, timeout_s: float) -> Any:
    """
    Return a client whose requests end at their deadline, `deadline_s` on the monotonic clock.

    pymodbus restarts its time-out after every piece that is not the answer, such as a late answer
    to the previous request. A request can then take more than twice its time-out.
    """
    from pymodbus.client import ModbusTcpClient

    class PunctualClient(ModbusTcpClient):
        """Receives until the deadline of the request, whatever arrives."""

        deadline_s = 0.0

        def recv(self, size: int | None) -> bytes:
            left_s = self.deadline_s - time.monotonic()
            if left_s <= 0.0:
                return b''  # pymodbus treats this as a time-out
            self.comm_params.timeout_connect = left_s
            try:
                received: bytes = super().recv(size)
            finally:
                self.comm_params.timeout_connect = timeout_s
            return received

    return PunctualClient(host, port=port, timeout=timeout_s, retries=0)


def _claimed(host: str, port: int) -> socket.socket | None:
    """Return a socket that claims a server for this process until it is closed."""
    try:
        return claim(f'modbus-{address_of(host)}:{port}')
    except TakenError as error:
        raise LinkDownError(
            f'{host}:{port} is driven by another program of this computer; end that first'
        ) from error
