"""Dynamixel servos on one bus: the host's bytes in, the servos' bytes out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from softarm_ros.drivers.dynamixel.packets import (
    BROADCAST,
    Instruction,
    Packet,
    PacketReader,
    encode,
)
from softarm_ros.emulation.dynamixel_servo import EmulatedServo
from softarm_ros.plant.faults import Faults, InjectedFault, probability

_BAD_INSTRUCTION = 2
_LAST_ID = 252


class EmulatedDynamixelBus:
    """
    The servos of a bus, with any line to it; thread-safe.

    In a sync read, each servo waits for the answers of those before it in the list: if one is
    silent, so are those after it.

    Parameters
    ----------
    servos
        Servos, in any order.
    names
        Names of the servos, in the same order, for faults.
    seed
        Seed of the bits that faults flip.

    Attributes
    ----------
    lock
        Held while servos change.
    packets : int
        Number of instructions received.

    """

    def __init__(
        self, servos: Sequence[EmulatedServo], names: Sequence[str], seed: int = 0
    ) -> None:
        self.servos = tuple(servos)
        self.lock = threading.Lock()
        self.packets = 0
        self._names = tuple(names)
        self._reader = PacketReader()
        self._random = np.random.default_rng([seed, 3])
        self._corrupt = 0.0
        self._ids = [servo.id for servo in servos]

    def take(self, data: bytes, now_s: float) -> bytes:
        """Return the servos' answers to bytes of the host."""
        with self.lock:
            answers = b''
            for packet in self._reader.feed(data):
                if packet.instruction == Instruction.STATUS:
                    continue
                self.packets += 1
                for servo in self.servos:
                    if servo.present(now_s):
                        servo.hear(now_s)
                answers += b''.join(map(self._sent, self._answers(packet, now_s)))
            return answers

    def watch(self, now_s: float) -> None:
        """Let the watchdogs of the servos check the time; called while the line is idle."""
        with self.lock:
            for servo in self.servos:
                servo.watch(now_s)

    def faults(self) -> Faults:
        """Return the faults of the servos and of the wire."""

        def servo(word: str) -> int:
            if word not in self._names:
                raise ValueError(f'no servo {word!r}; there are {", ".join(self._names)}')
            return self._names.index(word)

        at = ('SERVO', servo)
        return {
            'dynamixel silent': InjectedFault((at,), self._locked(self._silence)),
            'dynamixel overload': InjectedFault((at,), self._locked(lambda s: s.fail())),
            'dynamixel broken': InjectedFault(
                (at,), self._locked(lambda s: s.fail(persists=True))
            ),
            'dynamixel heal': InjectedFault((at,), self._locked(lambda s: s.heal())),
            'dynamixel restart': InjectedFault((at,), self._locked(lambda s: s.reboot(-np.inf))),
            'dynamixel id': InjectedFault(
                (at, ('ID', _id)), self._locked(lambda s, number: setattr(s, 'id', number))
            ),
            'dynamixel corrupt': InjectedFault((('P', probability),), self._garble),
        }

    # -- protocol

    def _answers(self, packet: Packet, now_s: float) -> list[Packet]:
        there = [servo for servo in self.servos if servo.present(now_s)]
        content = packet.parameters
        if packet.instruction == Instruction.SYNC_WRITE and len(content) >= 4:
            self._sync_write(there, content)
            return []
        if packet.instruction == Instruction.SYNC_READ and len(content) >= 4:
            return self._sync_read(there, content)
        mine = [servo for servo in there if packet.id in (servo.id, BROADCAST)]
        answers = [self._answer(servo, packet, now_s) for servo in mine]
        silent = packet.id == BROADCAST and packet.instruction != Instruction.PING
        return [] if silent else answers

    def _answer(self, servo: EmulatedServo, packet: Packet, now_s: float) -> Packet:
        content = packet.parameters
        error, data = 0, b''
        if packet.instruction == Instruction.PING:
            data = servo.read(0, 2)[1] + servo.read(6, 1)[1]
        elif packet.instruction == Instruction.READ and len(content) == 4:
            error, data = servo.read(*_pair(content))
        elif packet.instruction == Instruction.WRITE and len(content) > 2:
            error = servo.write(int.from_bytes(content[:2], 'little'), content[2:])
        elif packet.instruction == Instruction.REBOOT:
            servo.reboot(now_s)
        else:
            error = _BAD_INSTRUCTION
        return Packet(servo.id, Instruction.STATUS, bytes((error | servo.error,)) + data)

    def _sync_write(self, there: Sequence[EmulatedServo], content: bytes) -> None:
        address, length = _pair(content)
        for at in range(4, len(content) - length, length + 1):
            for servo in there:
                if servo.id == content[at]:
                    servo.write(address, content[at + 1 : at + 1 + length])

    def _sync_read(self, there: Sequence[EmulatedServo], content: bytes) -> list[Packet]:
        answers: list[Packet] = []
        for wanted in content[4:]:
            asked = [servo for servo in there if servo.id == wanted]
            if not asked:
                break  # those after it wait for its answer
            error, data = asked[0].read(*_pair(content))
            said = bytes((error | asked[0].error,)) + data
            answers.append(Packet(wanted, Instruction.STATUS, said))
        return answers

    def _sent(self, packet: Packet) -> bytes:
        data = bytearray(encode(packet))
        if self._corrupt and self._random.random() < self._corrupt:
            data[self._random.integers(4, len(data))] ^= 1 << int(self._random.integers(8))
        return bytes(data)

    # -- faults

    def _locked(self, work: Callable[..., object]) -> Callable[..., None]:
        def broken(index: int, *rest: object) -> None:
            with self.lock:
                work(self.servos[index], *rest)

        return broken

    @staticmethod
    def _silence(servo: EmulatedServo) -> None:
        servo.answers = False

    def _garble(self, share: float) -> None:
        self._corrupt = share

    def mend(self) -> None:
        """End all faults of the servos and of the wire."""
        with self.lock:
            self._corrupt = 0.0
            for servo, number in zip(self.servos, self._ids):
                servo.answers, servo.id = True, number
                servo.heal()


def _id(word: str) -> int:
    if not (word.isdecimal() and int(word) <= _LAST_ID):
        raise ValueError(f'id {word}: expected 0 to {_LAST_ID}')
    return int(word)


def _pair(content: bytes) -> tuple[int, int]:
    return int.from_bytes(content[:2], 'little'), int.from_bytes(content[2:4], 'little')
