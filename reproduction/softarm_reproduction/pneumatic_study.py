"""
Computations for the experiments of Gong et al. 2018 on the simulated pneumatic arm.

All functions are pure; `pneumatic_experiments` compares their results with the paper's. Models
only predict; the plant is simulated with the assumed parameters of its rig file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import PartBlock
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.pneumatic.chamber_arm import ChamberArm
from softarm_ros.plant.pneumatic.config import PneumaticPlantConfig
from softarm_ros.plant.pneumatic.gripper import GrippedObject
from softarm_ros.plant.pneumatic.pneumatic_plant import PneumaticPlant
from softarm_ros.rigs.arms.pneumatic import PneumaticArm
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.direct import run_direct

CORRECTED, UNCORRECTED = 'angle_correction', 'constant_curvature'
PRESSURES_KPA = tuple(float(p) for p in range(30, 91, 5))
RESTS_S = 2.0  # dwell per pressure and attitude: lags have decayed, creep continues
_LOOKS_S = 0.5  # end of the dwell, over which camera frames are averaged
_CYCLE_S = 0.01
_TOWED_S = 6.0  # time in which the arm comes to rest in a current
_FILTER_S = 0.1  # averaging window of the force sensor's signal


@dataclass(frozen=True)
class Motion:
    """The chambers with pressure in a motion of figure 3: `chambers` (m,) of 0 and 1."""

    name: str
    chambers: tuple[int, ...]


# The figure is not legible; these are three motions like those that it describes.
MOTIONS = (
    Motion('one chamber of each section, same side', (1, 0, 0, 1, 0, 0)),
    Motion('one chamber of the first, two of the second', (1, 0, 0, 0, 1, 1)),
    Motion('two chambers of each section, same side', (0, 1, 1, 0, 1, 1)),
)
POSES_DEG = ((270.0, 50.0, 15.0, 60.0), (150.0, 55.0, 10.0, 20.0), (30.0, 60.0, 0.0, 60.0))


@dataclass(frozen=True)
class LocationErrors:
    """
    Distance [m] of the measured tip from the model's with and without correction, each (n,).

    `asked` is the number of requested points; those missing are out of the chambers' reach.
    """

    label: str
    at: Array
    corrected: Array
    uncorrected: Array
    asked: int

    def reduction_percent(self, at: float) -> float:
        """Return the error reduction [%] by the correction, at the point nearest `at`."""
        i = int(np.argmin(np.abs(self.at - at)))
        return float(100.0 * (1.0 - self.corrected[i] / self.uncorrected[i]))


def chamber_arm(rig: Rig, name: str) -> ChamberArm:
    """Return a model of the rig, checked to be a `ChamberArm`."""
    model = rig.model(name)
    if not isinstance(model, ChamberArm):
        raise TypeError(f'model {name!r} of rig {rig.name!r} is not a ChamberArm')
    return model


def simulated(rig: Rig, seed: int) -> PneumaticPlant:
    """Return the plant of the rig, checked to be a `PneumaticPlant`."""
    plant = build_plant(rig, seed)
    if not isinstance(plant, PneumaticPlant):
        raise TypeError(f'plant of rig {rig.name!r} is not pneumatic')
    return plant


def rest_and_look(plant: PneumaticPlant, pressures: Array) -> Array:
    """Let the plant rest under pressures (m,) [Pa]; return the mean measured tip (3,) [m]."""
    plant.step(pressures, RESTS_S - _LOOKS_S)
    plant.poll_poses()
    seen = []
    for _ in range(round(_LOOKS_S / _CYCLE_S)):
        plant.step(pressures, _CYCLE_S)
        seen += [frame.section_tips[-1, :3, 3] for frame in plant.poll_poses()]
    return np.asarray(np.mean(seen, axis=0))


def location_errors(rig: Rig, motion: Motion, seed: int) -> LocationErrors:
    """Raise the pressure of a motion's chambers in steps; compare the tip with both models."""
    plant, models = simulated(rig, seed), _models(rig)
    errors = []
    for kilopascals in PRESSURES_KPA:
        pressures = 1e3 * kilopascals * np.array(motion.chambers, dtype=float)
        errors.append(_errors(models, pressures, rest_and_look(plant, pressures)))
    corrected, uncorrected = np.array(errors).T
    at = np.array(PRESSURES_KPA)
    return LocationErrors(motion.name, at, corrected, uncorrected, at.size)


