"""Requests to the servos of a Dynamixel bus, one at a time, for one thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.counters import LinkCounter
from softarm_ros.drivers.dynamixel.control_table import ALERT, REFUSALS, Item
from softarm_ros.drivers.dynamixel.packets import (
    BROADCAST,
    Instruction,
    Packet,
    PacketReader,
    encode,
)
from softarm_ros.drivers.serial_port import PortError, SerialPort

_FIND_S = 0.3  # for all 253 ids to answer a ping


class NoAnswerError(TimeoutError):
    """A servo did not answer in time."""

    def __init__(self, servo: int) -> None:
        super().__init__(f'no answer from id {servo}')


class RefusedError(ValueError):
    """A servo answered with an error; `code` is its number, the message has its meaning."""

    def __init__(self, servo: int, error: int, what: str) -> None:
        code = error & ~ALERT
        super().__init__(f'id {servo}: {what}: {REFUSALS.get(code, "unknown error")}')
        self.code = code


@dataclass(frozen=True)
class Status:
    """Answer of a servo: `alert` says that HARDWARE_ERROR is not 0."""

    id: int
    error: int
    data: bytes

    @property
    def alert(self) -> bool:
        """Whether the servo reports a hardware error."""
        return bool(self.error & ALERT)

    @property
    def refused(self) -> bool:
        """Whether the servo did not carry out the request; there are no data then."""
        return bool(self.error & ~ALERT)


class DynamixelBus:
    """
    The bus behind an open port.

    The protocol has no sequence numbers: an answer is recognised by its id and length, and bytes
    received before the request are discarded. Requests are not repeated.

    Parameters
    ----------
    port
        Open port at the speed of the servos.
    answer_timeout_s
        Time-out of the first answer, and between one answer and the next.
    counter
        Counts requests and losses.
    clock
        Clock for time-outs.

    """

    def __init__(
        self,
        port: SerialPort,
        answer_timeout_s: float,
        counter: LinkCounter,
        clock: Clock = MONOTONIC,
    ) -> None:
        self._port, self._timeout_s = port, answer_timeout_s
        self._counter, self._clock = counter, clock
        self.reader = PacketReader()

    def ping(self, servo: int) -> tuple[int, int] | None:
        """Return model number and firmware; None without an answer; may raise RefusedError."""
        try:
            data = self._one(Packet(servo, Instruction.PING), 3, 'ping').data
        except NoAnswerError:
            return None
        return int.from_bytes(data[:2], 'little'), data[2]

    def find(self) -> list[int]:
        """Return the ids of all servos on the bus, in rising order."""
        answers = self._ask(Packet(BROADCAST, Instruction.PING), None, 3, _FIND_S)
        return sorted(answers)

    def read(self, servo: int, address: int, length: int) -> Status:
        """Return a part of a servo's table; raise NoAnswerError or RefusedError."""
        request = Packet(servo, Instruction.READ, _pair(address, length))
        return self._one(request, length, f'read {length} at {address}')

    def write(self, servo: int, item: Item, value: int) -> Status:
        """Write a number and wait for the answer; raise the same errors as `read`."""
        content = item.address.to_bytes(2, 'little') + item.bytes_of(value)
        return self._one(
            Packet(servo, Instruction.WRITE, content), 0, f'write {value} at {item.address}'
        )

    def reboot(self, servo: int) -> None:
        """Reboot a servo; raise the same errors as `read`."""
        self._one(Packet(servo, Instruction.REBOOT), 0, 'reboot')

    def sync_write(self, item: Item, values: Mapping[int, int]) -> None:
        """Write a number to each servo; there is no answer."""
        content = _pair(item.address, item.size)
        for servo, value in values.items():
            content += bytes((servo,)) + item.bytes_of(value)
        self._send(Packet(BROADCAST, Instruction.SYNC_WRITE, content))

    def sync_read(self, address: int, length: int, servos: Sequence[int]) -> dict[int, Status]:
        """
        Read the same part of the tables of several servos; return answers without an error.

        A servo waits for those before it in the list: after a silent servo, all others are silent.
        """
        request = Packet(BROADCAST, Instruction.SYNC_READ, _pair(address, length) + bytes(servos))
        answers = self._ask(request, servos, length)
        return {servo: status for servo, status in answers.items() if not status.refused}

    # -- line

    def _one(self, request: Packet, length: int, what: str) -> Status:
        servo = request.id
        answers = self._ask(request, [servo], length)
        if servo not in answers:
            raise NoAnswerError(servo)
        status = answers[servo]
        if status.refused:
            self._counter.refusals += 1
            raise RefusedError(servo, status.error, what)
        return status

    def _ask(
        self,
        request: Packet,
        wanted: Sequence[int] | None,
        length: int,
        within_s: float | None = None,
    ) -> dict[int, Status]:
        """Return answers by id: of `wanted`, or of all servos that answer within a time [s]."""
        self._send(request)
        found: dict[int, Status] = {}
        end_s = self._clock.now_s() + (self._timeout_s if within_s is None else within_s)
        while wanted is None or len(found) < len(wanted):
            if self._clock.now_s() >= end_s:
                break
            for packet in self.reader.feed(self._port.read(end_s)):
                status = _status(packet, length)
                if status is None or not (wanted is None or status.id in wanted):
                    continue
                found[status.id] = status
                if within_s is None:
                    end_s = self._clock.now_s() + self._timeout_s
        self._counter.answers += len(found)
        if wanted is not None and len(found) < len(wanted):
            self._counter.timeouts += 1
            self._counter.lost += len(wanted) - len(found)
        return found

    def _send(self, request: Packet) -> None:
        """Discard received bytes, which are no answer, and send a request."""
        self.reader.feed(self._port.read(self._clock.now_s()))
        self.reader.clear()
        self._counter.requests += 1
        if not self._port.write(encode(request)):
            raise PortError('the serial line accepts no bytes')


def _pair(address: int, length: int) -> bytes:
    return address.to_bytes(2, 'little') + length.to_bytes(2, 'little')


def _status(packet: Packet, length: int) -> Status | None:
    """Return a packet as an answer with `length` bytes, or with an error only; else None."""
    if packet.instruction != Instruction.STATUS or not packet.parameters:
        return None
    error, data = packet.parameters[0], packet.parameters[1:]
    if len(data) != length and not (error & ~ALERT and not data):
        return None
    return Status(packet.id, error, data)
