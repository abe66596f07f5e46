"""
Computations for the fishbone arm's experiments: unit, module, path around a ball (Zhou 2023).

The rod's axes are corrected throughout: unit 1 is soft about the axis about which its cable bends
it (the paper prints the stiff axis). Simulated measurements are true tips at rest of the rig
file's plant, whose parameters are assumed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ellipeinc, ellipk, ellipkinc

from softarm_ros.cli.run_cases import RunCase, run_cases
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import Shape
from softarm_ros.models.cosserat.arm import CosseratArm
from softarm_ros.models.cosserat.config import (
    CosseratConfig,
    RectangularProfile,
    RigidConnector,
    RodCableConfig,
    RodSegmentConfig,
)
from softarm_ros.plant.tendon_rod.config import PlantTendon, TendonRodPlantConfig
from softarm_ros.plant.tendon_rod.plant import TendonRodPlant
from softarm_ros.rigs.arms.tendon_rod import TendonRodArm
from softarm_ros.rigs.field_values import with_values
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.direct import run_direct
from softarm_ros.runtime.loop import CycleOutput, Phase

PRINTED_MODULUS_PA = 210e9
STEEL_KG_M3, DRAWN_RADIUS_M = 7850.0, 0.01  # assumed: the paper states neither
UNIT_LOADS_KG = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55)
DISK_KG = 0.01546
MODULE_TENSIONS_N = tuple((t1, t2) for t1 in (5.0, 10.0) for t2 in (3.0, 6.0, 9.0))
SWEEP_N = (3.0, 5.0, 6.0, 9.0, 10.0)
BALL_CENTRE_M = (0.0, 0.0, 0.26)
BALL_RADIUS_M = 0.025
CENTRELINE_POINTS = 81
_RAMP_N_S = 2.0
_REST_S = 8.0


@dataclass(frozen=True)
class UnitRow:
    """Tip drop [m] of one horizontal unit under a mass [kg] and its disk; tips in plane (2,)."""

    mass_kg: float
    linear_m: float
    elastica_m: float
    rod_m: float
    heavy_rod_m: float
    heavy_rod_tip: Array
    simulated_tip: Array
    rod_shape: Array
    simulated_shape: Array

    @property
    def error_m(self) -> float:
        """Return the distance [m] of the simulated tip from that of the rod with strip weight."""
        return float(np.linalg.norm(self.simulated_tip - self.heavy_rod_tip))


@dataclass(frozen=True)
class ModuleRow:
    """Tips O2 and O4 (3,) [m] of a module under two tensions, in the base frame."""

    tensions_N: tuple[float, float]
    predicted: tuple[Array, Array]
    simulated: tuple[Array, Array]
    predicted_shape: Array
    simulated_shape: Array

    @property
    def errors_m(self) -> tuple[float, float]:
        """Return the distances [m] of the simulated O2 and O4 from the predicted ones."""
        first, second = (
            float(np.linalg.norm(s - p)) for s, p in zip(self.simulated, self.predicted)
        )
        return first, second


@dataclass(frozen=True)
class BendingLoop:
    """Bending [rad] of one unit over tension [N], during loading and unloading."""

    tension_N: Array
    loading_rad: Array
    unloading_rad: Array
    closed_form_rad: Array
    rod_rad: Array


@dataclass(frozen=True)
class BallRun:
    """One run around the ball: errors of the tip and clearances of the whole body [m]."""

    label: str
    mean_m: float
    max_m: float
    clearance_m: float
    approach_clearance_m: float
    tips: Array
    shapes: Array


def as_printed(rig: Rig) -> Rig:
    """Return the rig with the paper's values for strips and cables instead of identified ones."""
    values = {}
    for k in range(len(TendonRodArm.of(rig).segments)):
        place = f'arm.segments[{k}]'
        values[f'{place}.profile.young_modulus_Pa'] = PRINTED_MODULUS_PA
        values[f'{place}.profile.density_kg_m3'] = STEEL_KG_M3
        values |= {f'{place}.rest_curvature_1_m[{i}]': 0.0 for i in range(3)}
    for j in range(len(TendonRodArm.of(rig).actuators)):
        values[f'arm.actuators[{j}].routes[0].radius_m'] = DRAWN_RADIUS_M
    return with_values(rig, values)