def attitude_sweep(
    rig: Rig, pose_deg: Sequence[float], seed: int, step_deg: float = 15.0
) -> LocationErrors:
    """
    Turn phi1 from 0 to 360 degrees in open loop, with the other angles of a pose.

    Attitudes that the chambers cannot reach at their largest pressure are left out.
    """
    plant, models = simulated(rig, seed), _models(rig)
    _, theta1, phi2, theta2 = pose_deg
    angles = np.arange(0.0, 360.0 + 0.5 * step_deg, step_deg)
    errors, reached = [], []
    for phi1 in angles:
        try:
            pressures = attitude_pressures(models[0], (float(phi1), theta1, phi2, theta2))
        except ModelError:
            continue
        errors.append(_errors(models, pressures, rest_and_look(plant, pressures)))
        reached.append(phi1)
    corrected, uncorrected = np.array(errors).T
    label = f'{{phi1, {theta1:g}, {phi2:g}, {theta2:g}}} deg'
    return LocationErrors(label, np.array(reached), corrected, uncorrected, len(angles))


def attitude_pressures(model: ChamberArm, attitude_deg: Sequence[float]) -> Array:
    """Return the pressures (m,) [Pa] for phi and theta [deg] of every section."""
    pairs = np.radians(np.reshape(attitude_deg, (-1, 2)))
    bends = pairs[:, 1:] * np.stack([np.cos(pairs[:, 0]), np.sin(pairs[:, 0])], axis=1)
    return model.actuation_of(model.of_bends(bends.ravel()))


def _models(rig: Rig) -> tuple[ChamberArm, ChamberArm]:
    return chamber_arm(rig, CORRECTED), chamber_arm(rig, UNCORRECTED)


def _errors(models: tuple[ChamberArm, ChamberArm], pressures: Array, tip: Array) -> list[float]:
    return [float(np.linalg.norm(m.forward(pressures).tip[:3, 3] - tip)) for m in models]


def with_stiffness(rig: Rig, bending_stiffness_N_m2: float) -> Rig:
    """Return the rig with another bending stiffness at rest of its plant's arcs."""
    plant = rig.plant_of(PneumaticPlantConfig)
    sections = tuple(
        s.model_copy(
            update={'wall_share': s.wall_share * bending_stiffness_N_m2 / s.bending_stiffness_N_m2}
        )
        for s in plant.sections
    )
    plant = plant.model_copy(update={'sections': sections})
    return rig.model_copy(update={'plant': plant})


# -- cameras ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CameraErrors:
    """Mean, standard deviation, largest and smallest error [m] of single frames."""

    mean: float
    deviation: float
    largest: float
    smallest: float


def camera_errors(rig: Rig, seed: int, frames: int = 40) -> CameraErrors:
    """Return the errors of single camera frames of the arm at rest."""
    plant = simulated(rig, seed)
    true = plant.true_section_tips()[-1, :3, 3]
    errors: list[float] = []
    while len(errors) < frames:
        plant.step(None, 0.1)
        errors += [
            float(np.linalg.norm(f.section_tips[-1, :3, 3] - true)) for f in plant.poll_poses()
        ]
    found = np.array(errors[:frames])
    return CameraErrors(
        float(found.mean()), float(found.std(ddof=1)), float(found.max()), float(found.min())
    )


# -- workspace --------------------------------------------------------------------------------


