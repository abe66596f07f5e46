"""Fields of the estimators that predict: assumptions of their filters about arm and sensors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from softarm_ros.geometry.configs import ConfigBlock, Delay, NonNegative, Positive, Timeout

Speeds = Annotated[tuple[Positive, ...], Field(min_length=1, max_length=5)]


class PredictingConfig(ConfigBlock):
    """Response of the arm to commands, its deviations from the model, and the sensors' noise."""

    response_s: Delay | None = Field(
        default=None,
        description='response time of the arm to a command, as two lags; default: '
        'supervisor.feedback_watch.response_s',
    )
    memory_s: Positive = Field(
        default=0.3,
        description='time constant with which the velocity of a deviation from the model decays',
    )
    deviation_speeds: Speeds = Field(
        default=(1.0, 0.3, 3.0, 30.0),
        description='factors on the learnt speed: one filter each, weighted by its fit to the '
        'measurements',
    )
    deviation_speed_m_s: Positive = Field(
        default=0.01,
        description='speed of the tip relative to the model, before anything is learnt',
    )
    least_speed_m_s: Positive = Field(
        default=0.001, description='lower bound of that speed, for an arm at rest'
    )
    learning_s: Positive = Field(
        default=3.0,
        description='time in which the filter learns the speeds of deviations and their '
        'correlation',
    )
    bend_sd_rad: Positive = Field(
        default=0.3, description="standard deviation of a section's bend from the model"
    )
    twist_sd_rad: Positive = Field(
        default=0.1, description="standard deviation of a section's twist from the model"
    )
    stretch_sd: Positive = Field(
        default=0.02,
        description="standard deviation of a section's stretch from the model, as a share of "
        'its length',
    )
    shear_sd: Positive = Field(
        default=0.02,
        description="standard deviation of a section's shear from the model, as a share of its "
        'length',
    )
    groups: int = Field(
        default=4,
        ge=1,
        le=12,
        description='number of groups of sections, each with its own deviation; an arm with '
        'more sections is estimated at the ends of these groups',
    )
    position_noise_m: Positive | None = Field(
        default=None,
        description='for sensors that state none; default: feedback.position_noise_m',
    )
    orientation_noise_rad: Positive | None = Field(
        default=None,
        description='for sensors that state none; default: the position noise over 0.1 m',
    )
    shape_noise_m: Positive = Field(
        default=1.0e-3,
        description='standard deviation of points inside a section from an even bend',
    )
    gate_probability: float = Field(
        default=0.9999,
        gt=0.5,
        lt=1.0,
        description='probability with which a right measurement is accepted',
    )
    max_rejected_s: Timeout = Field(
        default=0.1,
        description='time after which measurements that all contradict the estimate are accepted',
    )
    max_lateness_s: Timeout = Field(
        default=0.5, description='largest time by which a measurement may arrive after newer ones'
    )
    tip_load: Literal['weight', 'force'] | None = Field(
        default=None,
        description='load to estimate: a weight hung onto the tip after the start, or a force '
        'in any direction; the model must support tip loads',
    )
    tip_load_spread_N: Positive = Field(
        default=1.0, description='standard deviation of the expected loads'
    )
    tip_load_model_share: NonNegative = Field(
        default=0.1,
        description="standard deviation of the model's deflection under a load, as a share of it",
    )
    bridge_s: Timeout = Field(
        default=0.5, description='longest time for which the arm may be driven by prediction alone'
    )
    slow_s: Timeout = Field(
        default=0.2,
        description='time in which the reference slows to a stop, and in which it starts again',
    )
