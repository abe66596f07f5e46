"""
Simulated identification of a pneumatic arm: extension by pressure, and compliance of the arcs.

As Gong et al. 2018 did for pressure and length, chambers are filled step by step, and the cameras
measure the section tips at rest. A second series with a weight at the tip distinguishes compliance
("give") from extension.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel
from softarm_ros.models.pneumatic.config import ChamberSectionConfig, PressureCurveConfig
from softarm_ros.models.pneumatic.mechanics import AirChambers
from softarm_ros.plant.plant import Plant
from softarm_ros.rigs.arms.pneumatic import PneumaticArm
from softarm_ros.rigs.part_choice import chosen_part
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_plant

WEIGHT_KG = 0.03  # tip weight of the second series; the arm weighs 0.251 kg
STEPS = 6  # pressure steps up to the largest pressure
REST_S, LOOK_S, CYCLE_S = 2.0, 0.5, 0.01
_LEAST_GIVE = 1e-3  # rad/(N m)
_SURE_M = 1e-3  # errors beyond this count less: effects of friction and casting


@dataclass(frozen=True)
class Readings:
    """
    Camera measurements at rest.

    Attributes
    ----------
    pressure : (n, m)
        Commanded pressures [Pa].
    weight : (n,)
        Weight at the tip [kg].
    tips : (n, sections, 3)
        Section tips [m], base frame.

    """

    pressure: Array
    weight: Array
    tips: Array


@dataclass(frozen=True)
class ChamberIdentification:
    """
    Identified curves and give of the sections.

    Attributes
    ----------
    pressure : (k,)
        Pressures of the curves [Pa], from 0.
    extension : (sections, k)
        Extension of a chamber of each section [m], from 0.
    give : (sections,)
        Compliance L / (E I) of an arc without elongation [rad/(N m)].
    growth
        Relative increase of the give per elongation, the same for all sections (one silicone).
    rms, rms_before
        RMS error of the section tips [m]: of the identified model, and of the rig file's.

    """

    pressure: Array
    extension: Array
    give: Array
    growth: float
    rms: float
    rms_before: float


def measure_chambers(rig: Rig, seed: int, *, steps: int = STEPS) -> Readings:
    """Fill one chamber per section, then two of the first section; without and with a weight."""
    full = rig.actuator_limits().position_max
    motions = [np.eye(3)[[j, (2 * j + 1) % 3]].ravel() for j in range(3)]
    motions.append(np.concatenate([[0.0, 1.0, 1.0], np.eye(3)[0]]))
    sections = len(PneumaticArm.of(rig).sections)
    pressure, weight, tips = [], [], []
    for load in (0.0, WEIGHT_KG):
        loaded = rig.model_copy(update={'tip_load_kg': rig.tip_load_kg + load})
        plant = build_plant(loaded, seed)
        for motion in motions:
            chambers = np.tile(motion, -(-sections // 2))[: 3 * sections]
            plant.step(np.zeros_like(full), REST_S)
            for step in range(steps):
                pressure.append(full * chambers * (step + 1) / steps)
                weight.append(load)
                tips.append(look_at_rest(plant, pressure[-1]))
    return Readings(np.array(pressure), np.array(weight), np.array(tips))


def look_at_rest(plant: Plant, pressures: Array) -> Array:
    """Let the plant rest under pressures (m,) [Pa]; return the measured tips (sections, 3) [m]."""
    plant.step(pressures, REST_S)
    plant.poll_poses()
    seen = []
    for _ in range(round(LOOK_S / CYCLE_S)):
        plant.step(pressures, CYCLE_S)
        seen += [frame.section_tips[:, :3, 3] for frame in plant.poll_poses()]
    if not seen:
        raise RuntimeError('no pose arrived while reading; are the cameras off?')
    return np.asarray(np.mean(seen, axis=0))


def identify_chambers(rig: Rig, readings: Readings) -> ChamberIdentification:
    """Fit curve and give of each section, and the growth of the give, with the rig's model."""
    part, settings = chosen_part('model', rig.chosen_model)
    builder = part.builder(rig.mechanics_name)

    def build(changed: AirChambers) -> ArmModel:
        model: ArmModel = builder(settings, changed)
        return model

    mechanics: AirChambers = rig.mechanics()
    count = len(mechanics.sections)
    knots = np.unique(np.append(0.0, readings.pressure))
    # Unknowns: for each section, extension gained between knots, then give; last, the growth.
    gained = np.array([_gained(section, knots) for section in mechanics.sections])
    give = [max(section.bend_per_moment_rad_N_m, 1.0) for section in mechanics.sections]
    start = np.append(np.column_stack([gained, give]), mechanics.sections[0].give_growth)
    # The compliance must stay positive.
    least = np.append(np.column_stack([0.05 * gained, np.full(count, _LEAST_GIVE)]), 0.0)
    scale = np.append(np.column_stack([gained, np.ones(count)]), 1.0)

    def read(unknowns: Array) -> tuple[Array, Array, float]:
        rows = unknowns[:-1].reshape(count, -1)
        extension = np.cumsum(np.column_stack([np.zeros(count), rows[:, :-1]]), axis=1)
        return extension, rows[:, -1], float(unknowns[-1])

    def errors(unknowns: Array) -> Array:
        extension, give, growth = read(unknowns)
        sections = tuple(
            _changed(section, knots, extension[k], float(give[k]), growth)
            for k, section in enumerate(mechanics.sections)
        )
        return _errors(build, replace(mechanics, sections=sections), readings)

    fit = least_squares(
        errors, start, bounds=(least, np.inf), x_scale=scale, diff_step=1e-4, loss='soft_l1',
        f_scale=_SURE_M, xtol=1e-6, ftol=1e-6,
    )  # fmt: skip
    return ChamberIdentification(
        knots, *read(fit.x), _rms(errors(fit.x)), _rms(_errors(build, mechanics, readings))
    )