@dataclass(frozen=True)
class WorkspaceShell:
    """Tips (n, 3) [m] of random attitudes, and the largest and smallest distance from the base."""

    tips: Array
    outer_m: float
    inner_m: float


def workspace_shell(rig: Rig, three: bool, seed: int, n: int = 4000) -> WorkspaceShell:
    """Sample pressures up to their limit in two chambers per section, or in all three."""
    model, rng = chamber_arm(rig, CORRECTED), np.random.default_rng(seed)
    most = rig.actuator_limits().position_max
    pressures = rng.random((n, most.size))
    if not three:
        passive = rng.integers(0, 3, (n, len(PneumaticArm.of(rig).sections)))
        for k in range(len(PneumaticArm.of(rig).sections)):
            pressures[np.arange(n), 3 * k + passive[:, k]] = 0.0
    tips = model.tips_of(np.array([model.configuration_of(row) for row in pressures * most]))
    distance = np.linalg.norm(tips, axis=1)
    return WorkspaceShell(tips, float(distance.max()), float(distance.min()))


# -- strokes in water -------------------------------------------------------------------------


@dataclass(frozen=True)
class Strokes:
    """Strokes at one frequency: half stroke [m], peak force [N] and torque [N m], each (n,)."""

    frequency_hz: float
    half_stroke: Array
    force: Array
    torque: Array

    def at(self, half_stroke: float) -> tuple[float, float] | None:
        """Return force and torque interpolated at a half stroke [m], or None beyond the range."""
        if not self.half_stroke[0] <= half_stroke <= self.half_stroke[-1]:
            return None
        return (
            float(np.interp(half_stroke, self.half_stroke, self.force)),
            float(np.interp(half_stroke, self.half_stroke, self.torque)),
        )


def under_water(rig: Rig, current_m_s: Sequence[float] = (0.0, 0.0, 0.0)) -> Rig:
    """Return the rig with plant and controller's model in water, which flows past its plant."""
    water = PartBlock.model_validate({'kind': 'water', 'current_m_s': tuple(current_m_s)})
    plant = rig.plant_for('sim').model_copy(update={'medium': water})
    return rig.model_copy(update={'medium': 'water', 'plant': plant})


