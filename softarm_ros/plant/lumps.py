"""Lumped masses of the chain: distributed mass is gathered at the ends of the segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class Lump:
    """Bodies on one axis: mass [kg], centre [m], moments of inertia about it [kg m^2]."""

    def __init__(
        self, mass: float = 0.0, centre: float = 0.0, across: float = 0.0, along: float = 0.0
    ) -> None:
        self.mass, self.centre = mass, centre
        self.across, self.along = across, along

    @classmethod
    def cylinder(cls, mass: float, radius: float, start: float, end: float) -> Lump:
        """Return a solid cylinder between two positions on the axis."""
        length = end - start
        across = mass * (3.0 * radius**2 + length**2) / 12.0
        return cls(mass, 0.5 * (start + end), across, 0.5 * mass * radius**2)

    def join(self, other: Lump) -> None:
        """Add another lump."""
        mass = self.mass + other.mass
        if mass == 0.0:
            return
        between = other.centre - self.centre
        self.across += other.across + self.mass * other.mass / mass * between**2
        self.along += other.along
        self.centre = (self.mass * self.centre + other.mass * other.centre) / mass
        self.mass = mass


@dataclass(frozen=True)
class Span:
    """
    A flexible part with constant properties, then a rigid piece that continues along the tangent.

    Attributes
    ----------
    length_m, segments
        Length of the flexible part, and number of its elastic joints.
    mass_kg, radius_m
        Of the flexible part, a solid cylinder.
    rigid_m, rigid
        Length of the rigid piece, and its lump; positions count from its start.

    """

    length_m: float
    segments: int
    mass_kg: float
    radius_m: float
    rigid_m: float = 0.0
    rigid: Lump | None = None


def lumps_along(spans: Sequence[Span]) -> list[Lump]:
    """
    Return the lump of the mount and of every body of the chain, n + 1 for n segments.

    A body consists of the halves of the adjacent segments and the rigid piece between them. The
    error of its weight and inertia decreases with the square of the number of segments.
    """
    lumps = [Lump()]
    rise = 0.0  # from the last body's origin to the start of the next segment
    for span in spans:
        half = 0.5 * span.length_m / span.segments
        mass = 0.5 * span.mass_kg / span.segments
        for _ in range(span.segments):
            lumps[-1].join(Lump.cylinder(mass, span.radius_m, rise, rise + half))
            lumps.append(Lump.cylinder(mass, span.radius_m, -half, 0.0))
            rise = 0.0
        if span.rigid is not None:
            lumps[-1].join(span.rigid)
        rise = span.rigid_m
    return lumps


def rises(spans: Sequence[Span]) -> list[float]:
    """Return the rigid length [m] before each of the n segments."""
    found, rise = [], 0.0
    for span in spans:
        found += [rise] + [0.0] * (span.segments - 1)
        rise = span.rigid_m
    return found
