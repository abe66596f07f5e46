"""
How far each model of an arm on cables misses the simulated arm at rest, as it was and identified.

    python -m softarm_reproduction.rod_on_cables [CASE ...]

An arm is led to 40 places drawn within its limits and read at rest, twice. Every model is
identified from the first file (`softarm identify`) and predicts the second. The simulated arm is
the shipped one, with friction of its threads, of the nominal machine. What a laboratory would
weigh is told: masses of bodies and endcaps. Axial stiffness and stretch of the rod begin at
stated guesses, which identification leaves behind.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softarm_ros.cli.identification.common import all_parameters
from softarm_ros.cli.identification.fit import chosen
from softarm_ros.cli.identification.identified import identified
from softarm_ros.cli.identification.recordings import read_recordings
from softarm_ros.cli.measured_excitation import write_excitation
from softarm_ros.cli.score import distances, predict
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.excite import excite, plan_excitation

SEEDS = (11, 12)  # of the places that identify, and of those that are predicted
COUNT, MOST_ROWS = 40, 600
NOMINAL = 'plant.machine.number=0'


@dataclass(frozen=True)
class Model:
    """A model, what it is told beside the rig file, and what is identified of it."""

    name: str
    told: tuple[str, ...]
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """An arm: rig, settings of its simulation, and models of it."""

    rig: str
    plant: tuple[str, ...]
    models: tuple[Model, ...]


def _each(count: int, field: str, value: float) -> tuple[str, ...]:
    return tuple(f'{field.format(k)}={value:g}' for k in range(count))


def _masses(count: int, body_kg: float, cap_kg: float) -> tuple[str, ...]:
    return (
        *_each(count, 'arm.sections[{}].body_mass_kg', body_kg),
        *_each(count, 'arm.sections[{}].endcap_mass_kg', cap_kg),
    )


def _threads(sections: int, body_kg: float) -> tuple[Model, ...]:
    weighed = _masses(sections, body_kg, 0.004)
    places = ('lengths', 'angles', 'radii')
    return (
        Model('constant_curvature', (), places),
        Model('cable_statics', (), ('stiffness', *places)),
        Model('heavy_cable_statics', weighed, ('stiffness', *places)),
        Model(
            'cosserat',
            (
                *weighed,
                'model={kind: cosserat, pretension_m: 0.002}',
                *_each(sections, 'arm.sections[{}].axial_stiffness_N', 1500.0),
                *_each(3 * sections, 'arm.actuators[{}].stretch_m_N', 1e-4),
            ),
            ('stiffness', *places, 'axial'),
        ),
    )


_HEAVY = (
    *_each(2, 'plant.sections[{}].body_mass_kg', 0.058),
    *_each(2, 'arm.sections[{}].max_bending_angle_deg', 75.0),
)
CASES = {
    'cable_arm_single': Case('cable_arm_single', (NOMINAL,), _threads(1, 0.020)),
    'cable_arm': Case('cable_arm', (NOMINAL,), _threads(2, 0.020)),
    'cable_arm_58g': Case('cable_arm', (NOMINAL, *_HEAVY), _threads(2, 0.058)),
    'trunk': Case(
        'trunk',
        (NOMINAL,),
        (
            Model('constant_curvature', (), ('lengths', 'rest_bends', 'bends')),
            Model(
                'cosserat',
                (
                    *_masses(3, 0.060, 0.020),
                    'model={kind: cosserat, pretension_m: 0.001}',
                    *_each(6, 'arm.actuators[{}].stretch_m_N', 1e-4),
                ),
                ('stiffness', 'lengths', 'rest_bends', 'radii', 'angles', 'axial'),
            ),
        ),
    ),
}


def lines_of(name: str, folder: Path) -> Iterator[str]:
    """Yield the lines of the table of one arm."""
    case = CASES[name]
    simulated = load_rig(case.rig, case.plant)
    paths = []
    for seed in SEEDS:
        plan = plan_excitation(
            simulated, 'random', count=COUNT, amplitude=0.6, dwell_s=2.5, seed=seed
        )
        paths.append(folder / f'{name}_{seed}.csv')
        write_excitation(simulated, excite(simulated, plan, seed=seed), paths[-1])
    for model in case.models:
        told = [*case.plant, *model.told]
        if not any(setting.startswith('model=') for setting in told):
            told.append(f'model={model.name}')
        rig = load_rig(case.rig, told)
        recorded = read_recordings(rig, paths, 'file')
        parameters = chosen(all_parameters(rig), model.groups)
        found = identified(rig, recorded, parameters, MOST_ROWS)
        run = recorded[-1].seen_by(rig, recorded[-1].test)
        cells = []
        for one in (rig, found.rig):
            arm = one.physics()
            values = list(distances(predict(one, arm, run, strict=False), run))
            tip = next(v for what, _, v in values if what == one.section_names[-1])
            known = tip[np.isfinite(tip)]
            missed = f'{known.mean():.2f} | {known.max():.2f}' if len(known) else '- | -'
            cells.append(f'{missed} | {len(tip) - len(known)}')
        start = time.process_time()
        for command in run.commands:
            try:
                arm.forward(command)
            except ValueError:
                continue
        cost = 1e6 * (time.process_time() - start) / len(run.commands)
        yield f'| {name} | {model.name} | {cells[0]} | {cells[1]} | {cost:.0f} |'


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('cases', nargs='*', default=tuple(CASES), metavar='CASE')
    print(
        '| arm | model | as it was: mean mm | max | refused | identified: mean mm | max | refused '
        '| forward us |\n|---|---|---|---|---|---|---|---|---|'
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in parser.parse_args().cases:
            for line in lines_of(name, Path(folder)):
                print(line, flush=True)


if __name__ == '__main__':
    main()
