"""What the drivers of a simulated arm report."""

from __future__ import annotations

from dataclasses import dataclass

from softarm_ros.geometry.arrays import Array


@dataclass(frozen=True)
class ActuatorState:
    """
    State of all actuators as their drivers know it.

    Attributes
    ----------
    position : (m,)
        In the unit of the commands. Of a stepper's cable the contraction by the steps counted [m]
        (play and slack of the cable do not show), of a pressure regulator what its sensor reads.
    velocity : (m,)
        Its rate of change, by the drivers.
    effort : (m,)
        In the rig's effort unit: cable tension [N], motor torque [N m].

    """

    position: Array
    velocity: Array
    effort: Array