def strip_stiffness(rig: Rig) -> float:
    """Return E I [N m^2] of the first unit's strip about its soft axis."""
    law = TendonRodArm.of(rig).segments[0].profile.stiffness(0.5)
    return float(min(law[0, 0], law[1, 1]))


def elastica(force_N: float, length_m: float, stiffness_N_m2: float) -> tuple[float, float]:
    """
    Return (reach, drop) [m] of a horizontal cantilever under a vertical force at its end.

    Solved by elliptic integrals: with the slope a at the end, k^2 = (1 + sin a) / 2 and
    sin phi = 1/(k sqrt 2), sqrt(F L^2/EI) = K(k) - F(phi, k).
    """
    if force_N == 0.0:
        return length_m, 0.0
    root = math.sqrt(force_N * length_m**2 / stiffness_N_m2)

    def parts(slope: float) -> tuple[float, float]:
        m = 0.5 * (1.0 + math.sin(slope))
        return m, math.asin(min(1.0, 1.0 / math.sqrt(2.0 * m)))

    def excess(slope: float) -> float:
        m, phi = parts(slope)
        return float(ellipk(m) - ellipkinc(phi, m)) - root

    slope = float(brentq(excess, 1e-9, 0.5 * math.pi - 1e-9, xtol=1e-14))
    m, phi = parts(slope)
    drop = 1.0 - 2.0 / root * float(ellipeinc(0.5 * math.pi, m) - ellipeinc(phi, m))
    return length_m * math.sqrt(2.0 * math.sin(slope)) / root, length_m * drop


# -- one unit under load ------------------------------------------------------------------------


def unit_under_load(rig: Rig) -> list[UnitRow]:
    """
    Return the rows of the unit with 50 to 550 g and its disk attached to the strip's end.

    The unit is horizontal and bends downwards. It is the rig's second unit, whose orientation is
    that of the paper's test.
    """
    segment, real = (
        TendonRodArm.of(rig).segments[1],
        rig.plant_of(TendonRodPlantConfig).segments[1],
    )
    law, length, g = strip_stiffness(rig), segment.length_m, rig.gravity_m_s2
    weightless = segment.model_copy(update={'profile': _without_weight(segment.profile)})
    rows = []
    for mass in UNIT_LOADS_KG:
        force = (mass + DISK_KG) * math.hypot(*g)
        _, drop = elastica(force, length, law)
        rod = _bare_rod(weightless, g).forward(np.zeros(0), (0.0, -force, 0.0))
        heavy = _bare_rod(segment, g).forward(np.zeros(0), (0.0, -force, 0.0))
        config = rig.plant_of(TendonRodPlantConfig).model_copy(
            update={
                'segments': (
                    real.model_copy(
                        update={'connector': RigidConnector(mass_kg=DISK_KG, length_m=0.0)}
                    ),
                )
            }
        )
        plant = TendonRodPlant(config, (_cable(rig, 2, 0),), g, mass, np.zeros(1), 0)
        tip = plant.true_section_tips()[-1, :3, 3]
        rows.append(
            UnitRow(
                mass,
                force * length**3 / (3.0 * law),
                drop,
                -float(rod.tip[1, 3]),
                -float(heavy.tip[1, 3]),
                heavy.tip[1:3, 3],
                tip[1:],
                heavy.centerline(41),
                plant.true_centerline(41),
            )
        )
    return rows


def _without_weight(profile: object) -> RectangularProfile:
    if not isinstance(profile, RectangularProfile):
        raise TypeError(f'{profile}: expected a RectangularProfile of a strip')
    return profile.model_copy(update={'density_kg_m3': 0.0})


