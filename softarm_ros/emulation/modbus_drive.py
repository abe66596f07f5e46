"""Emulated servo drives: a Modbus TCP server with a mechanical load behind each axis."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pymodbus.constants import ExcCodes
from pymodbus.server import ModbusTcpServer
from pymodbus.server.requesthandler import ServerRequestHandler
from pymodbus.simulator import DataType, SimData, SimDevice

from softarm_ros.drivers.modbus_registers import Register
from softarm_ros.drivers.servo_config import ServoAxis, ServoConfig
from softarm_ros.emulation.cia402_drive import EXCESS_SPEED_FAULT, EmulatedDrive

Array = NDArray[np.float64]
_WRITE_FUNCTIONS = (6, 16, 22, 23)
_START_S = 5.0
_LONGEST_S = 0.02  # an emulation that was not running for longer: its drives' time stood still
_SILENT = logging.NullHandler()


class DriveLoad(Protocol):
    """What the motors turn; arrays (n,) in the order and sense of the rig's axes."""

    def step(self, torque_N_m: Array, dt_s: float) -> tuple[Array, Array]:
        """Advance by dt under these torques; return positions [rad] and speeds [rad/s]."""


class Flywheels:
    """Independent inertias with viscous friction, integrated exactly over each step."""

    def __init__(self, n: int, inertia_kg_m2: float = 2e-3, damping_N_m_s: float = 0.02) -> None:
        self._inertia, self._damping = inertia_kg_m2, damping_N_m_s
        self._position, self._speed = np.zeros(n), np.zeros(n)

    def step(self, torque_N_m: Array, dt_s: float) -> tuple[Array, Array]:
        """Advance; see `DriveLoad`."""
        rate = self._damping / self._inertia
        final = torque_N_m / self._damping
        decay = np.exp(-rate * dt_s)
        lag = self._speed - final
        self._position = self._position + final * dt_s + lag * (1.0 - decay) / rate
        self._speed = final + lag * decay
        return self._position.copy(), self._speed.copy()


@dataclass
class LinkFaults:
    """
    What goes wrong between master and drives; change it at any time.

    Attributes
    ----------
    delay_s :
        Every answer comes so much later.
    lose_answers :
        So many of the next answers are lost; the requests were carried out.
    silent_units :
        These units neither carry out nor answer anything, as if their cable were out.
    refuse :
        Every request is answered with this Modbus exception.

    """

    delay_s: float = 0.0
    lose_answers: int = 0
    silent_units: set[int] = field(default_factory=set)
    refuse: ExcCodes | None = None


class EmulatedDrives:
    """
    Drives as a rig file describes them, on a port of the loopback interface.

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
        self.config = config
        self.faults = LinkFaults()
        self.errors: list[str] = []
        self._load: DriveLoad = load if load is not None else Flywheels(len(config.axes))
        self._period_s = period_s
        self._drives = [
            EmulatedDrive(axis.torque_limit_N_m, watchdog_s, brake_close_s) for axis in config.axes
        ]
        self._signs = np.array([-1.0 if axis.reversed else 1.0 for axis in config.axes])
        self._lock = threading.Lock()
        self._torque_writes: list[tuple[float, int, float]] = []
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
        """End; may be called twice."""
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

    # -- what a test or a plant looks at and does

    @property
    def torque(self) -> Array:
        """Torques at the shafts (n,) [N m], in the sense of the rig's axes."""
        with self._lock:
            return self._signs * [drive.torque for drive in self._drives] + 0.0

    @property
    def brakes_lifted(self) -> NDArray[np.bool_]:
        """Which holding brakes (n,) have current."""
        with self._lock:
            return np.array([drive.brake_lifted for drive in self._drives])

    @property
    def position(self) -> Array:
        """Positions (n,) [rad], in the sense of the rig's axes."""
        with self._lock:
            return self._signs * [drive.position for drive in self._drives]

    @property
    def speed(self) -> Array:
        """Speeds (n,) [rad/s], in the sense of the rig's axes."""
        with self._lock:
            return self._signs * [drive.speed for drive in self._drives]

    @property
    def states(self) -> tuple[str, ...]:
        """State of each drive."""
        with self._lock:
            return tuple(drive.state for drive in self._drives)

    def fail(self, axis: int, code: int, persists: bool = False) -> None:
        """Put a drive into a fault with this code; see `EmulatedDrive.fail`."""
        with self._lock:
            self._drives[axis].fail(code, persists)

    def heal(self, axis: int) -> None:
        """Remove the cause of a fault that persists."""
        with self._lock:
            self._drives[axis].heal()

    def torque_writes(self) -> list[tuple[float, int, float]]:
        """Return and forget the torques written: monotonic time [s], axis, N m (rig's sense)."""
        with self._lock:
            written, self._torque_writes = self._torque_writes, []
        return written

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
                self._advance(min(now - last, _LONGEST_S))
            except Exception as error:  # a broken load must not look like a broken link
                self.errors.append(f'load: {error!r}')
                raise
            last = now

    def _advance(self, dt_s: float) -> None:
        with self._lock:
            torque = self._signs * [drive.torque for drive in self._drives]
        position, speed = self._load.step(torque, dt_s)
        with self._lock:
            for i, drive in enumerate(self._drives):
                drive.position = float(self._signs[i] * position[i])
                drive.speed = float(self._signs[i] * speed[i])
                drive.advance(dt_s)
                # A drive trips a little later than the master should have.
                limit = 1.2 * self.config.axes[i].speed_limit_rad_s
                if drive.state == 'enabled' and abs(drive.speed) > limit:
                    drive.fail(EXCESS_SPEED_FAULT)

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
                self._after_write(unit, first, memory, range(address, address + len(values)))
            else:
                self._before_read(unit, table, first, memory)
        except Exception as error:
            self.errors.append(f'registers: {error!r}')
            return ExcCodes.DEVICE_FAILURE
        return None

    def _after_write(self, unit: int, first: int, memory: list[int], written: range) -> None:
        registers = self.config.registers
        now = time.monotonic()
        with self._lock:
            for i, axis in enumerate(self.config.axes):
                if axis.unit != unit:
                    continue
                torque, control = registers.torque_command, registers.control_word
                if axis.base + torque.address in written:
                    value = torque.decode(_words(axis, torque, first, memory))
                    self._drives[i].write_torque(value)
                    self._torque_writes.append((now, i, float(self._signs[i] * value)))
                    del self._torque_writes[:-100_000]
                if axis.base + control.address in written:
                    word = int(control.decode_raw(_words(axis, control, first, memory)))
                    self._drives[i].write_control(word & 0xFFFF)

    def _before_read(self, unit: int, table: str, first: int, memory: list[int]) -> None:
        registers = self.config.registers
        with self._lock:
            for axis, drive in zip(self.config.axes, self._drives):
                if axis.unit != unit:
                    continue
                shown: Sequence[tuple[Register, list[int]]] = (
                    (registers.torque, registers.torque.encode(drive.torque)),
                    (registers.speed, registers.speed.encode(drive.speed)),
                    (registers.position, registers.position.encode(drive.position)),
                    (registers.status_word, registers.status_word.encode_raw(drive.status_word)),
                    (registers.fault_code, registers.fault_code.encode_raw(drive.fault_code)),
                )
                for register, words in shown:
                    if register.table == table:
                        at = axis.base + register.address - first
                        memory[at : at + register.words] = words


def _words(axis: ServoAxis, register: Register, first: int, memory: list[int]) -> list[int]:
    at = axis.base + register.address - first
    return memory[at : at + register.words]


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
