"""Emulated servo drives behind a Modbus TCP server."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pymodbus.constants import ExcCodes
from pymodbus.server import ModbusTcpServer
from pymodbus.server.requesthandler import ServerRequestHandler
from pymodbus.simulator.simcore import SimCore

from softarm_ros.drivers.servo_config import ServoConfig
from softarm_ros.emulation.drive_bank import DriveBank, DriveLoad

_BIT_FUNCTIONS = (1, 2, 5, 15)  # of coils and inputs; drives have none
_READ_INPUT = 4
_START_S = 5.0
_LONGEST_S = 0.02  # an emulation that was not running for longer: its drives' time stood still
_SILENT = logging.NullHandler()


@dataclass
class LinkFaults:
    """
    Faults between master and drives; may be changed at any time.

    Attributes
    ----------
    delay_s :
        Every answer is late by this.
    lose_answers :
        Number of the next answers that are lost; the requests were carried out.
    silent_units :
        These units neither carry out nor answer anything, as if their cable were out.
    refuse :
        Every request is answered with this Modbus exception.

    """

    delay_s: float = 0.0
    lose_answers: int = 0
    silent_units: set[int] = field(default_factory=set)
    refuse: ExcCodes | None = None


class EmulatedDrives(DriveBank):
    """
    Drives on a port of the loopback interface.

    One thread answers requests and lets the load turn in real time. Values of the shafts can be
    read at any time; `kill` and `revive` end and restart the server, the shafts turn on.
    """

    def __init__(
        self,
        config: ServoConfig,
        load: DriveLoad | None = None,
        *,
        period_s: float = 0.002,
        watchdog_s: float = 0.1,
        brake_close_s: float = 0.0,
    ) -> None:
        super().__init__(config, load, watchdog_s=watchdog_s, brake_close_s=brake_close_s)
        self.faults = LinkFaults()
        self.errors: list[str] = []
        self._period_s = period_s
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: _Server | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self.port = 0

    # -- life

    def start(self, port: int = 0) -> EmulatedDrives:
        """Listen on a port of 127.0.0.1 (0: any free one) and let time run."""
        self.port = port
        self._thread = threading.Thread(target=self._run, name='emulated drives', daemon=True)
        self._thread.start()
        if not self._ready.wait(_START_S):
            raise TimeoutError('emulated drives did not start')
        if self._failure is not None:
            raise self._failure
        return self

    def close(self) -> None:
        """End the server; may be called twice."""
        if self._thread is None or self._loop is None:
            return
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_S)
        self._thread = None

    def __enter__(self) -> EmulatedDrives:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def kill(self) -> None:
        """Reset every connection and stop listening."""
        self._call(self._stop())

    def revive(self) -> None:
        """Listen again on the same port, if killed."""
        if self._server is None:
            self._call(self._serve())

    # -- the thread

    def _run(self) -> None:
        loop = self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        # Losing a client is not worth a line on stderr.
        logging.getLogger('pymodbus').addHandler(_SILENT)
        try:
            loop.run_until_complete(self._serve())
        except BaseException as error:
            self._failure = error
            self._ready.set()
            loop.close()
            return
        turning = loop.create_task(self._turn())
        self._ready.set()
        try:
            loop.run_forever()
        finally:
            turning.cancel()
            loop.run_until_complete(asyncio.gather(turning, return_exceptions=True))
            loop.run_until_complete(asyncio.sleep(0.0))
            loop.close()

    def _call(self, work: Any) -> None:
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_S)

    async def _serve(self) -> None:
        registers = _Registers(self._tables(), self._on_access)
        server = _Server(registers, self.faults, ('127.0.0.1', self.port))
        await server.serve_forever(background=True)
        self.port = server.transport.sockets[0].getsockname()[1]
        self._server = server

    async def _stop(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        server.alive = False
        # asyncio loses a connection whose server is closed while it is being accepted.
        for listening in server.transport.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())
        await asyncio.sleep(0.01)
        for connection in list(server.active_connections.values()):
            connection.transport.abort()
        await server.shutdown()
        await asyncio.sleep(0.01)  # lets the sockets close

    async def _turn(self) -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(self._period_s)
            now = time.monotonic()
            try:
                self.advance(min(now - last, _LONGEST_S))
            except Exception as error:  # an error of the load must not look like one of the link
                self.errors.append(f'load: {error!r}')
                raise
            last = now

    # -- registers

    def _tables(self) -> dict[tuple[int, str], _Table]:
        """Return the registers that each unit has, by unit and kind."""
        used: dict[tuple[int, str], set[int]] = {}
        registers = self.config.registers
        each = [getattr(registers, name) for name in type(registers).model_fields]
        each += [entry.register_ for entry in self.config.setup]
        for axis in self.config.axes:
            for register in each:
                start = axis.base + register.address
                addresses = used.setdefault((axis.unit, register.table), set())
                addresses.update(range(start, start + register.words))
        return {key: _Table(addresses) for key, addresses in used.items()}

    def _on_access(
        self, unit: int, table: str, place: _Table, address: int, values: list[int] | None
    ) -> ExcCodes | None:
        """Take what is written, or put what is read into its place."""
        if self.faults.refuse is not None:
            return self.faults.refuse
        if unit in self.faults.silent_units:
            return ExcCodes.DEVICE_BUSY  # it never gets an answer anyway
        first, memory = place.first, place.memory
        try:
            if values is not None:
                memory[address - first : address - first + len(values)] = map(int, values)
                self.written(unit, first, memory, range(address, address + len(values)))
            else:
                self.show(unit, table, first, memory)
        except Exception as error:
            self.errors.append(f'registers: {error!r}')
            return ExcCodes.DEVICE_FAILURE
        return None


class _Table:
    """Registers of one unit: those at some addresses, no others."""

    def __init__(self, addresses: set[int]) -> None:
        self.first = min(addresses)
        self.memory = [0] * (max(addresses) + 1 - self.first)
        self._addresses = addresses

    def has(self, address: int, count: int) -> bool:
        """Return whether so many registers from an address on are there."""
        return self._addresses.issuperset(range(address, address + count))


Access = Callable[[int, str, _Table, int, list[int] | None], ExcCodes | None]


class _Registers(SimCore):
    """The registers of all units; pymodbus' own take several times as long over each."""

    def __init__(self, tables: dict[tuple[int, str], _Table], access: Access) -> None:
        super().__init__([])
        self._tables, self._access = tables, access

    async def async_getValues(
        self, device_id: int, func_code: int, address: int, count: int = 1
    ) -> list[int] | list[bool] | ExcCodes:
        """Read."""
        return self._at(device_id, func_code, address, count, None)

    async def async_setValues(
        self, device_id: int, func_code: int, address: int, values: list[int] | list[bool]
    ) -> ExcCodes | None:
        """Write."""
        words = [int(value) for value in values]
        done = self._at(device_id, func_code, address, len(words), words)
        return done if isinstance(done, ExcCodes) else None

    def _at(
        self, unit: int, function: int, address: int, count: int, values: list[int] | None
    ) -> list[int] | ExcCodes:
        if function in _BIT_FUNCTIONS:
            return ExcCodes.ILLEGAL_FUNCTION
        kind = 'input' if function == _READ_INPUT else 'holding'
        table = self._tables.get((unit, kind))
        if table is None or not table.has(address, count):
            return ExcCodes.ILLEGAL_ADDRESS
        refusal = self._access(unit, kind, table, address, values)
        start = address - table.first
        return table.memory[start : start + count] if refusal is None else refusal


