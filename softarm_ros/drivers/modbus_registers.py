"""Conversion of numbers to 16-bit Modbus registers, and grouping of registers into requests."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, field_validator

from softarm_ros.geometry.configs import ConfigBlock, Finite

LAST_ADDRESS = 0xFFFF
Address = Annotated[int, Field(ge=0, le=LAST_ADDRESS)]
NumberType = Literal['int16', 'uint16', 'int32', 'uint32', 'float32']
WordOrder = Literal['high_first', 'low_first']
Table = Literal['holding', 'input']

# Protocol limits per request [registers]: functions 3 and 4; function 16.
MAX_READ = 125
MAX_WRITE = 123

_FORMATS: dict[NumberType, str] = {
    'int16': '>h',
    'uint16': '>H',
    'int32': '>i',
    'uint32': '>I',
    'float32': '>f',
}


class Register(ConfigBlock):
    """One number of a device: SI value = `scale` * number + `zero`."""

    address: Address = Field(description='counted from 0, relative to the base of the axis')
    type: NumberType = 'int16'
    word_order: WordOrder = Field(
        default='high_first',
        description='word order of 32-bit numbers; bytes in a word are big-endian',
    )
    scale: Finite = Field(
        default=1.0, description='SI units per count; negative reverses the sign'
    )
    zero: Finite = Field(default=0.0, description='SI value of the number 0')
    table: Table = Field(default='holding', description='input registers cannot be written')

    @field_validator('scale')
    @classmethod
    def _not_zero(cls, scale: float) -> float:
        if scale == 0.0:
            raise ValueError('expected a scale other than 0')
        return scale

    @property
    def words(self) -> int:
        """Number of 16-bit registers."""
        return struct.calcsize(_FORMATS[self.type]) // 2

    def decode(self, words: Sequence[int]) -> float:
        """Return the SI value; raise ValueError if the number of words is wrong."""
        return self.scale * self.decode_raw(words) + self.zero

    def decode_raw(self, words: Sequence[int]) -> float | int:
        """Return the raw number of the device."""
        if len(words) != self.words:
            raise ValueError(f'{self.type} takes {self.words} registers, found {len(words)}')
        ordered = words if self.word_order == 'high_first' else tuple(reversed(words))
        data = struct.pack(f'>{len(ordered)}H', *ordered)
        number = struct.unpack(_FORMATS[self.type], data)[0]
        assert isinstance(number, int | float)
        return number

    def encode(self, value: float) -> list[int]:
        """
        Return the words of an SI value, rounded to the nearest count.

        Raises
        ------
        ValueError
            If the value does not fit into the type.

        """
        return self.encode_raw((value - self.zero) / self.scale)

    def encode_raw(self, number: float) -> list[int]:
        """Return the words of a raw number; raise ValueError if it is too large."""
        try:
            raw = number if self.type == 'float32' else round(number)
            data = struct.pack(_FORMATS[self.type], raw)
        except (struct.error, OverflowError, ValueError) as error:
            raise ValueError(f'{number} does not fit into {self.type}') from error
        words = list(struct.unpack(f'>{len(data) // 2}H', data))
        return words if self.word_order == 'high_first' else words[::-1]


@dataclass(frozen=True)
class Span:
    """Neighbouring registers of one table of one unit, transferred by one request."""

    unit: int
    table: Table
    start: int
    count: int

    @property
    def end(self) -> int:
        """One past the last address."""
        return self.start + self.count


def merge_spans(spans: Iterable[Span], max_gap: int, max_count: int) -> list[Span]:
    """
    Merge spans into fewer ones that cover them, ordered by unit, table and address.

    Spans merge if at most `max_gap` registers lie between them and the result is no longer than
    `max_count`. A given span is never split.
    """
    merged: list[Span] = []
    for span in sorted(set(spans), key=lambda s: (s.unit, s.table, s.start, s.count)):
        last = merged[-1] if merged else None
        if (
            last is not None
            and (last.unit, last.table) == (span.unit, span.table)
            and span.start - last.end <= max_gap
            and max(last.end, span.end) - last.start <= max_count
        ):
            count = max(last.end, span.end) - last.start
            merged[-1] = Span(last.unit, last.table, last.start, count)
        else:
            merged.append(span)
    return merged


class RegisterRow:
    """
    The numbers in some spans of one unit, converted together.

    Drives are read and written a hundred times a second, and number by number takes longer. The
    words of all spans are one list, in the order of the spans.

    Parameters
    ----------
    registers
        Register of each of the k numbers, and the address of its first word.
    spans
        Spans that contain all of them.

    """

    def __init__(self, registers: Sequence[tuple[Register, int]], spans: Sequence[Span]) -> None:
        self._registers = tuple(register for register, _ in registers)
        cells = [(span.table, at) for span in spans for at in range(span.start, span.end)]
        index = {cell: i for i, cell in enumerate(cells)}
        # Index in the spans of each word, in the order of the numbers, the high word first.
        self._at = [
            index[register.table, start + word]
            for register, start in registers
            for word in range(register.words)[:: 1 if register.word_order == 'high_first' else -1]
        ]
        self._source = [-1] * len(cells)  # of each word of the spans, among those of the numbers
        for i, at in enumerate(self._at):
            self._source[at] = i
        self._words = struct.Struct(f'>{len(self._at)}H')
        self._numbers = struct.Struct(
            '>' + ''.join(_FORMATS[register.type][1:] for register in self._registers)
        )
        self._whole = [register.type != 'float32' for register in self._registers]
        self._scale = [register.scale for register in self._registers]
        self._zero = [register.zero for register in self._registers]

    def decode(self, words: Sequence[int]) -> list[float]:
        """Return the SI values (k,) of the words of all spans."""
        data = self._words.pack(*[words[at] for at in self._at])
        numbers = self._numbers.unpack(data)
        return [scale * n + zero for scale, n, zero in zip(self._scale, numbers, self._zero)]

    def encode(self, values: Iterable[float]) -> list[int]:
        """
        Return the words of SI values (k,), rounded as by `Register.encode`; 0 between numbers.

        Raises
        ------
        ValueError
            If a value does not fit into its type.

        """
        numbers = [(v - zero) / scale for v, zero, scale in zip(values, self._zero, self._scale)]
        try:
            data = self._numbers.pack(
                *[round(n) if whole else n for n, whole in zip(numbers, self._whole)]
            )
        except (struct.error, OverflowError, ValueError):
            for register, number in zip(self._registers, numbers):
                register.encode_raw(number)  # the one that does not fit raises
            raise
        words = (*self._words.unpack(data), 0)
        return [words[i] for i in self._source]
