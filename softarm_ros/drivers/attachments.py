"""
What drives are attached to: all that a driver, a simulated drive or an emulated device has to know
of an arm. Each class is a role of the parts that serve it.
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
    Where a cable runs: the section it bends (0: the base's), its angle around the backbone [rad].

    `motor` winds it, and pays it out where `sign` is -1.
    """

    section_index: int
    angle_rad: float
    motor: int
    sign: float = 1.0


@dataclass(frozen=True)
class WoundCables:
    """Cables (or pairs of them) that motors wind; commands are contractions [m]."""

    names: tuple[str, ...]
    cables: tuple[CableRun, ...]
    limits: CableLimits


@dataclass(frozen=True)
class PulledTendons:
    """
    Cables through a rod that winches pull; commands are tensions [N].

    Attributes
    ----------
    routes : tuple of tuple of CableRoute
        Of each cable through its own segments ...
    segments : tuple of tuple of int
        ... and which these are (0: the base's).
    rest_tension_N : float
        Of every cable at the start.
    max_rate_N_s : (m,)
        What commands may ask of every winch.

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
    Vacuum muscles with two valves each; commands are gas, told as lengths without load [m].

    Attributes
    ----------
    home_length_m : (m,)
        Of the vented, hanging arm.
    tensions : callable
        What pulls at the muscles (m,) [N] with so much gas (m,) [m], by which valves are timed.

    """

    names: tuple[str, ...]
    valves: ValveDriveConfig
    home_length_m: Array
    tensions: Callable[[Array], Array]
