"""Base class of every validated configuration block."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class ConfigBlock(BaseModel):
    """Immutable block of a rig file: unknown keys, NaN and infinities are refused."""

    # Deferred: of a hundred blocks a rig has a few, and building one takes pydantic a millisecond.
    model_config = ConfigDict(
        extra='forbid', frozen=True, strict=False, allow_inf_nan=False, defer_build=True
    )


def first_mistake(error: ValidationError) -> str:
    """Return the first of what is wrong with fields in one line: name, value, and why."""
    first = error.errors()[0]
    name = '.'.join(str(part) for part in first['loc'])
    value = '' if first['type'] == 'missing' else f' = {first["input"]!r}'
    return f'{name}{value}: {first["msg"]}'


class PartBlock(ConfigBlock):
    """
    Names a part by its kind; the fields of the part stand in the same block.

    A kind alone may stand in place of the block: `model: cosserat`.
    """

    model_config = ConfigDict(extra='allow')

    kind: str = Field(description='which part')

    @model_validator(mode='before')
    @classmethod
    def _kind_alone(cls, value: Any) -> Any:
        return {'kind': value} if isinstance(value, str) else value

    @property
    def of_part(self) -> dict[str, Any]:
        """The fields of the block that belong to the part, unchecked."""
        return dict(self.model_extra or {})
