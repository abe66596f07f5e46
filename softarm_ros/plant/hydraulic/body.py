"""The simulated body with its chambers and axes: arrays, steps, equilibrium, shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import rotation_x, rotation_y
from softarm_ros.models.hydraulics.axes import WaterHydraulics
from softarm_ros.models.hydraulics.section_config import ChamberConfig
from softarm_ros.models.hydrodynamics.morison import Hydrodynamics, lengths_at_nodes
from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.failures import require_ok
from softarm_ros.plant.hydraulic.config import HydraulicPlantConfig
from softarm_ros.plant.hydraulic.coupled_kernels import (
    BOILING,
    NOT_SOLVED,
    advance_arm_and_water,
    drive_arm_and_water,
    gained_volumes_into,
    settle_arm,
)
from softarm_ros.plant.hydraulic.fabric import fabric_stops
from softarm_ros.plant.hydraulic.fabric_kernels import section_bends_into
from softarm_ros.plant.hydraulic.layout import Axes, Chambers, Gauges, Motors, new_axes
from softarm_ros.plant.layout import (
    ArmState,
    BodyParameters,
    Loads,
    Medium,
    new_scratch,
    rest_state,
)
from softarm_ros.plant.settling import SETTLE_S, STILL_RAD_S, calm
from softarm_ros.plant.shape import centerline, section_tips
from softarm_ros.plant.water_kernels import Water
from softarm_ros.plant.world import World

# Steps are of first order: at 4 ms, pressures that drop within a step are off by 10 kPa.
_LONGEST_STEP_S = 1e-3


class HydraulicBody:
    """
    A chain of elastic joints with water chambers on servo cylinders, and fabric around it.

    The fabric is without memory at the last equilibrium. Every segment has its mass at its far
    end, with its share of drag and added mass. If the plate's mass is stated separately, half of
    the mass of hoses, frames and water lies at either end, and the plate at the section's end.

    Parameters
    ----------
    config
        Body, water.
    chambers
        One per axis.
    world
        Gravity in the base frame, fluid, payload.
    hydraulics
        The axes.

    Attributes
    ----------
    body, state, chambers, axes, stops
        Arrays of the kernels; only the kernels may change the state.

    Raises
    ------
    PlantError
        If the section of a chamber does not exist.

    """

    def __init__(
        self,
        config: HydraulicPlantConfig,
        chambers: Sequence[ChamberConfig],
        world: World,
        hydraulics: WaterHydraulics,
    ) -> None:
        self._per, self._time_step_s = config.segments_per_section, config.time_step_s
        self.hydraulics = hydraulics
        self.body = _body(config, world)
        self.chambers = _chambers(config, chambers)
        n, m = len(self.body.mass), len(chambers)
        self._still, self._water = _medium(config, world)
        self._medium = self._still._replace(force=np.zeros((n, 3)), drag=np.zeros((n, 3, 3)))
        self._loads = Loads(np.zeros(3), np.zeros(3))
        self.state: ArmState = rest_state(n, m, 1)
        self._scratch = new_scratch(n, m, 1, immersed=True)
        self.axes: Axes = new_axes(hydraulics.parameters, hydraulics.width)
        self._config, self._world = config, world
        self._bends = np.zeros((len(config.sections), 2))
        self._no_endcaps = np.zeros(len(config.sections))
        self.stops = fabric_stops(config.fabric, config.sections, self._bends)

    def drive(
        self,
        motors: Motors,
        held: bool,
        gauges: Gauges,
        deviates: Array,
        now_s: float,
        h: float,
        may_boil: bool,
    ) -> None:
        """
        Advance with motors and sensors from `now_s` on; see `drive_arm_and_water`.

        Raises
        ------
        PlantError
            As in `advance`, and if water boils although it must not.

        """
        status, joint, done = drive_arm_and_water(
            self.body, self.state, self._loads, self._still, self._medium, self._water,
            self.chambers, self.stops, self.axes, motors, held, gauges, deviates, self._bends,
            self._scratch, h, _LONGEST_STEP_S, may_boil,
        )  # fmt: skip
        if status == BOILING:
            named = zip(self.hydraulics.axis_names, self.axes.boiling)
            raise PlantError(
                f'at {now_s + done * h:.4f} s the water boils: cavitation in '
                f'{", ".join(name for name, boils in named if boils)}; raise preload_Pa or move '
                'more slowly'
            )
        self._check(status, joint)

    def advance(self, force_N: Array, h: float) -> None:
        """
        Advance by h [s] under piston forces (m,).

        Raises
        ------
        PlantError
            If no common step of arm and axes is found, or the arm leaves the simulated range.

        """
        self.axes.force[:] = force_N
        status, joint = advance_arm_and_water(
            self.body, self.state, self._loads, self._still, self._medium, self._water,
            self.chambers, self.axes, self._scratch, h, _LONGEST_STEP_S,
        )  # fmt: skip
        self._check(status, joint)

    def settle(self, pressure_Pa: Array) -> None:
        """
        Come to rest under pressures (m,) in chambers, pipes and cylinders; pistons follow.

        Raises
        ------
        PlantError
            If the arm does not come to rest.

        """
        h = self._time_step_s
        self.chambers.moment[:] = 0.0
        status, joint = settle_arm(
            calm(self.body), self.state, self._loads, self._still,
            self._medium, self._water, self.chambers, pressure_Pa, self._scratch, h,
            int(SETTLE_S / h), STILL_RAD_S,
        )  # fmt: skip
        self._check(status, joint)
        self.hydraulics.fill(self.axes.state, pressure_Pa, self.gained_volumes())
        self.stops = fabric_stops(self._config.fabric, self._config.sections, self.bends())

    def hang(self, mass_kg: float) -> None:
        """Carry a mass at the tip in addition to the payload, with the payload's density."""
        world = replace(self._world, tip_load_kg=self._world.tip_load_kg + mass_kg)
        self.body.mass[:] = _body(self._config, world).mass
        self._still.force[:] = _medium(self._config, world)[0].force

    def gained_volumes(self) -> Array:
        """Return the increase in volume (m,) [m^3] of the chambers over the straight arm."""
        volume = np.empty(len(self.chambers.area))
        gained_volumes_into(self.chambers, self.state, self._per, volume)
        return volume

    def bends(self) -> Array:
        """Return the bend of every section about x and y (sections, 2) [rad]."""
        bends = np.empty((len(self.chambers.moment), 2))
        section_bends_into(self.state, self._per, bends)
        return bends

    def section_tips(self) -> Array:
        """Return the pose (sections, 4, 4) of every section's tip in the base frame."""
        return section_tips(self.body, self.state, self._scratch, self._no_endcaps)

    def centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] from base to tip, evenly spaced in arc length."""
        return centerline(self.body, self.state, self._scratch, n)

    def _check(self, status: int, joint: int) -> None:
        if status == NOT_SOLVED:
            raise PlantError('arm and water find no common motion for the next step')
        section, segment = divmod(joint, self._per)
        require_ok(status, f'segment {segment} of section {section}')


def _body(config: HydraulicPlantConfig, world: World) -> BodyParameters:
    """Return the chain of joints and bodies."""
    per = config.segments_per_section
    length, stiffness, damping = [], [], []
    for section in config.sections:
        ds = section.length_m / per
        bending = section.bending_stiffness_N_m2
        length.append(ds)
        stiffness.append(
            [bending / ds, section.torsion_stiffness_N_m2 / ds, section.axial_stiffness_N / ds]
        )
        stretching = section.axial_damper_N_s_m * section.length_m / section.axial_stiffness_N
        damping.append([0.0, stretching])
    masses = _at_nodes(config, [s.mass_kg for s in config.sections])
    disc = masses * np.repeat([s.outer_radius_m**2 for s in config.sections], per)
    masses[-1] += world.tip_load_kg
    tilt_x, tilt_y = np.radians(config.base_tilt_deg)
    return BodyParameters(
        segment_length=np.repeat(length, per),
        offset=np.zeros(len(masses)),
        stiffness=np.repeat(stiffness, per, axis=0),
        damping_time=np.repeat(damping, per, axis=0),
        mass=masses,
        centre=np.zeros(len(masses)),
        inertia=np.stack([disc / 4.0, disc / 2.0], axis=1),
        base_rotation=np.ascontiguousarray(rotation_x(tilt_x) @ rotation_y(tilt_y)),
        gravity=np.array(world.gravity_m_s2, dtype=np.float64),
        tip_offset=np.zeros(1),
    )


def _at_nodes(
    config: HydraulicPlantConfig, of_section: Sequence[float], spread: bool = False
) -> Array:
    """Distribute the sections' totals (s,) to the nodes (n,); `spread`: without plates."""
    per = config.segments_per_section
    values = np.empty(per * len(config.sections))
    for k, (section, total) in enumerate(zip(config.sections, of_section)):
        plate = 0.0 if spread else section.plate_mass_kg or 0.0
        own = slice(per * k, per * (k + 1))
        values[own] = (total - plate) / per
        if section.plate_mass_kg is not None:
            # Half of each segment's mass goes to its near end; at the base it does not move.
            half = 0.5 * values[own]
            values[own] -= half
            values[per * k : per * (k + 1) - 1] += half[1:]
            if k > 0:
                values[per * k - 1] += half[0]
            values[per * (k + 1) - 1] += plate
    return values


