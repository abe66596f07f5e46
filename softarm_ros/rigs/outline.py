"""The outline of an arm for drawing; each kind of arm provides its own."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class SpreadMass:
    """A mass [kg] spread evenly from `start` to `end`, shares of its section's length."""

    mass_kg: float
    start: float = 0.0
    end: float = 1.0

    def between(self, start: float, end: float) -> SpreadMass:
        """Return the part of the mass from start to end, as shares counted from that start."""
        low, high = max(start, self.start), min(end, self.end)
        if high <= low:
            return SpreadMass(0.0, 0.0, 0.0)
        share = (high - low) / (self.end - self.start)
        return SpreadMass(self.mass_kg * share, low - start, high - start)


@dataclass(frozen=True)
class Strand:
    """
    A cable, chamber or muscle of an actuator in one section, as a line to draw.

    Attributes
    ----------
    actuator, section : int
        Indices.
    angle_rad : float
        Angle around the centreline, from the x axis that is carried along it without twist.
    radius_m, end_radius_m : float
        Distance from the centreline at the begin and end of the section; negative: opposite side.

    """

    actuator: int
    section: int
    angle_rad: float
    radius_m: float
    end_radius_m: float


@dataclass(frozen=True)
class Outline:
    """
    The body of an arm, from base to tip.

    Attributes
    ----------
    radii_m : tuple of float
        Outer radius of each section.
    masses : tuple of tuple of SpreadMass
        Masses of each section; empty if not known.

    """

    radii_m: tuple[float, ...]
    masses: tuple[tuple[SpreadMass, ...], ...] = ()


def strand(actuator: int, section: int, angle_deg: float, radius_m: float) -> Strand:
    """Return a strand at a constant distance from the centreline along its section."""
    return Strand(actuator, section, math.radians(angle_deg), radius_m, radius_m)
