"""Parameters of the control cycle and the supervisor in a rig file."""

from __future__ import annotations

from pydantic import Field

from softarm_ros.geometry.configs import (
    ConfigBlock,
    Delay,
    NonNegative,
    PartBlock,
    Timeout,
    WatchedDistance,
    WatchedPressure,
    WatchedSpeed,
)


class EstimatorConfig(PartBlock):
    """Estimator from measured poses to the arm's state; its own fields are in the same block."""

    kind: str = Field(default='direct', description='which estimator')


class TrackerConfig(PartBlock):
    """Control cycle; the fields of the chosen controller are in the same block."""

    kind: str = Field(default='resolved_rate', description='which controller')
    rate_hz: float = Field(ge=1.0, le=1000.0, default=100.0)
    pretension_m: NonNegative = Field(
        default=0.0, description='extra length by which all cables are wound in closed loop'
    )
    settle_tolerance_m: WatchedDistance = 0.002
    settle_timeout_s: float = Field(ge=0.0, le=600.0, default=3.0)
    max_acceleration_m_s2: float = Field(
        gt=0.0,
        le=100.0,
        default=0.1,
        description='largest tangential acceleration of the reference',
    )
    max_jerk_m_s3: float = Field(gt=0.0, le=1e4, default=0.5)
    goal_speed_m_s: WatchedSpeed | None = Field(
        default=None,
        description='speed of the tip on its way to a goal; default: that of the default '
        'trajectory',
    )


class FeedbackWatchConfig(ConfigBlock):
    """Limits beyond which measured poses are not trusted."""

    max_age_s: Timeout = Field(
        default=0.2, description='largest age of a time stamp when its pose arrives'
    )
    max_ahead_s: Timeout = Field(
        default=0.05, description='largest time by which a time stamp may lie in the future'
    )
    max_refused_s: Timeout = Field(
        default=0.1, description='longest time for which consecutive poses may be refused'
    )
    sections_timeout_s: Timeout = Field(
        default=1.0, description='longest time for which tips may arrive without their sections'
    )
    frozen_s: Timeout = Field(
        default=0.05,
        description='longest time for which poses may repeat while the command moves the tip',
    )
    frozen_resolution_m: NonNegative = Field(
        default=1e-6, description='poses that differ by less count as repeated'
    )
    frozen_motion_m: WatchedDistance = Field(
        default=0.001,
        description='smallest commanded motion of the tip for which poses must change',
    )
    response_s: Delay = Field(default=0.05, description='response time of the arm to a command')
    window_s: Timeout = Field(default=0.5, description='time over which drift is measured')
    max_drift_m: WatchedDistance = Field(
        default=0.02, description='largest change of measured less model tip within the window'
    )
    drift_share: float = Field(
        default=0.5,
        ge=0.0,
        lt=1.0,
        description="share of the model's motion that is added to the allowed drift",
    )
    max_model_error_m: WatchedDistance = Field(
        default=0.1, description='largest distance between measured and model tip'
    )
    max_rest_error_m: WatchedDistance | None = Field(
        default=None,
        description="the same limit at the model's rest position; it grows by a metre for each "
        'metre away from there, up to max_model_error_m',
    )
    max_tracking_error_m: WatchedDistance = Field(
        default=0.05, description='largest distance between tip and reference while tracking'
    )


class PressureWatchConfig(ConfigBlock):
    """Limits beyond which a chamber does not follow its commanded pressure."""

    response_s: Timeout = Field(description='response time of the drives to a command')
    max_error_Pa: WatchedPressure = Field(
        description='largest difference between measured and expected pressure'
    )
    lasting_s: Timeout = Field(
        default=0.2,
        description='time for which the error of every reading must exceed max_error_Pa',
    )


class SupervisorConfig(ConfigBlock):
    """Limits beyond which the supervisor stops the arm."""

    feedback_timeout_s: Timeout = 0.1
    command_timeout_s: Timeout = 0.1
    state_timeout_s: Timeout = Field(
        default=0.25, description='longest time without actuator states, after the first one'
    )
    permit_timeout_s: Timeout = Field(
        default=0.1, description='time without permission after which drivers hold the arm'
    )
    heartbeat_timeout_s: Timeout = Field(
        default=1.0, description='wall clock; a process that is silent for longer is not alive'
    )
    hold_timeout_s: Timeout = Field(
        default=5.0, description='wall clock; a simulation that is held for longer is a fault'
    )
    max_pose_jump_m: WatchedDistance = Field(
        default=0.05, description='largest distance between consecutive poses'
    )
    feedback_watch: FeedbackWatchConfig = FeedbackWatchConfig()
    pressure_watch: PressureWatchConfig | None = Field(
        default=None, description='for arms driven by measured pressures'
    )
