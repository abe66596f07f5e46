"""Base class of every validated configuration block."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class ConfigBlock(BaseModel):
    """Immutable block of a rig file: unknown keys, NaN and infinities are refused."""

    model_config = ConfigDict(extra='forbid', frozen=True, strict=False, allow_inf_nan=False)
