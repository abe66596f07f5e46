"""Modbus requests of one exchange with the drives, planned once from the register map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from softarm_ros.drivers.modbus_link import ModbusLink, NoAnswerError, RefusedError
from softarm_ros.drivers.modbus_registers import (
    MAX_READ,
    MAX_WRITE,
    RegisterRow,
    Span,
    merge_spans,
)
from softarm_ros.drivers.servo_config import COMMANDS, ServoConfig
from softarm_ros.geometry.arrays import Array

_READ = ('status_word', 'fault_code', 'torque', 'speed', 'position')


class AxisReading(NamedTuple):
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
        self._read_row = _row(config, self.axes, _READ, self._reads)
        self._write_row = _row(config, self.axes, COMMANDS, self._writes)
        self._signs = [-1.0 if config.axes[i].reversed else 1.0 for i in self.axes]
        # Codes are read without their sign, whatever the type of their registers.
        self._fault_mask = (1 << 16 * config.registers.fault_code.words) - 1

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
        given = torques.tolist()
        commands = [
            number
            for i, sign in zip(self.axes, self._signs)
            for number in (controls[i], sign * given[i])
        ]
        words = self._write_row.encode(commands)
        at = 0
        for span in self._writes:
            yield span.start, words[at : at + span.count]
            at += span.count

    def read(self, link: ModbusLink) -> dict[int, AxisReading]:
        """Return the reading of each axis of this unit, by its index in the rig."""
        words = [word for span in self._reads for word in link.read(span)]
        values = self._read_row.decode(words)
        readings, size = {}, len(_READ)
        for i, sign, at in zip(self.axes, self._signs, range(0, len(values), size)):
            status, fault, torque, speed, position = values[at : at + size]
            readings[i] = AxisReading(
                int(status) & 0xFFFF,
                int(fault) & self._fault_mask,
                sign * torque,
                sign * speed,
                sign * position,
            )
        return readings


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


def _row(
    config: ServoConfig, axes: Sequence[int], names: Sequence[str], spans: Sequence[Span]
) -> RegisterRow:
    """Return the registers of these names, axis by axis, in the words of spans."""
    registers = [getattr(config.registers, name) for name in names]
    places = [(one, config.axes[i].base + one.address) for i in axes for one in registers]
    return RegisterRow(places, spans)
