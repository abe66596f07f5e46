"""The sensors of a rig: what its `sensors` block holds, each a part of the family `sensors`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.rigs.errors import did_you_mean, listed
from softarm_ros.rigs.part_registry import find_part, kinds_of, parts
from softarm_ros.rigs.validation import PART_ERROR

DRIVER = 'driver'


class Sensors(ConfigBlock):
    """Sensors by kind, each with the fields of its part; a driver reads them."""

    model_config = ConfigDict(extra='allow')

    @classmethod
    def of(cls, blocks: Mapping[str, ConfigBlock]) -> Sensors:
        """Return sensors that are valid."""
        given: dict[str, Any] = dict(blocks)
        return cls.model_construct(**given)

    def devices(self) -> dict[str, Any]:
        """Return the configuration of every sensor that a driver reads, by kind."""
        return dict(self.__pydantic_extra__ or {})


def sensors_of(value: Mapping[str, Any], strict: bool | None) -> Sensors:
    """Return the sensors of a block `sensors`; ValidationError with all that is wrong."""
    blocks: dict[str, ConfigBlock] = {}
    problems: list[InitErrorDetails] = []
    for kind, fields in value.items():
        part = find_part('sensors', kind) if kind in kinds_of('sensors') else None
        if part is None or DRIVER not in part.builders:
            known = [found.kind for found in parts('sensors') if DRIVER in found.builders]
            message = f'no such sensor{did_you_mean(kind, known)}; known: {listed(known)}'
            error = PydanticCustomError(PART_ERROR, '{message}', {'message': message})
            problems.append(InitErrorDetails(type=error, loc=(kind,), input=fields))
            continue
        try:
            blocks[kind] = part.config.model_validate(fields, strict=strict)
        except ValidationError as error:
            problems += [
                InitErrorDetails(
                    type=d['type'], loc=(kind, *d['loc']), input=d['input'], ctx=d.get('ctx', {})
                )
                for d in error.errors()
            ]
    if problems:
        raise ValidationError.from_exception_data('rig', problems)
    return Sensors.of(blocks)
