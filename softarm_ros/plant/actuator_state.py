"""State that the drivers of a simulated arm report."""

from __future__ import annotations

from dataclasses import dataclass

from softarm_ros.geometry.arrays import Array


@dataclass(frozen=True)
class ActuatorState:
    """
    State of all actuators as reported by their drivers.

    Attributes
    ----------
    position : (m,)
        In the unit of the commands. For a stepper's cable: the contraction by counted steps [m],
        which does not show play and slack of the cable. For a pressure regulator: the reading of
        its sensor.
    velocity : (m,)
        Rate of change of the position, by the drivers.
    effort : (m,)
        In the rig's effort unit: cable tension [N], motor torque [N m].

    """

    position: Array
    velocity: Array
    effort: Array
