"""Emulated drives with a connection in memory: Modbus TCP in the time of a clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manual_clock import ManualClock
from pymodbus.constants import ExcCodes
from pymodbus.exceptions import ConnectionException, ModbusIOException
from pymodbus.pdu import ExceptionResponse
from pymodbus.pdu.register_message import (
    ReadHoldingRegistersResponse,
    ReadInputRegistersResponse,
    WriteMultipleRegistersResponse,
)

from softarm_ros.drivers.servo_config import ServoConfig
from softarm_ros.emulation.drive_bank import DriveBank, DriveLoad
from softarm_ros.emulation.modbus_drive import LinkFaults

ROUND_TRIP_S = 3e-4  # from a request to its answer
REGISTERS = 2000


class MemoryDrives(DriveBank):
    """Drives that advance with the clock, and the connection to them."""

    def __init__(
        self,
        config: ServoConfig,
        clock: ManualClock,
        load: DriveLoad | None = None,
        *,
        period_s: float = 0.002,  # of the drives and their load
        **times_s: float,
    ) -> None:
        super().__init__(config, load, clock=clock, **times_s)
        self.clock = clock
        self._period_s = period_s
        self.faults = LinkFaults()
        self.listening = True
        self.port = 1
        self.errors: list[str] = []  # stays empty: errors of the load become clock failures
        self.lives = 0  # number of times the device was killed; each ends its connections
        self._registers: dict[tuple[int, str], list[int]] = {}
        self._stop = clock.event()
        self._turning = clock.task(self._turn, 'drives')
        self._turning.start()

    def start(self) -> MemoryDrives:
        """Return the drives, which run already."""
        return self

    def _turn(self) -> None:
        while not self._stop.wait(self._period_s):
            self.advance(self._period_s)

    def client(self, host: str, port: int, timeout_s: float) -> MemoryClient:
        """Return a client that is not connected yet; this method is a `ClientMaker`."""
        return MemoryClient(self)

    def kill(self) -> None:
        """End every connection and stop answering."""
        self.listening = False
        self.lives += 1

    def revive(self) -> None:
        """Answer again."""
        self.listening = True

    def close(self) -> None:
        """Stop the drives; a second call does nothing."""
        self._stop.set()
        self._turning.join()

    def registers(self, unit: int, table: str) -> list[int]:
        """Return the memory of a unit."""
        return self._registers.setdefault((unit, table), [0] * REGISTERS)


class MemoryClient:
    """Replaces the TCP client of pymodbus, with the same answers and errors."""

    def __init__(self, drives: MemoryDrives) -> None:
        self._drives = drives
        self._life: int | None = None
        self.deadline_s = 0.0

    def set_max_no_responses(self, count: int) -> None:
        """Do nothing: this client never gives up a connection by itself."""

    def connect(self) -> bool:
        self._drives.clock.sleep(ROUND_TRIP_S)
        self._life = self._drives.lives if self._drives.listening else None
        return self.connected

    def close(self) -> None:
        self._life = None

    @property
    def connected(self) -> bool:
        return self._life is not None

    def read_holding_registers(self, start: int, *, count: int, device_id: int) -> Any:
        answer = self._answer(device_id, 3, 'holding', start, count, None)
        if isinstance(answer, list):
            return ReadHoldingRegistersResponse(registers=answer)
        return answer

    def read_input_registers(self, start: int, *, count: int, device_id: int) -> Any:
        answer = self._answer(device_id, 4, 'input', start, count, None)
        if isinstance(answer, list):
            return ReadInputRegistersResponse(registers=answer)
        return answer

    def write_registers(
        self,
        start: int,
        words: Sequence[int],
        *,
        device_id: int,
        no_response_expected: bool = False,
    ) -> Any:
        if no_response_expected:
            self._carry_out(device_id, 'holding', start, len(words), words)
            return None
        answer = self._answer(device_id, 16, 'holding', start, len(words), words)
        if isinstance(answer, list):
            return WriteMultipleRegistersResponse(address=start, count=len(words))
        return answer

    def _answer(
        self,
        unit: int,
        function: int,
        table: str,
        start: int,
        count: int,
        words: Sequence[int] | None,
    ) -> list[int] | ExceptionResponse:
        drives, faults, clock = self._drives, self._drives.faults, self._drives.clock
        answer = self._carry_out(unit, table, start, count, words)
        wait_s = ROUND_TRIP_S + faults.delay_s
        lost = answer is None
        if faults.lose_answers > 0:
            faults.lose_answers -= 1
            lost = True
        left_s = self.deadline_s - clock.now_s()
        clock.sleep(left_s if lost else min(wait_s, left_s))
        if self._life != drives.lives:
            self.close()
            raise ConnectionException('reset by the drives')
        if lost or wait_s >= left_s:
            raise ModbusIOException('no answer')
        if isinstance(answer, ExcCodes):
            return ExceptionResponse(function, exception_code=answer)
        assert answer is not None
        return answer

    def _carry_out(
        self, unit: int, table: str, start: int, count: int, words: Sequence[int] | None
    ) -> list[int] | ExcCodes | None:
        """Return the registers' words or the exception code; None from an unreachable unit."""
        drives = self._drives
        if self._life != drives.lives:
            self.close()
            raise ConnectionException('reset by the drives')
        if unit in drives.faults.silent_units:
            return None
        if drives.faults.refuse is not None:
            return drives.faults.refuse
        memory = drives.registers(unit, table)
        if words is not None:
            memory[start : start + count] = words
            drives.written(unit, 0, memory, range(start, start + count))
        else:
            drives.show(unit, table, 0, memory)
        return memory[start : start + count]
