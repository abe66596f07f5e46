"""What is known of an arm at one moment, for those who look at it."""

from __future__ import annotations

from dataclasses import dataclass, field

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel
from softarm_ros.models.led_to_tip import configuration_at_tip

_NO_LATENCY_MS = 1e4


@dataclass(frozen=True)
class NodeHealth:
    """What a node says of itself: level 0 (well) to 2 (error), and a line."""

    name: str
    level: int
    message: str


@dataclass(frozen=True)
class ViewState:
    """
    An arm at one moment; None for what is not known.

    Attributes
    ----------
    time_s : float
        Stamp of the newest measurement [s].
    configuration : (dof,), optional
        Measured; where sensors do not tell it, commanded.
    measured : bool
        Whether the configuration is measured.
    tip, reference : (3,), optional
        Measured tip and where it is to be [m], base frame.
    error_m : float, optional
        Between tip and reference of the same stamp.
    command, position, effort : (m,), optional
        Of the actuators, in their units.
    sections : (n, 3), optional
        Measured ends of the sections [m], base frame.
    latency_ms : float, optional
        From the stamp of a pose to the sending of the command that answers it.
    state, reason : str
        Of the supervisor; empty while nothing is heard from it.
    phase, lap, progress
        Of the tracker.
    nodes : tuple of NodeHealth
        All that have been heard.

    """

    time_s: float = 0.0
    configuration: Array | None = None
    measured: bool = False
    tip: Array | None = None
    reference: Array | None = None
    error_m: float | None = None
    command: Array | None = None
    position: Array | None = None
    effort: Array | None = None
    sections: Array | None = None
    latency_ms: float | None = None
    state: str = ''
    reason: str = ''
    phase: str = ''
    lap: int = 0
    progress: float = 0.0
    nodes: tuple[NodeHealth, ...] = field(default=())


def latency_ms(delay_ms: float) -> float | None:
    """Return a delay from stamp to sending; None off real time, where stamps are simulated."""
    return delay_ms if 0.0 <= delay_ms < _NO_LATENCY_MS else None


def drawn_configuration(model: ArmModel, state: ViewState) -> Array | None:
    """
    Return the configuration (dof,) that an arm is drawn with; None where there is none.

    As measured; where sensors tell the tip alone, that of the command, led to the measured tip.
    """
    if state.configuration is None or state.measured or state.tip is None:
        return state.configuration
    return configuration_at_tip(model, state.configuration, state.tip)
