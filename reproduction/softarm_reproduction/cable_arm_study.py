"""
The cable arm's experiments of Qi et al. 2024, repeated on the simulated plant.

Open-loop tracking over bending amplitude (their figure 10) and bending of a single section (their
figure 8). This module only computes; `cable_arm_experiments` makes tables and figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.cli.demo import BASELINE, PROPOSED
from softarm_ros.cli.run_cases import RunCase, run_cases
from softarm_ros.control.trajectory_config import CircleConfig, LineConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel
from softarm_ros.models.config import ModelName
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.run_record import RunRecord

LINE_HALF_ANGLE_RAD = np.deg2rad(40.0)
DWELL_S = 3.0
READ_S = 0.5


@dataclass(frozen=True)
class AmplitudeRow:
    """Open-loop mean errors [m] of both models on one path, and its bending angles [rad]."""

    shape: str
    bending: float
    max_bending: float
    baseline: float
    proposed: float

    @property
    def improvement_percent(self) -> float:
        """Return by how many percent cable statics reduces the error."""
        return 100.0 * (1.0 - self.proposed / self.baseline)


@dataclass(frozen=True)
class SectionRow:
    """Commanded bending of a single section and the errors of angle and direction [rad]."""

    model: ModelName
    direction: float
    bending: float
    bending_error: float
    direction_error: float


def equal_bending_tip(model: ArmModel, bending: float, direction: float = 0.0) -> Array:
    """Return the tip (3,) [m] with all sections bent by the same angle in the same direction."""
    sections = len(model.configuration_names) // 2
    bend = bending * np.array([np.cos(direction), np.sin(direction)])
    return model.shape_of(np.tile(bend, sections)).tip[:3, 3]


def circle_at(model: ArmModel, bending: float, speed: float) -> CircleConfig:
    """Return the circle about the base axis that the tip follows at equal bending [rad]."""
    x, _, z = equal_bending_tip(model, bending)
    return CircleConfig(type='circle', center=(0.0, 0.0, float(z)), radius=float(x), speed=speed)


def line_at(model: ArmModel, bending: float, speed: float) -> LineConfig:
    """Return a chord of the circle of `circle_at` that spans 80 deg."""
    x, y, z = map(float, equal_bending_tip(model, bending, LINE_HALF_ANGLE_RAD))
    return LineConfig(type='line', start=(x, -y, z), end=(x, y, z), speed=speed)


def amplitude_study(
    rig: Rig,
    bendings: Sequence[float],
    seed: int,
    speed: float = 0.015,
    progress: Callable[[int], None] | None = None,
) -> list[AmplitudeRow]:
    """Run circle and line in open loop with both models at several bending amplitudes [rad]."""
    model = rig.model(PROPOSED)
    cases, labels = [], []
    for shape, make in (('circle', circle_at), ('line', line_at)):
        for bending in bendings:
            name = f'{shape}_{np.rad2deg(bending):.0f}'
            extended = rig.model_copy(update={'trajectories': {name: make(model, bending, speed)}})
            labels.append((shape, bending))
            cases += [
                RunCase(extended, name, kind, True, 1, seed) for kind in (BASELINE, PROPOSED)
            ]
    records = run_cases(cases, progress)
    rows = []
    for (shape, bending), baseline, proposed in zip(labels, records[::2], records[1::2]):
        theta = np.linalg.norm(
            proposed.samples.configuration[proposed.samples.tracking].reshape(-1, 2), axis=1
        )
        rows.append(
            AmplitudeRow(
                shape, bending, float(theta.max()), _mean_error(baseline), _mean_error(proposed)
            )
        )
    return rows


def _mean_error(record: RunRecord) -> float:
    error = record.error()
    if error is None:
        raise RuntimeError(f'{record.info.trajectory}: the run has no tracking samples')
    return error.mean


def section_sweep(
    rig: Rig, bendings: Sequence[float], directions: Sequence[float], seed: int
) -> list[SectionRow]:
    """Command bending and direction in open loop on one section and read the pose at rest."""
    if len(CableArm.of(rig).sections) != 1:
        raise ValueError(
            f'rig {rig.name!r} has {len(CableArm.of(rig).sections)} sections; expected 1'
        )
    rows = []
    for kind in (BASELINE, PROPOSED):
        model = rig.model(kind)
        for direction in directions:
            plant = build_plant(rig, seed)
            for bending in bendings:
                bend = bending * np.array([np.cos(direction), np.sin(direction)])
                plant.step(model.actuation_of(bend), DWELL_S)
                plant.poll_poses()
                plant.step(None, READ_S)
                poses = plant.poll_poses()
                axis = np.mean([p.section_tips[-1, :3, 2] for p in poses], axis=0)
                reached = float(np.arctan2(np.hypot(axis[0], axis[1]), axis[2]))
                heading = float(np.arctan2(axis[1], axis[0]))
                rows.append(
                    SectionRow(
                        kind,
                        direction,
                        bending,
                        bending - reached,
                        float(np.angle(np.exp(1j * (direction - heading)))),
                    )
                )
    return rows
