"""Fields of the estimators that predict: assumptions of their filters about arm and sensors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from softarm_ros.geometry.configs import ConfigBlock, NonNegative, Positive

Speeds = Annotated[tuple[Positive, ...], Field(min_length=1, max_length=5)]


class PredictingConfig(ConfigBlock):
    """Response of the arm to commands, its deviations from the model, and the sensors' noise."""

    response_s: NonNegative | None = Field(
        default=None,
        description='of the arm to a command, as two lags; '
        'supervisor.feedback_watch.response_s without it',
    )
    memory_s: Positive = Field(
        default=0.3, description='during which a deviation from the model moves on as it did'
    )
    deviation_speeds: Speeds = Field(
        default=(1.0, 0.3, 3.0, 30.0),
        description='times what is learnt: one filter each, weighted by what fits now',
    )
    deviation_speed_m_s: Positive = Field(
        default=0.01, description='of the tip against the model, before anything is learnt'
    )
    least_speed_m_s: Positive = Field(
        default=0.001, description='likewise, that an arm at rest still counts with'
    )
    learning_s: Positive = Field(
        default=3.0,
        description='over which it learns how fast deviations are, and which go together',
    )
    bend_sd_rad: Positive = Field(default=0.3, description='of a section against the model')
    twist_sd_rad: Positive = Field(default=0.1, description='likewise')
    stretch_sd: Positive = Field(default=0.02, description='likewise, as a share of its length')
    shear_sd: Positive = Field(default=0.02, description='likewise')
    groups: int = Field(
        default=4,
        ge=1,
        le=12,
        description='of sections, each with a deviation of its own; an arm of more sections is '
        'estimated at the ends of so many groups',
    )
    position_noise_m: Positive | None = Field(
        default=None,
        description='of sensors that state none; feedback.position_noise_m without it',
    )
    orientation_noise_rad: Positive | None = Field(
        default=None, description='likewise; without it the position noise over 0.1 m'
    )
    shape_noise_m: Positive = Field(
        default=1.0e-3,
        description='by which points inside a section may lie beside an even bend',
    )
    gate_probability: float = Field(
        default=0.9999, gt=0.5, lt=1.0, description='with which a right measurement is accepted'
    )
    max_rejected_s: Positive = Field(
        default=0.1, description='after which measurements that all contradict are believed'
    )
    max_lateness_s: Positive = Field(
        default=0.5, description='by which measurements may come after newer ones'
    )
    tip_load: Literal['weight', 'force'] | None = Field(
        default=None,
        description='estimated as well: what is hung onto the tip after the start, or a force in '
        'any direction; the model has to know tip loads',
    )
    tip_load_spread_N: Positive = Field(
        default=1.0, description='standard deviation of the loads that may come'
    )
    tip_load_model_share: NonNegative = Field(
        default=0.1, description="standard deviation of the model's give under them, as a share"
    )
    bridge_s: Positive = Field(
        default=0.5, description='during which prediction alone may drive the arm'
    )
    slow_s: Positive = Field(
        default=0.2, description='within which the reference stops and starts'
    )
