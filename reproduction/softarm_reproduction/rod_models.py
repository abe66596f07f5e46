"""
Compare the Cosserat rod with the other models of arms with chambers or muscles.

`python -m softarm_reproduction.rod_models [RIG ...]` prints for each model of a rig: the distance
of its tip from that of the simulated arm at rest in random poses, the error of the true tip along
the shipped paths in open and closed loop, and the time of a call. Seed 0, the nominal machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros import load_rig
from softarm_ros.cli.identify_chambers import (
    identify_chambers,
    measure_chambers,
    with_identified,
)
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, ModelError, Posture
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.direct import run_direct

RIGS = ('hydraulic_arm', 'pneumatic_arm', 'pam_arm')
PATHS = {
    'hydraulic_arm': ('circle', 'circle_large', 'line', 'ramps'),
    'pneumatic_arm': ('circle', 'line', 'sweep'),
    'pam_arm': ('circle', 'line', 'square', 'cardioid'),
}
# Models whose values the chamber experiment of the arm can identify.
IDENTIFIED = {'pneumatic_arm': ('angle_correction', 'cosserat')}
POSES, POSES_SEED = 40, 7
RAMP_S, REST_S, STEP_S = 3.0, 5.0, 0.02
_CALLS, _DRAWS, _TIPS = 200, 6, 20


@dataclass(frozen=True)
class AtRest:
    """Commands (n, m) and the true tips (n, 3) [m] of the simulated arm at rest under them."""

    commands: Array
    tips: Array

    def misses_of(self, model: ArmModel) -> Array:
        """Return a model's distances (n,) [m] from the tips; NaN if it refuses the command."""
        found = np.full(len(self.commands), np.nan)
        for k, (command, tip) in enumerate(zip(self.commands, self.tips)):
            try:
                found[k] = np.linalg.norm(model.forward(command).tip[:3, 3] - tip)
            except ModelError:
                continue
        return found


def poses_at_rest(rig: Rig, count: int = POSES, seed: int = POSES_SEED) -> AtRest:
    """
    Return the simulated arm at rest in random poses.

    Commands belong to random configurations within the rig's limits. Each is ramped up from rest
    in 3 s and held for 5 s, with the machine's hysteresis, friction and drive errors.
    """
    model = rig.model()
    drawn = rig.sample_configurations(np.random.default_rng(seed), count)
    commands = [model.actuation_of(configuration) for configuration in drawn]
    rest = model.actuation_of(model.rest_configuration)
    tips = []
    for command in commands:
        plant = build_plant(rig, 0)
        for k in range(round((RAMP_S + REST_S) / STEP_S)):
            share = min((k + 1) * STEP_S / RAMP_S, 1.0)
            plant.step(rest + share * (command - rest), STEP_S)
        tips.append(plant.true_section_tips()[-1, :3, 3])
    return AtRest(np.array(commands), np.array(tips))


def cost_ms(model: ArmModel, configuration: Array) -> float:
    """Return the CPU time [ms] of a tracker's queries on a posture near the previous one."""
    posture: Posture | None = None
    sway = 1e-3 * model.configuration_scale * np.resize((1.0, -1.0), len(configuration))
    times = []
    for k in range(_CALLS):
        start = time.process_time()
        posture = model.posture_of(configuration + np.sin(0.05 * k) * sway, posture)
        _ = posture.tip, posture.tip_jacobian, posture.actuation
        _ = posture.actuation_jacobian, posture.preferred
        times.append(time.process_time() - start)
    return 1e3 * float(np.median(times))


def _with(rig: Rig, model: str) -> Rig:
    """Return the rig of the same file with another model, given as name or YAML block."""
    return load_rig(str(rig.source or rig.name), [f'model={model}'])


