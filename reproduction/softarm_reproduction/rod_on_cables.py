"""
Compare cable-driven models with the simulated arm at rest, as shipped and identified.

    python -m softarm_reproduction.rod_on_cables [CASE ...]

An arm is moved to 40 random places within its limits and measured at rest; this is done twice with
different places. Every model is identified from the first recording (`softarm identify`) and
predicts the second. The simulated arm is the shipped nominal machine with cable friction. The
models know the masses of bodies and endcaps, as a laboratory would weigh them. The rod's axial
stiffness and cable stretch start from stated guesses, which identification replaces.

    python -m softarm_reproduction.rod_on_cables --own-numbers

Show the errors that remain without any unknown: the models have the simulated cable_arm's own
numbers and no friction, in 12 poses up to 75 degrees with 2 mm pretension, then in poses bent by
60 to 150 degrees. With `--falls`, count in which poses plant and rod fall aside, pushed as in
`cable_arm_weight`.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from softarm_reproduction.cable_arm_weight import (
    DISTAL_DEG,
    FALLEN_M,
    PROXIMAL_DEG,
    PUSH_N,
    STILL,
)
from softarm_ros.cli.identification.common import all_parameters
from softarm_ros.cli.identification.fit import chosen
from softarm_ros.cli.identification.identified import identified
from softarm_ros.cli.identification.recordings import read_recordings
from softarm_ros.cli.measured_excitation import write_excitation
from softarm_ros.cli.prediction import predict
from softarm_ros.cli.score import distances
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven.heavy_cable_statics import HeavyCableStaticsArm
from softarm_ros.models.cable_driven.rod import CableRodArm
from softarm_ros.models.config import SectionConfig
from softarm_ros.plant.config import PlantCable, PlantConfig
from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.soft_arm import SoftArm
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.excite import excite, plan_excitation

SEEDS = (11, 12)  # of the places for identification and for prediction
COUNT, MOST_ROWS = 40, 600
NOMINAL = 'plant.machine.number=0'


@dataclass(frozen=True)
class Model:
    """A model: its name, settings over the rig file, and parameter groups to identify."""

    name: str
    told: tuple[str, ...]
    groups: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """An arm: rig, settings of the simulation, and models to compare."""

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
    """Yield the table lines of one arm."""
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


@dataclass(frozen=True)
class Twins:
    """The simulated cable_arm without friction, and models with the same numbers."""

    plant: PlantConfig
    wires: tuple[PlantCable, ...]
    gravity: tuple[float, float, float]
    models: tuple[CableRodArm, HeavyCableStaticsArm]

    def misses(self, wound: Array) -> list[float]:
        """Return each model's tip error [m] at cable contractions (m,) [m]; NaN if refused."""
        body = SoftArm(self.plant, self.wires, self.gravity)
        for share in (0.25, 0.5, 0.75):  # in stages, so that no cable swings beyond its length
            body.settle(contraction=share * wound, tolerance=1e-2)
        tip = body.settle(contraction=wound, tolerance=1e-5).section_tips[-1, :3, 3]
        found = []
        for model in self.models:
            try:
                found.append(float(np.linalg.norm(model.forward(wound).tip[:3, 3] - tip)))
            except ModelError:
                found.append(math.nan)
        return found

    def stand(self, wound: Array) -> tuple[bool, bool] | None:
        """Return whether plant and rod stand at contractions (m,) [m]; None if the plant fails."""
        body = SoftArm(self.plant, self.wires, self.gravity)
        try:
            for share in (0.25, 0.5, 0.75):
                body.settle(contraction=share * wound, tolerance=1e-2)
            tip = body.settle(contraction=wound, tolerance=STILL).section_tips[-1, :3, 3]
            pushed = body.settle(contraction=wound, tip_force=PUSH_N, tolerance=STILL)
        except PlantError:
            return None
        stands = bool(np.linalg.norm(pushed.section_tips[-1, :3, 3] - tip) < FALLEN_M)
        try:
            self.models[0].forward(wound)
        except ModelError:
            return stands, False
        return stands, True


