"""Base class of every validated configuration block."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from softarm_ros.home_path import HomeFolderError, expand_home

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
PoseRate = Annotated[float, Field(ge=0.1, le=1e4)]  # poses per second
Finite = Annotated[float, Field(allow_inf_nan=False)]
# A longer one would stop no arm; most likely it was given in milliseconds.
Timeout = Annotated[float, Field(gt=0.0, le=60.0)]
Delay = Annotated[float, Field(ge=0.0, le=60.0)]
# Of a device that homes, or of an arm that comes to rest.
LongTimeout = Annotated[float, Field(gt=0.0, le=600.0)]
# Likewise larger ones in millimetres.
WatchedDistance = Annotated[float, Field(gt=0.0, le=10.0)]
WatchedSpeed = Annotated[float, Field(gt=0.0, le=10.0)]
# A larger one is a slip of the decimal point, or was given in millimetres.
PulleyRadius = Annotated[float, Field(gt=0.0, le=0.1)]
# Of an arm and its parts. Larger lengths (of sections; of radii and endcaps) were given in
# millimetres; no soft arm is as heavy. In N, N/m, N/m^2 and N m^2, 1e12 is rigid (a steel bar of
# 1 cm^2 has 2e7 N); diamond has 1e12 Pa.
Length = Annotated[float, Field(gt=0.0, le=5.0)]
NonNegativeLength = Annotated[float, Field(ge=0.0, le=5.0)]
ShortLength = Annotated[float, Field(gt=0.0, le=1.0)]
NonNegativeShortLength = Annotated[float, Field(ge=0.0, le=1.0)]
Mass = Annotated[float, Field(gt=0.0, le=1e3)]
NonNegativeMass = Annotated[float, Field(ge=0.0, le=1e3)]
Stiffness = Annotated[float, Field(gt=0.0, le=1e12)]
NonNegativeStiffness = Annotated[float, Field(ge=0.0, le=1e12)]
Modulus = Annotated[float, Field(gt=0.0, le=1e13)]
NonNegativeModulus = Annotated[float, Field(ge=0.0, le=1e13)]
# A kilobar and, within a millisecond, a bar: no soft arm survives more.
WatchedPressure = Annotated[float, Field(gt=0.0, le=1e8)]
PressureRate = Annotated[float, Field(gt=0.0, le=1e8)]
# In degrees, of a direction or a turn; more than two revolutions are a mistake.
Angle = Annotated[float, Field(ge=-720.0, le=720.0)]
TOPIC_NAME = r'^/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*$'
_LABEL = re.compile(r'[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?', re.IGNORECASE)
_LONGEST_NAME = 253


def checked_host(text: str) -> str:
    """Return the name or address of a computer; raise ValueError if the text is neither."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        pass
    else:
        return text
    labels = text.removesuffix('.').split('.')
    if len(text) > _LONGEST_NAME or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError(
            "expected a computer's name or address alone, as 192.168.1.10 or motive.lab: its "
            'port has a field of its own'
        )
    if labels[-1].isdigit():  # no top-level domain is a number
        raise ValueError('expected four numbers of 0 to 255, as 192.168.1.10')
    return text


def checked_ipv4_host(text: str) -> str:
    """Return the name or IPv4 address of a computer; raise ValueError if the text is neither."""
    if ':' in checked_host(text):
        raise ValueError('expected a name or an IPv4 address, as 192.168.1.10')
    return text


def checked_group(text: str) -> str:
    """Return an IPv4 multicast address; raise ValueError if the text is none."""
    try:
        if ipaddress.IPv4Address(text).is_multicast:
            return text
    except ValueError:
        pass
    raise ValueError('expected a multicast address, 224.0.0.0 to 239.255.255.255')


def checked_home(text: str) -> str:
    """Return the path of a file; raise ValueError if its home folder does not exist."""
    try:
        expand_home(text, '')
    except HomeFolderError as error:
        raise ValueError(error.why) from None
    return text


FileName = Annotated[str, AfterValidator(checked_home)]
Host = Annotated[str, Field(min_length=1), AfterValidator(checked_host)]
Ipv4Host = Annotated[str, Field(min_length=1), AfterValidator(checked_ipv4_host)]
MulticastGroup = Annotated[str, AfterValidator(checked_group)]


class ConfigBlock(BaseModel):
    """Immutable block of a rig file: unknown keys, NaN and infinities are refused."""

    # Deferred: a rig has few of a hundred blocks, and pydantic needs a millisecond to build each.
    model_config = ConfigDict(
        extra='forbid', frozen=True, strict=False, allow_inf_nan=False, defer_build=True
    )


def first_mistake(error: ValidationError) -> str:
    """Return the first validation error in one line: name of the field, value, and reason."""
    first = error.errors()[0]
    name = '.'.join(str(part) for part in first['loc'])
    value = '' if first['type'] == 'missing' else f' = {first["input"]!r}'
    return f'{name}{value}: {first["msg"]}'


class PartBlock(ConfigBlock):
    """
    Block that names a part by its kind and also holds the fields of the part.

    The kind alone may replace the block: `model: cosserat`.
    """

    model_config = ConfigDict(extra='allow')

    kind: str = Field(description='name of the part')

    @model_validator(mode='before')
    @classmethod
    def _kind_alone(cls, value: Any) -> Any:
        return {'kind': value} if isinstance(value, str) else value

    @property
    def of_part(self) -> dict[str, Any]:
        """The fields of the block that belong to the part, unchecked."""
        return dict(self.model_extra or {})
