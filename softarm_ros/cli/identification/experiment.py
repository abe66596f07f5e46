"""
The papers' identification experiments on the simulated arm: bent, read at rest, with weights.

As in a laboratory, commands and motion capture are recorded in the way of `softarm excite`, and
`softarm identify` fits the parameters to these files.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.measured_excitation import write_excitation
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.plant.hydraulic.config import HydraulicPlantConfig
from softarm_ros.rigs.field_values import with_values
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.excite import excite, plan_excitation

Axis = Literal['x', 'y', 'z']


@dataclass(frozen=True)
class Experiment:
    """
    Identification experiment for one kind of arm.

    Attributes
    ----------
    kind : str
        Kind of excitation, as for `softarm excite`.
    series : tuple of (float, float, str)
        For each series: the weight on the tip [kg], and the angle [deg] and axis of the base frame
        by which gravity is turned, because the arm is mounted differently.
    amplitude, dwell_s : float
        As for `softarm excite`.
    parameters : tuple of str
        Groups that are identified by default.
    prior_factor : float
        Factor on the spreads of their priors, which may be wide: the experiment is informative.
    weighed : bool
        Whether each section was weighed before it was mounted, so that its mass is known.

    """

    kind: str
    series: tuple[tuple[float, float, Axis], ...]
    amplitude: float
    dwell_s: float
    parameters: tuple[str, ...]
    prior_factor: float
    weighed: bool = False

    @property
    def group_factors(self) -> dict[str, float]:
        """Factors on the priors of single groups."""
        return {'weight': _SCALE_FACTOR} if self.weighed else {}


_SCALE_KG = 0.001  # standard deviation of a kitchen scale
_SCALE_FACTOR = 0.03  # on a prior of 10 %: 0.3 %, one gram of 0.35 kg

# By `mechanics_name` of the rig.
EXPERIMENTS = {
    # Tension and bend of each unit, and its deflection under a weight (Zhou et al. 2023).
    # Upside down, bends at rest show apart from sag; on its side, the other kind of unit sags.
    'rod_cables': Experiment(
        'quasi-static',
        ((0.0, 0.0, 'z'), (0.036, 180.0, 'z'), (0.0, 90.0, 'z'), (0.036, 270.0, 'z')),
        0.6,
        2.5,
        ('stiffness_profile', 'radii', 'weight', 'rest_curvature'),
        5.0,
    ),
    # Each chamber filled alone, and all together (Chen et al. 2022, 4.2). Known weights
    # distinguish stiffness from levers; on a tilted mount, the arm's own weight bends it.
    'water_chambers': Experiment(
        'actuators',
        ((0.0, 0.0, 'y'), (0.15, 0.0, 'y'), (0.0, 20.0, 'y'), (0.15, 20.0, 'x')),
        0.5,
        2.5,
        (
            'stiffness',
            'lengths',
            'levers',
            'radii',
            'weight',
            'torsion',
            'rest_curvature',
            'tilt',
        ),
        5.0,
        # The fabric's losses in small bends look like weight: if its mass were fitted freely, a
        # section would seem half as heavy again.
        weighed=True,
    ),
}


def experiment_of(rig: Rig) -> Experiment:
    """Return the experiment for a rig's kind of arm; UsageError if there is none."""
    if rig.mechanics_name not in EXPERIMENTS:
        raise UsageError(f'{rig.name}: identify an arm of this kind from a recording')
    return EXPERIMENTS[rig.mechanics_name]


def weighed(rig: Rig, seed: int) -> Rig:
    """Return the rig with section masses read from a scale, if the experiment weighs sections."""
    if not experiment_of(rig).weighed:
        return rig
    rng = np.random.default_rng((seed, 7))
    sections = rig.plant_of(HydraulicPlantConfig).of_machine(seed).sections
    return with_values(
        rig,
        {
            f'arm.sections[{k}].mass_kg': round(s.mass_kg + _SCALE_KG * rng.standard_normal(), 3)
            for k, s in enumerate(sections)
        },
    )


def run_experiment(
    rig: Rig, seed: int, folder: Path, progress: Callable[[float], None]
) -> list[Path]:
    """Run the simulated arm through all series; return the recorded files."""
    asked = experiment_of(rig)
    files = []
    for i, (weight_kg, turn_deg, axis) in enumerate(asked.series):
        load_kg = rig.tip_load_kg + weight_kg
        held = rig.model_copy(
            update={
                'tip_load_kg': load_kg,
                'gravity_m_s2': _turned(rig.gravity_m_s2, turn_deg, axis),
            }
        )
        plan = plan_excitation(
            held, asked.kind, count=0, amplitude=asked.amplitude, dwell_s=asked.dwell_s,
            seed=seed,
        )  # fmt: skip

        def show(done: float, before: int = i) -> None:
            progress((before + done) / len(asked.series))

        rows = excite(held, plan, seed=seed, progress=show)
        files.append(folder / f'{rig.name}_{1e3 * load_kg:g}_g_{turn_deg:g}_deg_{axis}.csv')
        write_excitation(held, rows, files[-1])
    return files


def _turned(
    vector: tuple[float, float, float], deg: float, axis: Axis
) -> tuple[float, float, float]:
    """Return a vector rotated by an angle [deg] about an axis."""
    about = np.zeros(3)
    about['xyz'.index(axis)] = math.radians(deg)
    x, y, z = exp_so3(about) @ np.array(vector)
    return float(x), float(y), float(z)
