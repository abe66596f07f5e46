"""Parameters of a Cosserat rod arm: profiles, segments, connectors, cables."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import (
    Angle,
    ConfigBlock,
    Finite,
    Length,
    Modulus,
    NonNegative,
    NonNegativeLength,
    NonNegativeShortLength,
    Positive,
    ShortLength,
)

Name = Annotated[str, Field(pattern=r'^[a-z][a-z0-9_]*$')]
FiniteVector = tuple[Finite, Finite, Finite]
Fraction = float | Array  # fraction of a segment's length, or a value at each fraction


class _Elastic(ConfigBlock):
    """Isotropic material; the density determines the weight."""

    young_modulus_Pa: Modulus
    poisson_ratio: float = Field(gt=-1.0, le=0.5, default=0.5)
    density_kg_m3: NonNegative = 0.0
    shear_factor: Positive = Field(default=1.0, description='effective / whole shear area')

    @property
    def shear_modulus_Pa(self) -> float:
        """G = E / (2 (1 + nu))."""
        return self.young_modulus_Pa / (2.0 * (1.0 + self.poisson_ratio))

    def _matrix(
        self, area: Fraction, about_x: Fraction, about_y: Fraction, torsion: Fraction
    ) -> Array:
        """Return diag(E Ix, E Iy, G J, a G A, a G A, E A) (..., 6, 6) for areas (...)."""
        e, g = self.young_modulus_Pa, self.shear_modulus_Pa
        shear = self.shear_factor * g * area
        matrix = np.zeros((*np.shape(area), 6, 6))
        diagonal = (e * about_x, e * about_y, g * torsion, shear, shear, e * area)
        for i, value in enumerate(diagonal):
            matrix[..., i, i] = value
        return matrix


class RoundProfile(_Elastic):
    """Round solid or hollow cross-section, its radii linear from base to tip of the segment."""

    kind: Literal['round'] = 'round'
    radius_m: ShortLength
    tip_radius_m: ShortLength | None = None
    inner_radius_m: NonNegativeShortLength = 0.0
    tip_inner_radius_m: NonNegativeShortLength | None = None

    @model_validator(mode='after')
    def _has_a_wall(self) -> RoundProfile:
        for fraction in (0.0, 1.0):
            outer, inner = self._radii(fraction)
            if inner >= outer:
                raise ValueError(f'inner radius {inner} m is not below the outer, {outer} m')
        return self

    def _radii(self, fraction: Fraction) -> tuple[Fraction, Fraction]:
        tip = self.radius_m if self.tip_radius_m is None else self.tip_radius_m
        inner_tip = (
            self.inner_radius_m if self.tip_inner_radius_m is None else self.tip_inner_radius_m
        )
        return (
            self.radius_m + fraction * (tip - self.radius_m),
            self.inner_radius_m + fraction * (inner_tip - self.inner_radius_m),
        )

    def stiffness(self, fraction: Fraction) -> Array:
        """Return the stiffness (..., 6, 6) [N m^2, N] at fractions (...) of the length."""
        outer, inner = self._radii(fraction)
        moment = math.pi * (outer**4 - inner**4) / 4.0
        area = math.pi * (outer**2 - inner**2)
        return self._matrix(area, moment, moment, 2.0 * moment)

    def mass_per_length(self, fraction: Fraction) -> Fraction:
        """Return the mass per length (...) [kg/m] at fractions (...) of the length."""
        outer, inner = self._radii(fraction)
        return self.density_kg_m3 * math.pi * (outer**2 - inner**2)


class RectangularProfile(_Elastic):
    """Rectangular cross-section, `width_m` along local x and `height_m` along local y."""

    kind: Literal['rectangular'] = 'rectangular'
    width_m: ShortLength
    height_m: ShortLength

    @property
    def torsion_constant_m4(self) -> float:
        """Saint-Venant's constant J [m^4] by the exact series (Timoshenko & Goodier)."""
        b = max(self.width_m, self.height_m)
        h = min(self.width_m, self.height_m)
        series = sum(math.tanh(k * math.pi * b / (2.0 * h)) / k**5 for k in range(1, 40, 2))
        return b * h**3 * (1.0 / 3.0 - 64.0 * h / (math.pi**5 * b) * series)

    def stiffness(self, fraction: Fraction) -> Array:
        """Return the stiffness (6, 6) [N m^2, N]; the same everywhere."""
        w, h = self.width_m, self.height_m
        return self._matrix(w * h, w * h**3 / 12.0, h * w**3 / 12.0, self.torsion_constant_m4)

    def mass_per_length(self, fraction: Fraction) -> float:
        """Return the mass per length [kg/m]; the same everywhere."""
        return self.density_kg_m3 * self.width_m * self.height_m