def twins_of(rig: Rig, mass_kg: float, cutting_in: float) -> Twins:
    """Return plant and models with the given body mass and cutting-in stiffness [N/m^2]."""
    plant, arm = rig.plant_of(PlantConfig).nominal(), CableArm.of(rig)
    changes = {'body_mass_kg': mass_kg, 'cutting_in_stiffness_N_m2': cutting_in}
    bodies = tuple(s.model_copy(update=changes) for s in plant.sections)
    changed = {'sections': bodies, 'cable_friction_coefficient': 0.0}
    fields = SectionConfig.model_fields
    sections = [
        SectionConfig(name=name, **{k: v for k, v in body.model_dump().items() if k in fields})
        for name, body in zip(arm.section_names, bodies)
    ]
    cables, wires, inside = [], [], 0.0
    for k, section in enumerate(sections):
        whole = inside + section.endcap_length_m + section.length_m + plant.cable_free_length_m
        for cable in (c for c in arm.cables() if c.section == section.name):
            stretch = {'stretch_m_N': whole / plant.cable_axial_stiffness_N}
            cables.append(cable.model_copy(update=stretch))
            wires.append(PlantCable(k, float(np.deg2rad(cable.angle_deg))))
        inside += section.length_m + 2.0 * section.endcap_length_m
    models = (
        CableRodArm(sections, cables, rig.gravity_m_s2),
        HeavyCableStaticsArm(sections, cables, rig.gravity_m_s2),
    )
    return Twins(plant.model_copy(update=changed), tuple(wires), rig.gravity_m_s2, models)


def own_numbers() -> Iterator[str]:
    """Yield the table lines of models with the plant's own numbers."""
    rig = load_rig('cable_arm')
    arcs, rng = rig.model('constant_curvature'), np.random.default_rng(5)
    drawn = []
    for _ in range(12):
        angles = rng.uniform(0.0, 2.0 * np.pi, 2)
        sizes = np.radians(75.0) * np.sqrt(rng.uniform(size=2))
        bends = np.stack([sizes * np.cos(angles), sizes * np.sin(angles)], axis=1)
        drawn.append(arcs.actuation_of(bends.ravel()) + 2e-3)
    far = [
        arcs.actuation_of(np.radians([proximal, 0.0, distal, 0.0])) + pretension
        for pretension, proximal, distal in product(
            (3e-3, 8e-3), (60.0, 90.0, 120.0, 150.0), (-30.0, 50.0, 130.0)
        )
    ]
    own = rig.plant_of(PlantConfig).sections[0].cutting_in_stiffness_N_m2
    for where, places in (('to 75 deg', drawn), ('60 to 150 deg', far)):
        for mass, cutting in ((0.020, 1e7), (0.020, own), (0.058, 1e7), (0.058, own)):
            if places is far and (mass > 0.02 or cutting == 1e7):
                continue  # the plant falls aside, or a cable has no length left inside
            twins = twins_of(rig, mass, cutting)
            found = 1e3 * np.array([twins.misses(wound) for wound in places])
            cells = [
                f'{np.nanmean(f):.2f} | {np.nanmax(f):.2f} | {np.isnan(f).sum()}' for f in found.T
            ]
            kept = 'on guides' if cutting == 1e7 else 'cut in'
            yield f'| {where} | {1e3 * mass:.0f} g | {kept} | {" | ".join(cells)} |'


def falls() -> Iterator[str]:
    """Yield the table lines that count falls of plant and rod, in poses of one plane."""
    rig = load_rig('cable_arm')
    arcs = rig.model('constant_curvature')
    wound = [
        # Rounded, so that only the push decides to which side the arm falls.
        np.round(arcs.actuation_of(np.radians([proximal, 0.0, distal, 0.0])) + 3e-3, 9)
        for proximal, distal in product(PROXIMAL_DEG, DISTAL_DEG[::2])
    ]
    own = rig.plant_of(PlantConfig).sections[0].cutting_in_stiffness_N_m2
    for mass, cutting in product((0.040, 0.058), (1e7, own)):
        twins = twins_of(rig, mass, cutting)
        found = [both for both in map(twins.stand, wound) if both is not None]
        count = Counter(found)
        kept = 'on guides' if cutting == 1e7 else 'cut in'
        cells = ((True, True), (False, False), (True, False), (False, True))
        yield f'| {1e3 * mass:.0f} g | {kept} | {" | ".join(str(count[c]) for c in cells)} |'


def main() -> None:
    """Print the chosen table."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('cases', nargs='*', default=tuple(CASES), metavar='CASE')
    parser.add_argument('--own-numbers', action='store_true')
    parser.add_argument('--falls', action='store_true')
    given = parser.parse_args()
    if given.falls:
        print('| body | cables | both stand | both fall | rod refuses | plant falls, rod stands |')
        print('|---|---|---|---|---|---|')
        for line in falls():
            print(line, flush=True)
        return
    if given.own_numbers:
        heads = (
            f'{name}: mean mm | max | refused' for name in ('cosserat', 'heavy_cable_statics')
        )
        print(f'| poses | body | cables | {" | ".join(heads)} |')
        print('|---|---|---|---|---|---|---|---|---|')
        for line in own_numbers():
            print(line, flush=True)
        return
    print(
        '| arm | model | as it was: mean mm | max | refused | identified: mean mm | max | refused '
        '| forward us |\n|---|---|---|---|---|---|---|---|---|'
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in given.cases:
            for line in lines_of(name, Path(folder)):
                print(line, flush=True)


if __name__ == '__main__':
    main()
