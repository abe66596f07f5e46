"""
Simulated identification of a section, done as in the paper (Qi et al. 2024, III-C).

One cable is pulled in by steps and let out again; force sensor, motion capture and step counter
are read at rest. K_b follows from T d = K_b kappa while theta is small, K_t from the whole
contraction-angle curve. Cable friction increases the tension while the cable is pulled in, which
the paper measured, and reduces it while the cable is let out. Results are reported for each
direction and for both together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.cable_driven.cable_statics import single_cable_inverse
from softarm_ros.plant.arm_plant import ArmPlant
from softarm_ros.plant.config import PlantCable, PlantConfig
from softarm_ros.plant.machine import NOMINAL
from softarm_ros.plant.mocap import Mocap
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.schema import Rig

SMALL_ANGLE_RAD = np.deg2rad(25.0)
MAX_ANGLE_RAD = np.deg2rad(120.0)
LOOP_ANGLE_DEG = 60.0  # angle at which the loop's width is reported
DWELL_S = 2.5
READ_S = 0.5
REPEATS = 3


@dataclass(frozen=True)
class IdentificationData:
    """
    Readings at rest, (n,) each: contraction [m], bending angle [rad], cable tension [N].

    `repeat` (n,) is the index of the reading's run; `pulled` (n,) is True if the cable was pulled
    in before the reading, False if it was let out.
    """

    contraction: Array
    angle: Array
    tension: Array
    repeat: NDArray[np.int64]
    pulled: NDArray[np.bool_]

    def branch(self, pulled: bool) -> IdentificationData:
        """Return the readings of one direction, pulled in or let out."""
        kept = self.pulled == pulled
        return IdentificationData(
            self.contraction[kept],
            self.angle[kept],
            self.tension[kept],
            self.repeat[kept],
            self.pulled[kept],
        )


@dataclass(frozen=True)
class Identification:
    """Identified stiffnesses K_b [N m^2], K_t [N/m^2] and the fit's residual [m, rms]."""

    bending_stiffness: float
    cutting_in_stiffness: float
    contraction_rms: float
    baseline_rms: float


def measure_single_cable(
    rig: Rig,
    seed: int,
    *,
    section: int = 0,
    step_m: float = 0.0015,
    progress: Callable[[float], None] | None = None,
) -> IdentificationData:
    """
    Pull in the first cable of a section by steps up to 120 deg and let it out, three times.

    Raises
    ------
    UsageError
        If the range of the cable has fewer than three steps.

    """
    arm = CableArm.of(rig)
    cable = next(a for a in arm.actuators if a.section == arm.sections[section].name)
    top = cable.position_max_m
    if top < 3 * step_m:
        raise UsageError(
            f'{cable.name}: position_max_m = {top:g}: expected at least {3 * step_m:g}, for three '
            f'steps of {step_m:g} m'
        )
    readings: list[tuple[float, float, float, int, bool]] = []
    for repeat in range(REPEATS):
        plant = _single_section_plant(rig, section, seed + repeat)
        rest = _rest_axis(plant)
        contraction, angle = 0.0, 0.0
        while angle < MAX_ANGLE_RAD and contraction + step_m <= top:
            contraction += step_m
            angle, tension = _read_at_rest(plant, contraction, rest)
            readings.append((contraction, angle, tension, repeat, True))
            if progress is not None:
                progress((repeat + 0.5 * min(angle / MAX_ANGLE_RAD, 1.0)) / REPEATS)
        steps = round(contraction / step_m)
        for left in range(steps - 1, 0, -1):
            angle, tension = _read_at_rest(plant, left * step_m, rest)
            readings.append((left * step_m, angle, tension, repeat, False))
            if progress is not None:
                progress((repeat + 1.0 - 0.5 * left / steps) / REPEATS)
    columns = np.array(readings)
    return IdentificationData(
        columns[:, 0],
        columns[:, 1],
        columns[:, 2],
        columns[:, 3].astype(np.int64),
        columns[:, 4].astype(np.bool_),
    )


def identify(rig: Rig, data: IdentificationData, *, section: int = 0) -> Identification:
    """
    Fit K_b and K_t to the readings, with the controller's geometry.

    Raises
    ------
    UsageError
        If fewer than three readings are of small angles.

    """
    geometry = CableArm.of(rig).sections[section]
    L, d = geometry.length_m, geometry.cable_radius_m
    small = data.angle < SMALL_ANGLE_RAD
    if np.sum(small) < 3:
        raise UsageError(
            f'{rig.name}, section {geometry.name}: {np.sum(small)} readings below 25 deg; '
            'expected at least 3: the steps of the cable bend it too far'
        )
    curvature = data.angle[small] / L
    bending = float(np.sum(data.tension[small] * d * curvature) / np.sum(curvature**2))

    def predicted(cutting_in: float) -> Array:
        return np.array(
            [
                single_cable_inverse(theta, L, d, bending, cutting_in).contraction
                for theta in data.angle
            ]
        )

    def rms(log_stiffness: float) -> float:
        difference = predicted(float(np.exp(log_stiffness))) - data.contraction
        return float(np.sqrt(np.mean(difference**2)))

    fit = minimize_scalar(rms, bounds=(np.log(1e3), np.log(1e7)), method='bounded')
    baseline = d * data.angle - data.contraction
    return Identification(
        bending,
        float(np.exp(fit.x)),
        float(fit.fun),
        float(np.sqrt(np.mean(baseline**2))),
    )