def with_identified(rig: Rig, found: ChamberIdentification) -> Rig:
    """Return the rig with the identified values in its arm."""
    sections = tuple(
        _changed(section, found.pressure, found.extension[k], float(found.give[k]), found.growth)
        for k, section in enumerate(PneumaticArm.of(rig).sections)
    )
    return rig.with_arm(sections=sections)


def describe_chambers(rig: Rig, found: ChamberIdentification) -> list[str]:
    """Return the lines that `softarm identify` prints: fields of the rig file's sections."""
    lines = [
        f'{rig.name}: chambers filled step by step, without and with {1e3 * WEIGHT_KG:g} g',
        f'pressure_Pa: {[round(float(p)) for p in found.pressure]}',
    ]
    for k, section in enumerate(PneumaticArm.of(rig).sections):
        lines += [
            f'{section.name}: extension_m: {[round(float(e), 6) for e in found.extension[k]]}',
            f'{section.name}: bend_per_moment_rad_N_m: {found.give[k]:.4g}    (rig file: '
            f'{section.bend_per_moment_rad_N_m:.4g})',
            f'{section.name}: give_growth: {found.growth:.4g}    (rig file: '
            f'{section.give_growth:.4g})',
        ]
    return [
        *lines,
        f'section tips: {1e3 * found.rms:.2f} mm rms    (rig file: '
        f'{1e3 * found.rms_before:.2f} mm)',
    ]


def _gained(section: ChamberSectionConfig, knots: Array) -> Array:
    """Return the extension gained between knots (k - 1,) [m], by the section's first curve."""
    curve = section.curves[0]
    return np.diff(np.interp(knots, curve.pressure_Pa, curve.extension_m))


def _changed(
    section: ChamberSectionConfig, pressure: Array, extension: Array, give: float, growth: float
) -> ChamberSectionConfig:
    curve = PressureCurveConfig(pressure_Pa=tuple(pressure), extension_m=tuple(extension))
    return section.model_copy(
        update={
            'curves': (curve,), 'bend_per_moment_rad_N_m': give, 'give_growth': growth
        }
    )  # fmt: skip


def _errors(
    build: Callable[[AirChambers], ArmModel], mechanics: AirChambers, readings: Readings
) -> Array:
    """Return modelled minus measured section tips (n * sections * 3,) [m]."""
    found = []
    for load in np.unique(readings.weight):
        loaded = replace(mechanics, tip_mass_kg=mechanics.tip_mass_kg + float(load))
        model = build(loaded)
        for i in np.flatnonzero(readings.weight == load):
            shape = model.forward(readings.pressure[i])
            found.append(shape.section_tips[:, :3, 3] - readings.tips[i])
    return np.concatenate(found, axis=None)


def _rms(errors: Array) -> float:
    """Return the root of the mean squared distance [m]."""
    return float(np.sqrt(3.0 * np.mean(errors**2)))
