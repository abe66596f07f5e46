"""Emulated servo drives behind a Modbus TCP server."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from softarm_ros.drivers.servo_config import ServoConfig
from softarm_ros.emulation.drive_bank import DriveBank, DriveLoad
from softarm_ros.emulation.modbus_tcp import ModbusServer, Refusal

_START_S = 20.0
_LONGEST_S = 0.02  # longest step; while the emulation was stopped, the drives' time stood still


@dataclass
class LinkFaults:
    """
    Faults between master and drives; may be set at any time.

    Attributes
    ----------
    delay_s :
        Every answer is delayed by this time.
    lose_answers :
        Number of the next answers that are lost; their requests are still carried out.
    silent_units :
        These units neither carry out nor answer requests, as with an unplugged cable.
    refuse :
        Every request is answered with this Modbus exception code.

    """

    delay_s: float = 0.0
    lose_answers: int = 0
    silent_units: set[int] = field(default_factory=set)
    refuse: int | None = None


class EmulatedDrives(DriveBank):
    """
    Drives on a port of the loopback interface.

    One thread answers requests and advances the load in real time. Values of the shafts can be
    read at any time; `kill` and `revive` end and restart the server, while the shafts keep
    turning.
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
        self._server: ModbusServer | None = None
        self._tables = self._registers_of_units()
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self.port = 0

    # -- life

    def start(self, port: int = 0) -> EmulatedDrives:
        """Listen on a port of 127.0.0.1 (0: any free one) and start the time of the drives."""
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
        """Listen again on the same port, unless running."""
        if self._server is None:
            self._call(self._serve())

    # -- the thread

    def _run(self) -> None:
        loop = self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._serve())
        except BaseException as error:
            self._failure = error
            self._ready.set()
            loop.close()
            return
        loop.call_later(self._period_s, self._turn, loop, time.monotonic())
        self._ready.set()
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(asyncio.sleep(0.0))
            loop.close()

    def _call(self, work: Any) -> None:
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_S)

    async def _serve(self) -> None:
        server = ModbusServer(self._access, self._send)
        self.port = await server.start(self.port)
        self._server = server

    async def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    def _send(self, write: Callable[[bytes], None], frame: bytes) -> None:
        if self.faults.lose_answers > 0:
            self.faults.lose_answers -= 1
        elif self.faults.delay_s > 0.0:
            # Only the answer to this request is delayed, not the requests after it.
            asyncio.get_running_loop().call_later(self.faults.delay_s, write, frame)
        else:
            write(frame)

    def _turn(self, loop: asyncio.AbstractEventLoop, last: float) -> None:
        """Advance from a monotonic time to the present, and again after a period."""
        now = time.monotonic()
        try:
            self.advance(min(now - last, _LONGEST_S))
        except Exception as error:  # an error of the load must not look like one of the link
            self.errors.append(f'load: {error!r}')
            return
        # A callback: a task that sleeps would take a second turn of the loop for each period.
        loop.call_later(self._period_s, self._turn, loop, now)

    # -- registers

    def _registers_of_units(self) -> dict[tuple[int, str], _Table]:
        """Return the registers of all units, by unit and table."""
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

    def _access(
        self, unit: int, table: str, address: int, count: int, words: Sequence[int] | None
    ) -> Sequence[int] | int | None:
        """Read or write registers; see `Registers`."""
        if unit in self.faults.silent_units:
            return None
        if self.faults.refuse is not None:
            return self.faults.refuse
        place = self._tables.get((unit, table))
        if place is None or not place.has(address, count):
            return Refusal.ILLEGAL_ADDRESS
        first, memory, start = place.first, place.memory, address - place.first
        try:
            if words is not None:
                memory[start : start + count] = words
                self.written(unit, first, memory, range(address, address + count))
            else:
                self.show(unit, table, first, memory)
        except Exception as error:
            self.errors.append(f'registers: {error!r}')
            return Refusal.DEVICE_FAILURE
        return memory[start : start + count]


class _Table:
    """The registers of one unit at given addresses, and no others."""

    def __init__(self, addresses: set[int]) -> None:
        self.first = min(addresses)
        self.memory = [0] * (max(addresses) + 1 - self.first)
        self._addresses = addresses

    def has(self, address: int, count: int) -> bool:
        """Return whether `count` registers from an address on exist."""
        return self._addresses.issuperset(range(address, address + count))