def _medium(config: HydraulicPlantConfig, world: World) -> tuple[Medium, Water]:
    """Return the constant loads (buoyancy, fabric's drag, added mass), and the water's drag."""
    per, fluid = config.segments_per_section, world.fluid
    density = 0.0 if fluid is None else fluid.density_kg_m3
    displaced = density * _at_nodes(config, [s.displaced_volume_m3 for s in config.sections], True)
    displaced[-1] += density * world.tip_load_kg / world.tip_load_density_kg_m3
    drag = np.repeat([s.drag_N_s_m / per for s in config.sections], per)
    n = len(drag)
    added = np.zeros((n, 3))
    water = Water(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3)))
    current = np.zeros(3)
    if fluid is not None:
        current[:] = fluid.current_m_s
        around = Hydrodynamics(
            fluid.properties,
            lengths_at_nodes(np.repeat([s.length_m / per for s in config.sections], per)),
            np.repeat([s.hydrodynamic_diameter_m for s in config.sections], per),
        )
        added[:] = around.added_mass_matrices()[:, [0, 2, 3], [0, 2, 3]]
        water = Water(
            around.coefficients,
            around.length,
            around.diameter,
            np.zeros((n, 3)),
            np.zeros((n, 3)),
        )
    return Medium(
        force=-displaced[:, None] * np.array(world.gravity_m_s2, dtype=np.float64),
        drag=drag[:, None, None] * np.eye(3),
        turning=np.repeat([s.turning_drag_N_m_s / per for s in config.sections], per),
        added=added,
        current=current,
    ), water


def _chambers(config: HydraulicPlantConfig, chambers: Sequence[ChamberConfig]) -> Chambers:
    """Return the chambers; a section's lever factors apply to its chambers in their order."""
    per, count = config.segments_per_section, [0] * len(config.sections)
    area, place = [], []
    for chamber in chambers:
        if not 0 <= chamber.section < len(config.sections):
            raise PlantError(
                f'chamber {chamber.name}: section {chamber.section}, there are '
                f'{len(config.sections)} sections'
            )
        section = config.sections[chamber.section]
        factors = section.lever_factors
        radius = section.chamber_pitch_radius_m * factors[count[chamber.section] % len(factors)]
        count[chamber.section] += 1
        angle = np.radians(chamber.angle_deg)
        area.append(section.chamber_area_m2)
        place.append([radius * np.cos(angle), radius * np.sin(angle)])
    section_of = np.array([chamber.section for chamber in chambers], dtype=np.int64)
    return Chambers(
        section=section_of,
        area=np.array(area),
        place=np.array(place),
        reach=per * (section_of + 1),
        moment=np.zeros((len(config.sections), 3)),
    )
