"""State of an arm at one moment, for viewers."""

from __future__ import annotations

from dataclasses import dataclass, field

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel
from softarm_ros.models.led_to_tip import configuration_at_tip

NO_SUPERVISOR = 'no supervisor'  # state of a graph whose supervisor is silent
_NO_LATENCY_MS = 1e4


@dataclass(frozen=True)
class NodeHealth:
    """Health that a node reports: level 0 (OK) to 2 (error), and a message."""

    name: str
    level: int
    message: str


@dataclass(frozen=True)
class ViewState:
    """
    An arm at one moment; None for values that are not known.

    Attributes
    ----------
    time_s : float
        Stamp of the newest measurement or command [s].
    configuration : (dof,), optional
        Measured, or the commanded one if sensors do not determine it.
    measured : bool
        Whether the configuration is measured.
    tip, reference : (3,), optional
        Measured tip and its reference [m], base frame.
    error_m : float, optional
        Distance between tip and reference of the same stamp.
    command, position, effort : (m,), optional
        Values of the actuators, in their units.
    sections : (n, 3), optional
        Measured ends of the sections [m], base frame.
    latency_ms : float, optional
        From the stamp of a pose to the sending of the command computed from it.
    state, reason : str
        State of the supervisor and its reason; `NO_SUPERVISOR` if only other nodes are heard,
        empty if no node is.
    phase, lap, progress
        Values of the tracker.
    counts : str
        What `lap` counts: laps of a path, or steps of a task.
    goal : str, optional
        Goal under way, empty if there is none; None if the arm takes no goals.
    nodes : tuple of NodeHealth
        All nodes that have reported.

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
    counts: str = 'lap'
    progress: float = 0.0
    goal: str | None = None
    nodes: tuple[NodeHealth, ...] = field(default=())


def latency_ms(delay_ms: float) -> float | None:
    """Return a delay from stamp to sending; None off real time, where stamps are simulated."""
    return delay_ms if 0.0 <= delay_ms < _NO_LATENCY_MS else None


def drawn_configuration(model: ArmModel, state: ViewState) -> Array | None:
    """
    Return the configuration (dof,) with which an arm is drawn, or None if there is none.

    It is the measured one; if sensors measure only the tip, it is the commanded configuration,
    moved so that its tip meets the measured tip.
    """
    if state.configuration is None or state.measured or state.tip is None:
        return state.configuration
    return configuration_at_tip(model, state.configuration, state.tip)