def strokes_in_water(
    rig: Rig,
    frequency_hz: float,
    seed: int,
    pressures_kPa: Sequence[float] = (12.0, 25.0, 50.0, 70.0, 90.0),
    *,
    switched: bool = False,
) -> Strokes:
    """
    Move the arm to and fro in water.

    Pressures follow half sines on alternate sides, or constant pressures `switched` twice per
    period. The stroke is that of the gripper's end. Force and torque are the peaks at the base
    over the last two of three periods, relative to those at rest, averaged over 0.1 s.
    """
    wet = under_water(rig)
    rows = []
    for kilopascals in pressures_kPa:
        plant = simulated(wet, seed)
        rest = plant.body.base_wrench()
        gripper = rig.plant_of(PneumaticPlantConfig).gripper
        assert gripper is not None
        end = np.array([0.0, 0.0, 0.5 * gripper.length_m])
        # Sampled at every step, so that the average has no integration noise.
        h = rig.plant_of(PneumaticPlantConfig).time_step_s
        cycles, window = round(3.0 / frequency_hz / h), round(_FILTER_S / h)
        reach, felt = 0.0, np.empty((cycles, 6))
        for i in range(cycles):
            wave = math.sin(2.0 * math.pi * frequency_hz * (i + 0.5) * h)
            chambers = np.array((1, 0, 0, 1, 0, 0) if wave >= 0.0 else (0, 1, 1, 0, 1, 1))
            size = 1.0 if switched else abs(wave)
            plant.step(1e3 * kilopascals * size * chambers, h)
            felt[i] = plant.body.base_wrench() - rest
            if i >= cycles // 3:
                pose = plant.body.fingers()
                reach = max(reach, float(abs((pose[:3, 3] + pose[:3, :3] @ end)[1])))
        sums = np.cumsum(felt, axis=0)
        mean = (sums[window:] - sums[:-window])[cycles // 3 :] / window
        force = float(np.linalg.norm(mean[:, :3], axis=1).max())
        torque = float(np.linalg.norm(mean[:, 3:], axis=1).max())
        rows.append((reach, force, torque))
    reaches, forces, torques = np.array(rows).T
    order = np.argsort(reaches)
    return Strokes(frequency_hz, reaches[order], forces[order], torques[order])


@dataclass(frozen=True)
class Towed:
    """Drag [N] and its torque [N m] at the base of a towed arm at rest; shift of its tip [m]."""

    speed_m_s: float
    drag_N: float
    torque_N_m: float
    shift_m: float


def towed(rig: Rig, speeds_m_s: Sequence[float], seed: int) -> list[Towed]:
    """
    Tow the arm without pressure through still water along its x axis.

    At a steady speed this equals a current past an arm that stands: forces are those beyond the
    forces in still water, as means over a second after `_TOWED_S`.
    """
    zero = np.zeros(6)

    def held(speed: float) -> tuple[Array, Array]:
        plant = simulated(under_water(rig, (-speed, 0.0, 0.0)), seed)
        plant.step(zero, _TOWED_S)
        felt, tips = [], []
        for _ in range(round(1.0 / _CYCLE_S)):
            plant.step(zero, _CYCLE_S)
            felt.append(plant.body.base_wrench())
            tips.append(plant.body.fingers()[:3, 3])
        return np.mean(felt, axis=0), np.mean(tips, axis=0)

    still, there = held(0.0)
    found = []
    for speed in speeds_m_s:
        wrench, tip = held(speed)
        force, torque = np.linalg.norm((wrench - still).reshape(2, 3), axis=1)
        shift = float(np.linalg.norm(tip - there))
        found.append(Towed(speed, float(force), float(torque), shift))
    return found


# -- pick and place ---------------------------------------------------------------------------


@dataclass(frozen=True)
class PickAndPlace:
    """Result of the task: object taken and put down, placing error [m], duration [s], path."""

    completed: bool
    taken: bool
    put_down: bool
    placing_error_m: float
    duration_s: float
    time_s: Array
    fingers: Array
    held: NDArray[np.bool_]


def pick_and_place(rig: Rig, seed: int, task: str = 'pick_and_place') -> PickAndPlace:
    """
    Drive the task in water in open loop, as in the paper, with a shell of 20 g.

    The shell lies at the model's finger position in the task's first attitude. The placing error
    is relative to the model's finger position in the fifth attitude.
    """
    wet = under_water(rig)
    model, plant = chamber_arm(wet, CORRECTED), simulated(wet, seed)
    pick, place = (_fingers_of(wet, model, POSES_DEG[k]) for k in (0, 2))
    x, y, z = (float(value) for value in pick)
    plant.drives.place_object(GrippedObject((x, y, z), mass_kg=0.020, volume_m3=8e-6))
    time, fingers, held = [], [], []

    def watch(_: object) -> None:
        time.append(plant.time_s)
        fingers.append(plant.body.fingers()[:3, 3])
        held.append(plant.drives.holds_object)

    record = run_direct(wet, task=task, open_loop=True, seed=seed, plant=plant, progress=watch)
    where = plant.drives.object_position()
    error = math.inf if where is None else float(np.linalg.norm(where - place))
    return PickAndPlace(
        record.completed,
        any(held),
        any(held) and not held[-1],
        error,
        record.duration_s,
        np.array(time),
        np.array(fingers),
        np.array(held),
    )


def _fingers_of(rig: Rig, model: ChamberArm, attitude_deg: Sequence[float]) -> Array:
    tip = model.forward(attitude_pressures(model, attitude_deg)).tip
    assert rig.gripper is not None
    return np.asarray(tip[:3, 3] + rig.gripper.centre_m * tip[:3, 2])