def resolution(rig: Rig) -> list[tuple[str, int, float]]:
    """Return model, steps, segments or intervals, and largest distance [m] from a fine rod."""
    limits = rig.actuator_limits()
    reach = 0.6 * (limits.position_max - limits.position_min)
    draws = np.random.default_rng(3).uniform(size=(_DRAWS, len(reach)))
    commands = limits.position_min + draws * reach

    def tips(model: ArmModel) -> Array:
        return np.array([model.forward(command).tip[:3, 3] for command in commands])

    fine = tips(_with(rig, '{kind: cosserat, steps: 40}').model())
    found = []
    for kind, field, counts in (
        ('cosserat', 'steps', (1, 2, 3, 4, 6)),
        ('hydraulic_statics', 'segments_per_section', (1, 2, 3, 5)),
        ('minimum_energy', 'intervals', (20, 40, 80, 160)),
    ):
        for count in counts if kind in rig.model_names else ():
            model = _with(rig, f'{{kind: {kind}, {field}: {count}}}').model()
            misses = np.linalg.norm(tips(model) - fine, axis=1)
            found.append((kind, count, float(misses.max())))
    return found


def own_values(rig: Rig, model: str) -> Rig:
    """Return the rig with the values that a model identifies in the chamber experiment."""
    fresh = _with(rig, model)
    return with_identified(fresh, identify_chambers(fresh, measure_chambers(fresh, 0)))


def inverse_ms(rig: Rig, model: ArmModel) -> float:
    """Return the median CPU time [ms] of an inverse without a guess, over reachable tips."""
    drawn = rig.arm.sample_configurations(model, np.random.default_rng(0), _TIPS)
    times = []
    for tip in model.tips_of(drawn):
        start = time.process_time()
        solution = model.inverse(tip)
        times.append(time.process_time() - start)
        if not solution.converged:
            raise RuntimeError(f'{model.name}: {solution.message}')
    return 1e3 * float(np.median(times))


def _print_rig(name: str, laps: bool, identify: bool) -> None:
    rig = load_rig(name)
    rest = poses_at_rest(rig)
    rigs = {
        model: own_values(rig, model)
        if identify and model in IDENTIFIED.get(rig.name, ())
        else rig
        for model in rig.model_names
    }
    away = np.linalg.norm(rest.tips, axis=1)
    print(f'{name}: {len(rest.tips)} poses at rest, tips {away.min():.3f} to {away.max():.3f} m')
    print('| model | missed mm, mean | rms | max | refused | a posture ms | an inverse ms |')
    print('|---|---|---|---|---|---|---|')
    for model_name in rig.model_names:
        model = rigs[model_name].model(model_name)
        misses = 1e3 * rest.misses_of(model)
        known = misses[np.isfinite(misses)]
        middle = model.configuration_of(rest.commands[0])
        print(
            f'| {model_name} | {known.mean():.2f} | {np.sqrt(np.mean(known**2)):.2f} '
            f'| {known.max():.2f} | {len(misses) - len(known)} '
            f'| {cost_ms(model, middle):.2f} | {inverse_ms(rig, model):.1f} |'
        )
    print('| model | steps, segments or intervals | miss of a fine rod, um |\n|---|---|---|')
    for model_name, count, miss in resolution(rig):
        print(f'| {model_name} | {count} | {1e6 * miss:.2f} |')
    if not laps:
        return
    print('| path | model | open loop mm, mean | max | closed loop mean | max |')
    print('|---|---|---|---|---|---|')
    for path in PATHS[rig.name]:
        for model_name in rig.model_names:
            cells = []
            for open_loop in (True, False):
                record = run_direct(
                    rigs[model_name], path, model=model_name, open_loop=open_loop, laps=1, seed=0
                )
                error = record.error()
                assert error is not None
                cells += [f'{1e3 * error.mean:.2f}', f'{1e3 * error.max:.2f}']
            print(f'| {path} | {model_name} | ' + ' | '.join(cells) + ' |', flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables of all rigs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('rigs', nargs='*', default=list(RIGS), metavar='RIG|FILE')
    parser.add_argument('--no-laps', action='store_true', help='skip the runs along the paths')
    parser.add_argument(
        '--identify',
        action='store_true',
        help='identify curves and compliance of pneumatic_arm for each model first',
    )
    given = parser.parse_args(arguments)
    for name in given.rigs:
        _print_rig(name, not given.no_laps, given.identify)
    return 0


if __name__ == '__main__':
    sys.exit(main())