def _bare_rod(segment: RodSegmentConfig, gravity: tuple[float, float, float]) -> CosseratArm:
    """Return the rod of a segment's flexible part, without connector and cables."""
    alone = segment.model_copy(update={'connector': RigidConnector()})
    return CosseratArm(CosseratConfig(segments=(alone,), gravity_m_s2=gravity, steps=8))


def _cable(rig: Rig, actuator: int, segment: int) -> PlantTendon:
    """Return a cable of the rig for a plant in which its segment has the index `segment`."""
    chosen = TendonRodArm.of(rig).actuators[actuator]
    return PlantTendon(chosen.name, chosen.routes, (segment,))


# -- one module under two cables ----------------------------------------------------------------


def module_grid(rig: Rig, seed: int) -> list[ModuleRow]:
    """Return the two-unit module under all pairs of tensions of the paper's two cables."""
    rows = []
    for pair in MODULE_TENSIONS_N:
        shape = predicted_module(rig, pair)
        plant = _module_plant(rig, seed)
        _pull_slowly(plant, np.zeros(2), np.array(pair))
        seen = plant.true_section_tips()[:, :3, 3]
        tips = shape.section_tips[:, :3, 3]
        rows.append(
            ModuleRow(
                pair,
                (tips[0], tips[1]),
                (seen[0], seen[1]),
                shape.centerline(CENTRELINE_POINTS),
                plant.true_centerline(CENTRELINE_POINTS),
            )
        )
    return rows


def predicted_module(rig: Rig, tensions_N: tuple[float, float]) -> Shape:
    """Return the predicted shape of the paper's module, with the disks' weight at strip ends."""
    segments = tuple(
        segment.model_copy(
            update={'connector': segment.connector.model_copy(update={'centre_of_mass_m': 0.0})}
        )
        for segment in TendonRodArm.of(rig).segments[:2]
    )
    cables = tuple(
        RodCableConfig(name=a.name, routes=a.routes, max_tension_N=a.tension_max_N)
        for a in (TendonRodArm.of(rig).actuators[0], TendonRodArm.of(rig).actuators[2])
    )
    config = CosseratConfig(
        segments=segments, cables=cables, gravity_m_s2=rig.gravity_m_s2, steps=8
    )
    return CosseratArm(config).forward(np.array(tensions_N))


def _module_plant(rig: Rig, seed: int) -> TendonRodPlant:
    arm = rig.plant_of(TendonRodPlantConfig)
    config = arm.model_copy(update={'segments': arm.segments[:2]})
    cables = (_cable(rig, 0, 0), _cable(rig, 2, 1))
    return TendonRodPlant(config, cables, rig.gravity_m_s2, 0.0, np.zeros(2), seed)


def _pull_slowly(plant: TendonRodPlant, start: Array, end: Array) -> None:
    """Ramp the tensions [N] from start to end and let the arm come to rest."""
    duration = float(np.max(np.abs(end - start))) / _RAMP_N_S
    steps = max(int(duration / 0.05), 1)
    for k in range(1, steps + 1):
        plant.step(start + (end - start) * k / steps, 0.05)
    plant.step(end, _REST_S)


# -- bending against tension --------------------------------------------------------------------


def bending_loop(rig: Rig, seed: int) -> BendingLoop:
    """Return the bending of the first unit, its cable tension raised to 12 N and lowered again."""
    segment = TendonRodArm.of(rig).segments[0]
    radius = TendonRodArm.of(rig).actuators[0].routes[0].radius_m
    tension = np.array(SWEEP_N)
    cable = RodCableConfig(name='cable', routes=TendonRodArm.of(rig).actuators[0].routes)
    rod = CosseratArm(CosseratConfig(segments=(segment,), cables=(cable,), steps=8))
    by_rod = [_sideways(rod.forward(np.array([t])).tip) for t in SWEEP_N]
    arm = rig.plant_of(TendonRodPlantConfig)
    config = arm.model_copy(update={'segments': arm.segments[:1]})
    plant = TendonRodPlant(config, (_cable(rig, 0, 0),), rig.gravity_m_s2, 0.0, np.zeros(1), seed)
    straight = _sideways(plant.true_section_tips()[-1])
    measured, before = [], 0.0
    for target in (*SWEEP_N, 12.0, *SWEEP_N[::-1]):
        _pull_slowly(plant, np.array([before]), np.array([target]))
        measured.append(_sideways(plant.true_section_tips()[-1]) - straight)
        before = target
    count = len(SWEEP_N)
    return BendingLoop(
        tension,
        np.array(measured[:count]),
        np.array(measured[:count:-1]),
        tension * radius * segment.length_m / strip_stiffness(rig),
        np.array(by_rod),
    )


