"""Rigs of elastic rods bent by cables under tension: fishbone units, tentacles."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.drivers.attachments import PulledTendons
from softarm_ros.geometry.configs import NonNegative, Positive
from softarm_ros.geometry.parts import Part
from softarm_ros.models.cosserat.config import CableRoute, RodCableConfig, RodSegmentConfig
from softarm_ros.models.tendon_rod.mechanics import RodCables
from softarm_ros.plant.config import PlantBase
from softarm_ros.plant.tendon_rod.config import TendonRodPlantConfig
from softarm_ros.rigs.arms.base import ActuatorBase, ArmBase, Surrounded
from softarm_ros.rigs.outline import SpreadMass, Strand


class TendonConfig(ActuatorBase):
    """One cable: its route through the rod and the limits of its winch."""

    routes: tuple[CableRoute, ...] = Field(
        min_length=1, description='through neighbouring segments; it ends at the last'
    )
    unit: Literal['N'] = Field(default='N', description='of the command: cable tension')
    tension_max_N: Positive
    max_rate_N_s: Positive
    max_acceleration_N_s2: Positive


class TendonRodArm(ArmBase):
    """An arm of elastic segments and rigid connectors, bent by cables (Zhou et al. 2023)."""

    KIND: ClassVar[str] = 'tendon_rod'
    BODY: ClassVar[str] = 'tendon_chain'

    segments: tuple[RodSegmentConfig, ...] = Field(min_length=1, description='from base to tip')
    pretension_N: NonNegative = Field(
        description='of every cable at rest; kept where the tip allows it, else down to 0'
    )
    actuators: tuple[TendonConfig, ...] = Field(
        min_length=1, description='in the order of every actuation vector'
    )

    @property
    def section_names(self) -> tuple[str, ...]:
        """Names of the segments from base to tip."""
        return tuple(segment.name for segment in self.segments)

    @property
    def mechanics_name(self) -> str:
        """Kind of mechanics: cables through a rod."""
        return 'rod_cables'

    def mechanics(self, around: Surrounded) -> RodCables:
        """Return the mechanics: rod, cables, pretension and the load at the tip."""
        cables = tuple(
            RodCableConfig(name=a.name, routes=a.routes, max_tension_N=a.tension_max_N)
            for a in self.actuators
        )
        return RodCables(
            self.segments, cables, around.gravity_m_s2, self.pretension_N, around.tip_load_kg
        )

    def actuator_limits(self) -> ActuatorLimits:
        """Return the limits of all cables, arrays (m,) in N, N/s, N/s^2."""
        return ActuatorLimits(
            names=self.actuator_names,
            unit='N',
            position_min=np.zeros(len(self.actuators)),
            position_max=np.array([a.tension_max_N for a in self.actuators]),
            max_speed=np.array([a.max_rate_N_s for a in self.actuators]),
            max_acceleration=np.array([a.max_acceleration_N_s2 for a in self.actuators]),
        )

    def configuration_limits(self) -> ConfigurationLimits:
        """Return the range of the tensions, which are also the configuration."""
        limits = self.actuator_limits()
        return ConfigurationLimits.of_range(limits.position_min, limits.position_max)

    def strands(self) -> tuple[Strand, ...]:
        """Return the lines of the cables in each of their segments; turns are not drawn."""
        return tuple(
            Strand(
                i,
                self.section_names.index(route.segment),
                float(np.deg2rad(route.angle_deg)),
                route.radius_m,
                route.radius_m if route.end_radius_m is None else route.end_radius_m,
            )
            for i, tendon in enumerate(self.actuators)
            for route in tendon.routes
        )

    def body_radii_m(self, plant: PlantBase | None) -> tuple[float, ...]:
        """Return the outer radius of each segment [m]."""
        if isinstance(plant, TendonRodPlantConfig):
            return (plant.outer_radius_m,) * len(self.segments)
        # A segment's radius is that of its outermost cable, or the largest other without cables.
        widest = {
            s.name: max((r.radius_m for r in self._routes(s.name)), default=None)
            for s in self.segments
        }
        thickest = max(radius for radius in widest.values() if radius is not None)
        return tuple(widest[s.name] or thickest for s in self.segments)

    def masses(self, plant: PlantBase | None) -> tuple[tuple[SpreadMass, ...], ...]:
        """Return the masses of rod and connector of each segment."""
        masses = []
        for segment in self.segments:
            connector = segment.connector
            of = segment.profile.mass_per_length
            start, middle, end = (float(of(x)) for x in (0.0, 0.5, 1.0))
            rod = segment.length_m * (start + 4.0 * middle + end) / 6.0  # quadratic in a taper
            joined = segment.length_m / (segment.length_m + connector.length_m)
            spread = [SpreadMass(rod, 0.0, joined)] if rod > 0.0 else []
            if connector.mass_kg > 0.0:
                # A connector without length is a lump at the end of its rod.
                spread.append(SpreadMass(connector.mass_kg, min(joined, 0.99), 1.0))
            masses.append(tuple(spread))
        return tuple(masses)

    def _routes(self, segment: str) -> list[CableRoute]:
        """Return the routes of the cables through a segment."""
        return [r for cable in self.actuators for r in cable.routes if r.segment == segment]


def pulled_tendons(arm: TendonRodArm, around: Surrounded) -> PulledTendons:
    """Return the routes of the cables, their tension at rest and their tension rates."""
    index = {name: i for i, name in enumerate(arm.section_names)}
    return PulledTendons(
        arm.actuator_names,
        tuple(a.routes for a in arm.actuators),
        tuple(tuple(index[r.segment] for r in a.routes) for a in arm.actuators),
        arm.pretension_N,
        arm.actuator_limits().max_speed,
    )


PART = Part(
    'arm',
    TendonRodArm.KIND,
    TendonRodArm,
    {
        'pulled_tendons': f'{__name__}:pulled_tendons',
    },
    'an elastic rod with rigid connectors, bent by cables under tension',
    ('softarm_ros.rigs.arms.tendon_rod_checks:CHECKS',),
)