class MatrixProfile(ConfigBlock):
    """
    Measured or computed stiffness: rows and columns kx, ky, kz, vx, vy, vz.

    The mass per length is net of the buoyancy of a surrounding fluid, so it may be negative.
    """

    kind: Literal['matrix'] = 'matrix'
    stiffness_matrix: tuple[tuple[Finite, ...], ...]
    mass_per_length_kg_m: Finite = 0.0

    @field_validator('stiffness_matrix')
    @classmethod
    def _is_positive(cls, rows: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
        if len(rows) != 6 or any(len(row) != 6 for row in rows):
            raise ValueError('needs 6 rows of 6 numbers')
        matrix = np.array(rows)
        scale = np.sqrt(np.abs(np.diag(matrix)) + 1e-300)
        scaled = matrix / np.outer(scale, scale)
        if np.abs(scaled - scaled.T).max() > 1e-9:
            raise ValueError('is not symmetric')
        lowest = float(np.linalg.eigvalsh(scaled)[0])
        if lowest < 1e-12:
            raise ValueError(f'is not positive definite (scaled eigenvalue {lowest:.3g})')
        return rows

    def stiffness(self, fraction: Fraction) -> Array:
        """Return the stiffness (6, 6) [N m^2, N m, N]; the same everywhere."""
        return np.array(self.stiffness_matrix)

    def mass_per_length(self, fraction: Fraction) -> float:
        """Return the mass per length [kg/m]; the same everywhere."""
        return self.mass_per_length_kg_m


Profile = Annotated[RoundProfile | RectangularProfile | MatrixProfile, Field(discriminator='kind')]


class RigidConnector(ConfigBlock):
    """
    Rigid piece behind a segment: it continues along the tangent, then rotates the frame.

    The mass is net of the buoyancy of a surrounding fluid.
    """

    length_m: NonNegativeLength = 0.0
    mass_kg: Finite = 0.0
    centre_of_mass_m: Finite | None = Field(
        default=None, description='along the length, from the proximal face; default halfway'
    )
    rotation_vector_deg: tuple[Angle, Angle, Angle] = (0.0, 0.0, 0.0)

    @model_validator(mode='after')
    def _centre_is_on_it(self) -> RigidConnector:
        if self.centre_of_mass_m is not None and self.length_m == 0.0 != self.centre_of_mass_m:
            raise ValueError(
                f'centre_of_mass_m {self.centre_of_mass_m}: must be 0 as length_m is 0'
            )
        return self


class RodSegmentConfig(ConfigBlock):
    """One flexible piece and the rigid connector behind it."""

    name: Name
    length_m: Length
    profile: Profile
    rest_curvature_1_m: FiniteVector = (0.0, 0.0, 0.0)
    connector: RigidConnector = RigidConnector()


class CableRoute(ConfigBlock):
    """
    Path of a cable through one segment, in its local frame.

    The offset from the centreline changes linearly from `radius_m` to `end_radius_m` (if negative,
    the cable crosses the centreline); the angle from local x changes linearly by `turns`
    revolutions.
    """

    segment: Name
    radius_m: Finite
    angle_deg: Finite
    end_radius_m: Finite | None = None
    turns: Finite = 0.0

    def offset(self, fraction: Fraction, length_m: float) -> Array:
        """Return offset r and slope dr/ds (..., 6) [m, -] at fractions (...) of the segment."""
        end = self.radius_m if self.end_radius_m is None else self.end_radius_m
        radius = self.radius_m + fraction * (end - self.radius_m)
        widening = (end - self.radius_m) / length_m
        angle = math.radians(self.angle_deg) + 2.0 * math.pi * self.turns * fraction
        twist = 2.0 * math.pi * self.turns / length_m
        c, s = np.cos(angle), np.sin(angle)
        row = np.zeros((*np.shape(fraction), 6))
        row[..., 0], row[..., 1] = radius * c, radius * s
        row[..., 3] = widening * c - radius * twist * s
        row[..., 4] = widening * s + radius * twist * c
        return row


class RodCableConfig(ConfigBlock):
    """
    One cable: its routes through neighbouring segments; it is fixed at the end of the last.

    A cable that starts after the base segment is a Bowden cable: its sheath rests on the connector
    in front of its first segment, so it does not load the segments before.

    A `bore` is not a cable, but a chamber along its routes with constant area in the section. Its
    tension is minus the fluid pressure times this area; its volume is its path length times this
    area.
    """

    name: Name
    routes: tuple[CableRoute, ...] = Field(min_length=1)
    max_tension_N: Positive = Field(default=1e3, description='for a bore, largest push or pull')
    bore: bool = False

    @property
    def tension_range_N(self) -> tuple[float, float]:
        """Least and largest tension [N]; the least is zero for cables, which only pull."""
        return (-self.max_tension_N if self.bore else 0.0), self.max_tension_N

    @model_validator(mode='after')
    def _bores_are_straight(self) -> RodCableConfig:
        if self.bore and any(r.turns or r.end_radius_m is not None for r in self.routes):
            raise ValueError(f'bore {self.name!r}: its place in the section must be constant')
        return self


class CosseratConfig(ConfigBlock):
    """
    Parameters of a whole arm.

    `extensible`: the rod stretches and shears; if not, it is Kirchhoff's rod, and the stiffness
    against stretch and shear is ignored.
    `gravity_m_s2`: in the base frame, z along the resting arm.
    `steps`: integration steps in each segment.
    """

    segments: tuple[RodSegmentConfig, ...] = Field(min_length=1)
    cables: tuple[RodCableConfig, ...] = ()
    gravity_m_s2: FiniteVector = (0.0, 0.0, 0.0)
    extensible: bool = True
    steps: int = Field(default=4, ge=1, le=10000)

    @model_validator(mode='after')
    def _fits_together(self) -> CosseratConfig:
        names = [segment.name for segment in self.segments]
        for what, given in (('segment', names), ('cable', [c.name for c in self.cables])):
            for name in given:
                if given.count(name) > 1:
                    raise ValueError(f'{what} {name!r} is named twice')
        for cable in self.cables:
            places = []
            for route in cable.routes:
                if route.segment not in names:
                    raise ValueError(
                        f'cable {cable.name!r}: no segment {route.segment!r} in {names}'
                    )
                places.append(names.index(route.segment))
            if places != list(range(places[0], places[0] + len(places))):
                raise ValueError(
                    f'cable {cable.name!r}: its routes must go through neighbouring segments '
                    f'from base to tip, not {[r.segment for r in cable.routes]}'
                )
        return self
