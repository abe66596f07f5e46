"""The `hysteresis` block of a rig: how its actuators lag behind their commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field, model_validator

from softarm_ros.geometry.configs import ConfigBlock, NonNegative, Positive

if TYPE_CHECKING:
    from softarm_ros.models.hysteresis import Hysteresis
    from softarm_ros.rigs.schema import Rig

WIDTHS = (0.01, 0.03, 0.1, 0.3)
LAG_S = 1.0


class HysteresisConfig(ConfigBlock):
    """Plays and a lag in parallel; see `models.hysteresis`."""

    widths: tuple[Positive, ...] = Field(
        default=WIDTHS, description='half widths of the plays, in half ranges of the actuators'
    )
    lag_s: Positive = Field(default=LAG_S, description='time constant of the lag')
    weights: tuple[tuple[NonNegative, ...], ...] = Field(
        description='per section from base to tip (or one row for all actuators): weight per play'
    )
    lag_shares: tuple[NonNegative, ...] = Field(
        description='per row of weights: share of the motion that follows with the lag'
    )

    @model_validator(mode='after')
    def _fits_together(self) -> HysteresisConfig:
        if len(self.weights) != len(self.lag_shares):
            raise ValueError(
                f'{len(self.weights)} rows of weights but {len(self.lag_shares)} lag_shares'
            )
        for row, share in zip(self.weights, self.lag_shares):
            if len(row) != len(self.widths):
                raise ValueError(f'weights {row}: expected one for each of {self.widths}')
            if sum(row) + share >= 1.0:
                raise ValueError(f'weights {row} and lag_shares {share} sum to 1 or more')
        return self

    @property
    def acts(self) -> bool:
        """Whether any weight or lag share is nonzero."""
        return any(self.lag_shares) or any(any(row) for row in self.weights)


def without_hysteresis(rig: Rig) -> HysteresisConfig:
    """Return a block with weights of zero, for a rig without hysteresis."""
    count = len(set(groups(rig)))
    return HysteresisConfig(weights=((0.0,) * len(WIDTHS),) * count, lag_shares=(0.0,) * count)


def groups(rig: Any) -> tuple[int, ...]:
    """Return the row of weights of each actuator: that of its section, or 0 without sections."""
    from softarm_ros.models.residual import groups_of

    return groups_of([getattr(actuator, 'section', None) for actuator in rig.actuators])


def hysteresis_of(rig: Rig, config: HysteresisConfig) -> Hysteresis:
    """
    Return the hysteresis operator of a rig's actuators.

    Raises
    ------
    ValueError
        If the rows do not match the sections, or the weights of a row sum to 1 or more.

    """
    from softarm_ros.models.hysteresis import Hysteresis

    own, limits = np.array(groups(rig)), rig.actuator_limits()
    rows = np.column_stack([np.array(config.weights), np.array(config.lag_shares)])
    if len(rows) != own.max() + 1:
        raise ValueError(f'hysteresis.weights: {len(rows)} rows, expected {own.max() + 1}')
    if np.any(rows < 0.0) or np.any(rows.sum(axis=1) >= 1.0):
        raise ValueError('hysteresis: expected weights of at least 0 that sum to below 1')
    low, high = limits.position_min, limits.position_max
    return Hysteresis(
        config.widths,
        config.lag_s,
        np.ascontiguousarray(rows[own].T),
        0.5 * (high + low),
        0.5 * (high - low),
    )