class _Server(ModbusTcpServer):
    """A server whose answers can be late or lost."""

    def __init__(self, registers: SimCore, faults: LinkFaults, address: tuple[str, int]) -> None:
        super().__init__([], address=address)
        self.context = registers
        self.faults = faults
        self.alive = True

    def callback_new_connection(self) -> ServerRequestHandler:
        return _Handler(self, None, None, None)


class _Handler(ServerRequestHandler):
    """Answers one client; the answer to a request is delayed, not the requests behind it."""

    def callback_connected(self) -> None:
        super().callback_connected()
        if not self.server.alive:  # accepted just before the server was killed
            self.transport.abort()

    def handle_later(self) -> None:
        """Answer now: nothing here waits, and pymodbus would take a task and a pipe for each."""
        try:
            self.handle_request().send(None)
        except StopIteration:
            return
        raise RuntimeError('a request to emulated drives has waited for something')

    def server_send(self, pdu: Any, addr: Any) -> None:
        faults: LinkFaults = self.server.faults
        if pdu is not None and pdu.dev_id in faults.silent_units:
            return
        if faults.lose_answers > 0:
            faults.lose_answers -= 1
            return
        if faults.delay_s > 0.0:
            self.loop.call_later(faults.delay_s, super().server_send, pdu, addr)
        else:
            super().server_send(pdu, addr)