def _sideways(tip: Array) -> float:
    """Return the angle [rad] between a tip's tangent and z, in the x-z plane."""
    return math.atan2(float(tip[0, 2]), float(tip[2, 2]))


# -- around a ball ------------------------------------------------------------------------------


def around_ball(rig: Rig, seeds: Sequence[int], open_loop: bool) -> list[BallRun]:
    """Drive the tip around the ball; clearances are those of the sleeve's surface."""
    runs = []
    for seed in seeds:
        plant = build_plant(rig, seed)
        shapes: list[Array] = []
        phases: list[Phase] = []

        def watch(
            output: CycleOutput,
            plant: object = plant,
            shapes: list[Array] = shapes,
            phases: list[Phase] = phases,
        ) -> None:
            if isinstance(plant, TendonRodPlant):
                shapes.append(plant.true_centerline(CENTRELINE_POINTS))
                phases.append(output.phase)

        record = run_direct(
            rig, 'around_ball', open_loop=open_loop, seed=seed, plant=plant, progress=watch
        )
        error = record.error()
        if error is None or not record.completed:
            raise RuntimeError('around_ball: the run was not completed')
        lines = np.array(shapes)
        room = clearance(lines, rig.plant_of(TendonRodPlantConfig))
        tracking = np.array([phase is Phase.TRACK for phase in phases])
        runs.append(
            BallRun(
                f'{"open" if open_loop else "closed"} loop, seed {seed}',
                error.mean,
                error.max,
                float(room[tracking].min()),
                float(room[~tracking].min()),
                lines[tracking, -1],
                lines[tracking],
            )
        )
    return runs


def clearance(centrelines: Array, config: TendonRodPlantConfig) -> Array:
    """Return the clearances (n,) [m] of ball and sleeve for centrelines (n, points, 3)."""
    distance = np.linalg.norm(centrelines - np.array(BALL_CENTRE_M), axis=-1).min(axis=-1)
    return np.asarray(distance - BALL_RADIUS_M - config.outer_radius_m)


# -- effects of drive, friction and model --------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """The circle with one change: mean and largest error [m] in open and closed loop."""

    label: str
    open_m: tuple[float, float]
    closed_m: tuple[float, float]


def variants(rig: Rig, seed: int) -> list[Variant]:
    """Return the circle's errors for the rig file and with other drives, friction and model."""

    def with_plant(**values: object) -> Rig:
        return rig.model_copy(
            update={'plant': rig.plant_of(TendonRodPlantConfig).model_copy(update=values)}
        )

    sliding = rig.plant_of(TendonRodPlantConfig).winch.model_copy(update={'guide_loss': 0.19})
    cases = (
        ('rig file', rig, None),
        ('no friction', with_plant(friction_coefficient=0.0), None),
        ('sliding guide of a quarter turn, loss 0.19', with_plant(winch=sliding), None),
        ('payload of 10 g at the tip, known', rig.model_copy(update={'tip_load_kg': 0.01}), None),
        ('model constant_curvature', rig, 'constant_curvature'),
    )
    runs = [
        RunCase(arm, 'circle', model or arm.default_model, open_loop, 1, seed)
        for _, arm, model in cases
        for open_loop in (True, False)
    ]
    errors = []
    for record in run_cases(runs):
        error = record.error()
        if error is None:
            raise RuntimeError('circle: the run has no tracking samples')
        errors.append((error.mean, error.max))
    return [Variant(case[0], errors[2 * k], errors[2 * k + 1]) for k, case in enumerate(cases)]
