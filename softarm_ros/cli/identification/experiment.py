"""
The papers' identification experiments on the simulated arm: bent, read at rest, with weights.

Commands and motion capture are read, as in a laboratory, by `softarm excite`; what is fitted and
how is `softarm identify`'s, from the same files.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.measured_excitation import write_excitation
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.excite import excite, plan_excitation


@dataclass(frozen=True)
class Experiment:
    """
    What an arm of some kind goes through.

    Attributes
    ----------
    series : tuple of (float, float)
        For each: what hangs on the tip [kg], and by how much the arm is turned about its axis
        [deg]. Turned over, what is bent at rest does not sag; turned on its side, units of the
        other kind do.
    amplitude, dwell_s : float
        Of the places, as of `softarm excite`.
    parameters : tuple of str
        Groups that are identified unless others are asked for.
    prior_factor : float
        On the spreads of their priors: what such an experiment tells need not be known.

    """

    series: tuple[tuple[float, float], ...]
    amplitude: float
    dwell_s: float
    parameters: tuple[str, ...]
    prior_factor: float


# By the mechanics that an arm provides.
EXPERIMENTS = {
    # Tension and bend of each unit, and how it gives under a weight (Zhou et al. 2023).
    'rod_cables': Experiment(
        ((0.0, 0.0), (0.036, 180.0), (0.0, 90.0), (0.036, 270.0)),
        0.6,
        2.5,
        ('stiffness_profile', 'radii', 'weight', 'rest_curvature'),
        5.0,
    ),
}


def experiment_of(rig: Rig) -> Experiment:
    """Return the experiment of a kind of arm; UsageError if there is none."""
    if rig.mechanics_name not in EXPERIMENTS:
        raise UsageError(f'{rig.name}: identify an arm of this kind from a recording')
    return EXPERIMENTS[rig.mechanics_name]


def run_experiment(
    rig: Rig, seed: int, folder: Path, progress: Callable[[float], None]
) -> list[Path]:
    """Move the simulated arm through all series; return the files of what was read."""
    asked = experiment_of(rig)
    files = []
    for i, (weight_kg, turn_deg) in enumerate(asked.series):
        load_kg = rig.tip_load_kg + weight_kg
        held = rig.model_copy(
            update={'tip_load_kg': load_kg, 'gravity_m_s2': _turned(rig.gravity_m_s2, turn_deg)}
        )
        plan = plan_excitation(
            held, 'quasi-static', count=0, amplitude=asked.amplitude, dwell_s=asked.dwell_s,
            seed=seed,
        )  # fmt: skip

        def show(done: float, before: int = i) -> None:
            progress((before + done) / len(asked.series))

        rows = excite(held, plan, seed=seed, progress=show)
        files.append(folder / f'{rig.name}_{1e3 * load_kg:g}_g_{turn_deg:g}_deg.csv')
        write_excitation(held, rows, files[-1])
    return files


def _turned(vector: tuple[float, float, float], deg: float) -> tuple[float, float, float]:
    """Return a vector turned about z."""
    c, s = math.cos(math.radians(deg)), math.sin(math.radians(deg))
    x, y, z = vector
    return c * x - s * y, s * x + c * y, z
