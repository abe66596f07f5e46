"""
Attachments of drives to an arm: all that a driver, a simulated drive or an emulated device needs
to know about the arm. Each class is a role, which the parts that serve it refer to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softarm_ros.geometry.arrays import Array

if TYPE_CHECKING:
    from softarm_ros.drivers.play_compensation import PlayCompensationConfig
    from softarm_ros.drivers.pressure_loop import PressureLoopConfig
    from softarm_ros.drivers.pressure_servo_config import CylinderAxes
    from softarm_ros.drivers.stepper_config import CableLimits
    from softarm_ros.drivers.valve_config import ValveDriveConfig
    from softarm_ros.models.cosserat.config import CableRoute
    from softarm_ros.models.hydraulics.section_config import ChamberConfig


@dataclass(frozen=True)
class CableRun:
    """
    Route of a cable: the section it bends (0: the base's), its angle around the backbone [rad].

    `motor` winds the cable; if `sign` is -1, the same rotation pays it out.
    """

    section_index: int
    angle_rad: float
    motor: int
    sign: float = 1.0


@dataclass(frozen=True)
class WoundCables:
    """Cables, or pairs of cables, wound by motors; commands are contractions [m]."""

    names: tuple[str, ...]
    cables: tuple[CableRun, ...]
    limits: CableLimits


@dataclass(frozen=True)
class PulledTendons:
    """
    Cables through a rod, pulled by winches; commands are tensions [N].

    Attributes
    ----------
    routes : tuple of tuple of CableRoute
        Route of each cable through each of its segments.
    segments : tuple of tuple of int
        Indices of the segments of each cable (0: the base's).
    rest_tension_N : float
        Tension of every cable at the start.
    max_rate_N_s : (m,)
        Largest rate of the commands of each winch.

    """

    names: tuple[str, ...]
    routes: tuple[tuple[CableRoute, ...], ...]
    segments: tuple[tuple[int, ...], ...]
    rest_tension_N: float
    max_rate_N_s: Array


@dataclass(frozen=True)
class WaterCylinders:
    """Water chambers behind servo cylinders; commands are gauge pressures [Pa]."""

    axes: CylinderAxes
    chambers: tuple[ChamberConfig, ...]
    loop: PressureLoopConfig


@dataclass(frozen=True)
class RegulatedChambers:
    """Air chambers behind pressure regulators; commands are gauge pressures [Pa]."""

    names: tuple[str, ...]
    max_rate_Pa_s: Array
    compensation: PlayCompensationConfig


@dataclass(frozen=True)
class ValvedMuscles:
    """
    Vacuum muscles with two valves each; commands are amounts of gas, as unloaded lengths [m].

    Attributes
    ----------
    home_length_m : (m,)
        Muscle lengths of the vented, hanging arm.
    max_speed_m_s : (m,)
        Largest rates of the commands.
    tensions : callable
        Maps amounts of gas (m,) [m] to the tensions of the muscles (m,) [N]; used to time valves.

    """

    names: tuple[str, ...]
    valves: ValveDriveConfig
    home_length_m: Array
    max_speed_m_s: Array
    tensions: Callable[[Array], Array]
