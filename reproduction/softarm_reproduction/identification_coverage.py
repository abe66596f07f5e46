"""
Check how often identified intervals contain the truth, on machines drawn from the priors.

`python -m softarm_reproduction.identification_coverage RIG [--machines 100] [--first 0]
[--groups A,B]` draws machines, numbered from `--first`. Each is the rig with other parameter
values, recorded at rest in poses spread over its range, with the pose errors of a tracker. The rig
without these values is then identified from the recording. The program prints for each parameter
in how many machines the 95 % interval contains the truth, and the width of the intervals in units
of the prior. Machine and identified model have the same equations, so model errors are excluded.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np

from softarm_ros.cli.identification.common import usual_groups
from softarm_ros.cli.identification.fit import chosen, fit
from softarm_ros.cli.identification.intervals import intervals
from softarm_ros.cli.identification.recordings import Recorded
from softarm_ros.cli.measured_run import MeasuredRun, Mount
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.identifiable import Parameter, moved_by, parameters_of
from softarm_ros.rigs.field_values import values_of, with_values
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.recording import MarkerConfig
from softarm_ros.rigs.schema import Rig

NOISE_SHARE = 0.002  # standard deviation of each coordinate, as a share of the arm's length
_DRAWN = 2.0  # spreads at which the priors are truncated
_DRAWS = 20  # attempts to draw values that form a valid arm
_REFUSED = 20  # commands tried per pose before recording fails


@dataclass(frozen=True)
class Machine:
    """The drawn parameters of a machine and their identified intervals."""

    truth: Array
    ends: Array
    seconds: float

    @property
    def inside(self) -> Array:
        """Return whether each true value lies in its interval."""
        return np.asarray((self.ends[:, 0] <= self.truth) & (self.truth <= self.ends[:, 1]))


def identified_machine(
    rig: Rig, parameters: tuple[Parameter, ...], seed: int, poses: int
) -> Machine:
    """Draw a machine, record it at rest and identify it."""
    rng = np.random.default_rng(seed)
    known = values_of(rig, list(dict.fromkeys(f for p in parameters for f in p.fields)))
    bounds = np.array([p.bounds(known) for p in parameters])
    for _ in range(_DRAWS):
        x = np.clip(rng.standard_normal(len(parameters)), -_DRAWN, _DRAWN)
        x = np.clip(x, bounds[:, 0], bounds[:, 1])
        try:
            run = record(with_values(rig, moved_by(parameters, known, x)), rng, poses)
            break
        except ValueError:  # not a valid arm: it buckles, or its cables leave a bend undetermined
            continue
    else:
        raise SystemExit(f'{rig.name}: none of {_DRAWS} draws is a valid arm')
    rows = np.arange(len(run))
    began = time.process_time()
    found = fit(rig, [Recorded(run, rows, rows[:0])], parameters, len(rows))
    return Machine(x, intervals(found, seed), time.process_time() - began)


def record(machine: Rig, rng: np.random.Generator, poses: int) -> MeasuredRun:
    """
    Return measured section tips of a machine at rest under commands within its limits.

    Raises
    ------
    ModelError
        If the machine's model refuses nearly all commands.

    """
    model = machine.physics()
    commands: list[Array] = []
    tips: list[Array] = []
    for _ in range(_REFUSED * poses):
        command = _command(machine, rng)
        try:
            tips.append(model.forward(command).section_tips[:, :3, 3])
        except (ModelError, ValueError):
            continue
        commands.append(command)
        if len(commands) == poses:
            break
    else:
        raise ModelError(f'{machine.name} refuses {_REFUSED * poses - len(commands)} commands')
    measured = np.array(tips)
    measured += rng.normal(0.0, NOISE_SHARE * model.rest_length_m, measured.shape)
    names = machine.section_names
    return MeasuredRun(
        'machine', None, np.array(commands),
        {name: measured[:, k] for k, name in enumerate(names)},
        {name: MarkerConfig(columns=('x', 'y', 'z'), section=name) for name in names},
        {}, Mount(np.zeros(3), np.eye(3)),
    )  # fmt: skip


def _command(machine: Rig, rng: np.random.Generator) -> Array:
    """Return a random command (m,) that suits the kind of arm."""
    if machine.mechanics_name == 'muscles':
        # Independent lengths would oppose muscles with ten times their force.
        return np.asarray(machine.sample_configurations(rng, 1)[0])
    limits = machine.actuator_limits()
    share = rng.beta(0.7, 1.4, len(limits.names)) * (rng.random(len(limits.names)) < 0.6)
    if np.all(limits.position_min < 0.0):
        share = 0.5 + 0.5 * rng.uniform(-0.6, 0.6, len(limits.names))
    return np.asarray(limits.position_min + share * (limits.position_max - limits.position_min))


def main() -> None:
    """Print the coverage and width of the intervals of each parameter."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('rig')
    parser.add_argument('--machines', type=int, default=100)
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--poses', type=int, default=40)
    parser.add_argument('--groups', default='')
    arguments = parser.parse_args()
    rig = load_rig(arguments.rig).model_copy(update={'recording': None})
    groups = arguments.groups.split(',') if arguments.groups else usual_groups(rig)
    parameters = chosen(parameters_of(rig.mechanics_name, rig.arm), groups)
    machines = [
        identified_machine(rig, parameters, seed, arguments.poses)
        for seed in range(arguments.first, arguments.first + arguments.machines)
    ]
    inside = np.array([m.inside for m in machines])
    width = np.median([m.ends[:, 1] - m.ends[:, 0] for m in machines], axis=0)
    last = arguments.first + len(machines) - 1
    print(
        f'{rig.name}: machines {arguments.first} to {last}, {arguments.poses} poses each, groups '
        f'{", ".join(groups)}'
    )
    print(f'{"parameter":<38}{"inside":>8}   median width, spreads of the prior (3.9 before)')
    for k, parameter in enumerate(parameters):
        print(f'{parameter.name:<38}{inside[:, k].sum():5d}/{len(machines)}   {width[k]:8.3f}')
    seconds = [m.seconds for m in machines]
    print(
        f'of all: {100.0 * inside.mean():.1f} %; the least of any parameter '
        f'{100.0 * inside.mean(axis=0).min():.0f} %; processor time of an identification: median '
        f'{np.median(seconds):.1f} s, at most {np.max(seconds):.1f} s'
    )


if __name__ == '__main__':
    main()
