"""Emulated servo drives behind a Modbus TCP server."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pymodbus.constants import ExcCodes
from pymodbus.server import ModbusTcpServer
from pymodbus.server.requesthandler import ServerRequestHandler
from pymodbus.simulator import DataType, SimData, SimDevice

from softarm_ros.drivers.servo_config import ServoAxis, ServoConfig
from softarm_ros.emulation.drive_bank import DriveBank, DriveLoad

_WRITE_FUNCTIONS = (6, 16, 22, 23)
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
        units = sorted({axis.unit for axis in self.config.axes})
        devices = [self._device(unit) for unit in units]
        server = _Server(devices, self.faults, ('127.0.0.1', self.port))
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

    def _device(self, unit: int) -> SimDevice:
        used: dict[str, set[int]] = {'holding': set(), 'input': set()}
        registers = self.config.registers
        for axis in self._axes(unit):
            each = [getattr(registers, name) for name in type(registers).model_fields]
            each += [entry.register_ for entry in self.config.setup]
            for register in each:
                start = axis.base + register.address
                used[register.table].update(range(start, start + register.words))
        bits = [SimData(0, values=[False] * 16, datatype=DataType.BITS)]
        return SimDevice(
            unit,
            (bits, list(bits), _cells(used['holding']), _cells(used['input'])),
            action=partial(self._on_access, unit),
        )

    def _axes(self, unit: int) -> list[ServoAxis]:
        return [axis for axis in self.config.axes if axis.unit == unit]

    async def _on_access(
        self,
        unit: int,
        function: int,
        first: int,
        address: int,
        count: int,
        memory: list[int],
        values: list[int] | list[bool] | None,
    ) -> ExcCodes | None:
        if self.faults.refuse is not None:
            return self.faults.refuse
        if unit in self.faults.silent_units:
            return ExcCodes.DEVICE_BUSY  # it never gets an answer anyway
        try:
            table = 'input' if function == 4 else 'holding'
            if values is not None:
                memory[address - first : address - first + len(values)] = map(int, values)
                self.written(unit, first, memory, range(address, address + len(values)))
            else:
                self.show(unit, table, first, memory)
        except Exception as error:
            self.errors.append(f'registers: {error!r}')
            return ExcCodes.DEVICE_FAILURE
        return None


def _cells(addresses: set[int]) -> list[SimData]:
    """Return registers of 0 at these addresses, no others (a read elsewhere is refused)."""
    found = sorted(addresses) or [65535]
    return [SimData(a, values=0, datatype=DataType.REGISTERS) for a in found]


class _Server(ModbusTcpServer):
    """A server whose answers can be late or lost."""

    def __init__(
        self, devices: list[SimDevice], faults: LinkFaults, address: tuple[str, int]
    ) -> None:
        super().__init__(devices, address=address)
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
