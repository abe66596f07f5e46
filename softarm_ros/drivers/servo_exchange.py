"""Modbus requests of one exchange with the drives, planned once from the register map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from softarm_ros.drivers.modbus_link import ModbusLink, NoAnswerError, RefusedError
from softarm_ros.drivers.modbus_registers import (
    MAX_READ,
    MAX_WRITE,
    Register,
    Span,
    merge_spans,
)
from softarm_ros.drivers.servo_config import COMMANDS, ServoAxis, ServoConfig
from softarm_ros.geometry.arrays import Array

_READ = ('status_word', 'torque', 'speed', 'position', 'fault_code')


@dataclass(frozen=True)
class AxisReading:
    """Reading of one axis; SI units, signs of the rig's axis."""

    status_word: int
    fault_code: int
    torque: float
    speed: float
    position: float


class UnitExchange:
    """All requests for the axes of one Modbus unit."""

    def __init__(self, config: ServoConfig, unit: int) -> None:
        self.unit = unit
        self.axes = tuple(i for i, axis in enumerate(config.axes) if axis.unit == unit)
        self._config = config
        self._reads = merge_spans(
            [_span(config, i, name) for i in self.axes for name in _READ],
            config.max_gap,
            MAX_READ,
        )
        self._writes = merge_spans(
            [_span(config, i, name) for i in self.axes for name in COMMANDS], 0, MAX_WRITE
        )

    @property
    def requests(self) -> int:
        """Number of requests of one exchange."""
        return len(self._reads) + len(self._writes)

    @property
    def reads(self) -> int:
        """Number of requests of one reading."""
        return len(self._reads)

    def setup(self, link: ModbusLink) -> None:
        """
        Write the setup values, once for each connection, and read them back.

        Raises
        ------
        LinkDownError, NoAnswerError, RefusedError
            As for `ModbusLink.write`.
        ValueError
            If the device returns another value.

        """
        for i in self.axes:
            axis = self._config.axes[i]
            for entry in self._config.setup:
                register = entry.register_
                words = register.encode_raw(entry.value)
                start = axis.base + register.address
                link.write(self.unit, start, words)
                kept = link.read(Span(self.unit, 'holding', start, register.words))
                if kept != words:
                    raise ValueError(
                        f'{axis.name}: register {start} ({entry.comment or "setup"}) reads '
                        f'{register.decode_raw(kept)} after writing {entry.value}'
                    )

    def write(self, link: ModbusLink, controls: Sequence[int], torques: Array) -> None:
        """Write control words (all axes of the rig) and torques (n,) [N m] of this unit."""
        for start, words in self._words(controls, torques):
            link.write(self.unit, start, words)

    def send(self, link: ModbusLink, controls: Sequence[int], torques: Array) -> None:
        """Send the same as `write`, without waiting for an answer."""
        for start, words in self._words(controls, torques):
            link.send(self.unit, start, words)

    def _words(self, controls: Sequence[int], torques: Array) -> Iterator[tuple[int, list[int]]]:
        memory: dict[int, int] = {}
        for i in self.axes:
            axis, registers = self._config.axes[i], self._config.registers
            sign = -1.0 if axis.reversed else 1.0
            for register, words in (
                (registers.control_word, registers.control_word.encode_raw(controls[i])),
                (registers.torque_command, registers.torque_command.encode(sign * torques[i])),
            ):
                memory.update(enumerate(words, axis.base + register.address))
        for span in self._writes:
            yield span.start, [memory[a] for a in range(span.start, span.end)]

    def read(self, link: ModbusLink) -> dict[int, AxisReading]:
        """Return the reading of each axis of this unit, by its index in the rig."""
        memory: dict[tuple[str, int], int] = {}
        for span in self._reads:
            for address, word in enumerate(link.read(span), span.start):
                memory[span.table, address] = word
        return {i: self._reading(self._config.axes[i], memory) for i in self.axes}

    def _reading(self, axis: ServoAxis, memory: dict[tuple[str, int], int]) -> AxisReading:
        def words(register: Register) -> list[int]:
            start = axis.base + register.address
            return [memory[register.table, a] for a in range(start, start + register.words)]

        registers = self._config.registers
        sign = -1.0 if axis.reversed else 1.0
        return AxisReading(
            status_word=int(registers.status_word.decode_raw(words(registers.status_word)))
            & 0xFFFF,
            fault_code=int(registers.fault_code.decode_raw(words(registers.fault_code)))
            & ((1 << 16 * registers.fault_code.words) - 1),
            torque=sign * registers.torque.decode(words(registers.torque)),
            speed=sign * registers.speed.decode(words(registers.speed)),
            position=sign * registers.position.decode(words(registers.position)),
        )


def write_all(
    units: Iterable[UnitExchange], link: ModbusLink, controls: Sequence[int], torques: Array
) -> None:
    """Write to every unit; after trying all of them, raise the last error, if any."""
    failure: NoAnswerError | RefusedError | None = None
    for unit in units:
        try:
            unit.write(link, controls, torques)
        except (NoAnswerError, RefusedError) as error:
            failure = error
    if failure is not None:
        raise failure


def _span(config: ServoConfig, axis: int, name: str) -> Span:
    place, register = config.axes[axis], getattr(config.registers, name)
    return Span(place.unit, register.table, place.base + register.address, register.words)