def _single_section_plant(rig: Rig, section: int, seed: int) -> ArmPlant:
    plant = rig.plant_of(PlantConfig).of_machine(NOMINAL)
    name = CableArm.of(rig).sections[section].name
    mine = [i for i, a in enumerate(CableArm.of(rig).actuators) if a.section == name]
    config = plant.model_copy(
        update={
            'sections': (plant.sections[section],),
            'zero_offset_m': tuple(plant.zero_offset_m[i] for i in mine if plant.zero_offset_m),
        }
    )
    angles = [CableArm.of(rig).actuators[i].angle_deg for i in mine]
    # The base frame is rotated so that the first cable lies on the x axis, as in the paper.
    cables = [PlantCable(0, float(np.deg2rad(a - angles[0]))) for a in angles]
    arm = ArmPlant(config, cables, rig.gravity_m_s2)
    arm.look_with(Mocap(config.mocap, seed))
    return arm


def _mean_axis(plant: ArmPlant) -> Array:
    """Return the mean measured tip axis (3,) of the poses received."""
    axes = [pose.section_tips[-1, :3, 2] for pose in plant.poll_poses()]
    if not axes:
        raise RuntimeError('no pose arrived while reading; is the motion capture off?')
    axis = np.mean(axes, axis=0)
    return np.asarray(axis / np.linalg.norm(axis))


def _rest_axis(plant: ArmPlant) -> Array:
    plant.step(np.zeros(len(plant.actuator_state().position)), DWELL_S)
    plant.poll_poses()
    plant.step(None, READ_S)
    return _mean_axis(plant)


def _read_at_rest(plant: ArmPlant, contraction: float, rest: Array) -> tuple[float, float]:
    command = np.zeros(len(plant.actuator_state().position))
    # The other cables are let out far enough to stay slack.
    command[1:] = -contraction
    command[0] = contraction
    plant.step(command, DWELL_S)
    plant.poll_poses()
    plant.step(None, READ_S)
    axis = _mean_axis(plant)
    angle = float(np.arctan2(np.linalg.norm(np.cross(rest, axis)), rest @ axis))
    return angle, float(plant.actuator_state().effort[0])


def describe(rig: Rig, data: IdentificationData, section: int) -> list[str]:
    """Return the lines that `softarm identify` prints."""
    known = CableArm.of(rig).sections[section]
    ways = data.branch(True), data.branch(False)
    pulled, out = (identify(rig, one, section=section) for one in ways)
    both = identify(rig, data, section=section)
    pulls = [_pull_at(way, float(np.deg2rad(LOOP_ANGLE_DEG))) for way in ways]
    return [
        f'{rig.name}, section {known.name}: {len(data.angle)} readings at rest, '
        'pulled in and let out',
        f'bending_stiffness_N_m2: {both.bending_stiffness:.4g}'
        f'    (rig file: {known.bending_stiffness_N_m2:.4g})',
        f'cutting_in_stiffness_N_m2: {both.cutting_in_stiffness:.4g}'
        f'    (rig file: {known.cutting_in_stiffness_N_m2:.4g})',
        f'contraction residual: {1e3 * both.contraction_rms:.2f} mm rms'
        f'    (constant curvature: {1e3 * both.baseline_rms:.2f} mm)',
        f'pulled in alone: {pulled.bending_stiffness:.4g} N m2, '
        f'{pulled.cutting_in_stiffness:.4g} N/m2; '
        f'let out alone: {out.bending_stiffness:.4g} N m2, {out.cutting_in_stiffness:.4g} N/m2',
        f'pull at {LOOP_ANGLE_DEG:g} deg: {pulls[0]:.3f} N pulled in, {pulls[1]:.3f} N let out',
    ]


def _pull_at(branch: IdentificationData, angle: float) -> float:
    """Return the tension [N] of one direction at an angle [rad], as the mean of the runs."""
    pulls = []
    for repeat in np.unique(branch.repeat):
        of_run = branch.repeat == repeat
        order = np.argsort(branch.angle[of_run])
        pulls.append(np.interp(angle, branch.angle[of_run][order], branch.tension[of_run][order]))
    return float(np.mean(pulls))
