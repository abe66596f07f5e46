"""
Individual machines: parameters of a single simulated arm, drawn from stated spreads.

No two arms built from one drawing are alike. A rig file states how much its fields vary, and each
machine number draws one arm from these spreads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from pydantic import Field, ValidationError, model_validator

from softarm_ros.geometry.configs import ConfigBlock, Finite, Positive

NOMINAL = 0  # number of the machine whose values are exactly those of its file
CUT = 2.0  # standard deviations at which the normal distribution is cut
_STEP = re.compile(r'([A-Za-z_]\w*)|\[\]')

BlockT = TypeVar('BlockT', bound=ConfigBlock)
Place = tuple['str | int', ...]


class SpreadConfig(ConfigBlock):
    """
    Spread of a field between machines.

    Normal about the stated value, cut at two standard deviations, or uniform from it `to` another.
    """

    sd_percent: float | None = Field(
        default=None,
        gt=0.0,
        le=40.0,
        description='standard deviation, in percent of the stated value',
    )
    sd: Positive | None = Field(
        default=None, description='standard deviation in the unit of the field'
    )
    to: Finite | None = Field(
        default=None,
        description='other end of a uniform distribution that begins at the stated value',
    )
    together: bool = Field(
        default=False,
        description='one draw for all fields that match the pattern, as for one batch of material',
    )
    at_least: str | None = Field(
        default=None,
        description='field of `plant` whose drawn value is a lower bound, as static friction is '
        'never below sliding friction',
    )

    @model_validator(mode='after')
    def _one_measure(self) -> SpreadConfig:
        if sum(measure is not None for measure in (self.sd_percent, self.sd, self.to)) != 1:
            raise ValueError('expected one of sd_percent, sd and to')
        return self

    def ends(self, stated: float) -> tuple[float, float]:
        """Return the interval from which the field is drawn."""
        if self.to is not None:
            return stated, self.to
        sd = abs(stated) * self.sd_percent / 100.0 if self.sd_percent is not None else self.sd
        assert sd is not None
        return stated - CUT * sd, stated + CUT * sd

    def drawn(self, stated: float, stream: np.random.Generator) -> float:
        """Return the value of the field for one machine."""
        low, high = self.ends(stated)
        if self.to is not None:
            return float(stream.uniform(low, high))
        while True:
            deviations = float(stream.standard_normal())
            if abs(deviations) <= CUT:
                return stated + deviations * (high - stated) / CUT


class MachineConfig(ConfigBlock):
    """Spreads between machines, and the number of this machine."""

    number: int | None = Field(
        default=None,
        ge=0,
        description="number of the machine; 0: as the file states; default: the run's seed",
    )
    spreads: dict[str, SpreadConfig] = Field(
        default={},
        description='spreads by field of `plant`: `sections[].length_m` is that of every section',
    )


@dataclass(frozen=True)
class Draw:
    """One field of a machine, `sections[0].length_m`: stated and drawn value."""

    field: str
    stated: float
    drawn: float


def draws(config: ConfigBlock, spreads: Mapping[str, SpreadConfig], number: int) -> list[Draw]:
    """
    Return the drawn fields of the machine with this number; none for `NOMINAL`.

    Every field has its own random stream, seeded by its name: adding, removing or changing one
    spread does not change any other draw.

    Raises
    ------
    ValueError
        If a pattern matches no number of the config, or `at_least` not exactly one; names it.

    """
    if number == NOMINAL:
        return []
    found: dict[str, Draw] = {}
    for pattern, spread in spreads.items():
        for place, stated in _places(config, pattern):
            name = _text(place)
            stream = _stream(number, pattern if spread.together else name)
            found[name] = Draw(name, stated, spread.drawn(stated, stream))
    for pattern, spread in spreads.items():
        if spread.at_least is None:
            continue
        least = _only(config, spread.at_least)
        floor = found[least.field].drawn if least.field in found else least.stated
        for place, _ in _places(config, pattern):
            draw = found[_text(place)]
            found[draw.field] = replace(draw, drawn=max(draw.drawn, floor))
    return list(found.values())


def as_drawn(config: BlockT, made_of: list[Draw]) -> BlockT:
    """
    Return a config with the drawn values.

    Raises
    ------
    ValueError
        If a value is not allowed for its field; names the field.

    """
    for draw in made_of:
        try:
            config = _with(config, _place(draw.field), draw.drawn)
        except ValidationError as error:
            reason = error.errors()[0]['msg']
            raise ValueError(f'{draw.field} = {draw.drawn:.6g}: {reason}') from None
    return config


def wrong_spread(config: ConfigBlock, pattern: str, spread: SpreadConfig) -> str | None:
    """Return why a spread cannot be drawn, naming the field, or None if it can."""
    try:
        if spread.at_least is not None:
            _only(config, spread.at_least)
        for place, stated in _places(config, pattern):
            ends = spread.ends(stated)
            if ends[0] == ends[1] and not _switched_off(config, _text(place), stated):
                return f'{_text(place)} = {stated:g} does not vary; give sd'
            for value in ends:
                as_drawn(config, [Draw(_text(place), stated, value)])
    except ValueError as error:
        return str(error)
    return None


def _switched_off(config: ConfigBlock, field: str, stated: float) -> bool:
    """Return whether a field is zero and cannot be negative: then a spread in percent is zero."""
    if stated != 0.0:
        return False
    try:
        as_drawn(config, [Draw(field, stated, -1.0)])
    except ValueError:
        return True
    return False


def patterns(config: ConfigBlock) -> list[str]:
    """Return all patterns for spreads of a config: its numbers, such as `sections[].length_m`."""
    return list(dict.fromkeys(_patterns(config, '')))


def _patterns(node: Any, reached: str) -> Iterator[str]:
    if isinstance(node, float):
        yield reached
    elif isinstance(node, tuple):
        for inner in node:
            yield from _patterns(inner, f'{reached}[]')
    elif isinstance(node, ConfigBlock):
        for name, info in type(node).model_fields.items():
            field = info.alias or name
            yield from _patterns(getattr(node, name), f'{reached}.{field}' if reached else field)


def _stream(number: int, name: str) -> np.random.Generator:
    """Return the random stream of a name."""
    key = tuple(name.encode('utf-8'))
    return np.random.default_rng(np.random.SeedSequence(number, spawn_key=key))


def _places(config: ConfigBlock, pattern: str) -> list[tuple[Place, float]]:
    """Return place and value of all numbers that match a pattern; ValueError if there are none."""
    steps = [name or '[]' for name in _STEP.findall(pattern)]
    rest = _STEP.sub('', pattern)
    if not steps or rest.strip('.') or len(rest) != sum(s != '[]' for s in steps) - 1:
        raise ValueError(f'{pattern!r}: expected a field of the plant, as sections[].length_m')
    found = list(_reached(config, steps, ()))
    if not found:
        raise ValueError(f'{pattern!r} names no number of the plant')
    return found


def _only(config: ConfigBlock, field: str) -> Draw:
    """Return the one number that `at_least` names; ValueError if there is not exactly one."""
    found = _places(config, field)
    if len(found) != 1:
        raise ValueError(f'at_least = {field!r} names {len(found)} numbers; expected one')
    ((place, stated),) = found
    return Draw(_text(place), stated, stated)


def _reached(node: Any, steps: list[str], place: Place) -> Iterator[tuple[Place, float]]:
    if isinstance(node, tuple) and (not steps or steps[0] == '[]'):
        for k, inner in enumerate(node):
            yield from _reached(inner, steps[1:], (*place, k))
    elif not steps and isinstance(node, float):
        yield place, node
    elif steps and isinstance(node, ConfigBlock):
        name = _attribute(node, steps[0])
        if name is not None:
            yield from _reached(getattr(node, name), steps[1:], (*place, steps[0]))


def _attribute(block: ConfigBlock, field: str) -> str | None:
    """Return the attribute of a field, given its name in the rig file."""
    for name, info in type(block).model_fields.items():
        if field == (info.alias or name):
            return name
    return None


def _with(node: Any, place: Place, value: float) -> Any:
    """Return a block, tuple or number with the value at a place replaced and validated."""
    if not place:
        return value
    step, rest = place[0], place[1:]
    if isinstance(step, int):
        return (*node[:step], _with(node[step], rest, value), *node[step + 1 :])
    name = _attribute(node, step)
    assert name is not None  # `_places` found it
    inner = getattr(node, name)
    new = _with(inner, rest, value)
    if isinstance(inner, ConfigBlock) or _holds_blocks(inner):
        return node.model_copy(update={name: new})
    fields = type(node).model_fields
    values = {info.alias or key: getattr(node, key) for key, info in fields.items()}
    return type(node).model_validate({**values, step: new})


def _holds_blocks(value: Any) -> bool:
    return isinstance(value, tuple) and any(isinstance(v, ConfigBlock) for v in value)


def _text(place: Place) -> str:
    text = ''
    for step in place:
        text += f'[{step}]' if isinstance(step, int) else ('.' if text else '') + step
    return text


def _place(text: str) -> Place:
    return tuple(
        name or int(index) for name, index in re.findall(r'([A-Za-z_]\w*)|\[(\d+)\]', text)
    )
