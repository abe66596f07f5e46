"""Consistency of pneumatic rigs: sections, chambers, gripper and their simulated plant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softarm_ros.rigs.checks import check, checks_in, duplicates, plant_sections
from softarm_ros.rigs.errors import Problem, listed

_WATER_KG_M3 = 998.0
_LENGTH_SHARE = 0.1


@check('sections')
def _unique_sections(rig: Any) -> Iterator[Problem]:
    yield from duplicates(rig.sections, 'sections')


@check('sections', 'actuators')
def _chambers(rig: Any) -> Iterator[Problem]:
    names = [f'{s.name}_chamber_{j}' for s in rig.sections for j in (1, 2, 3)]
    found = [a.name for a in rig.actuators]
    if len(found) != len(names):
        yield Problem(
            ('arm', 'actuators'),
            f'expected three a section: {listed(names)}',
            f'{len(found)} actuators',
        )
        return
    for i, (name, wanted) in enumerate(zip(found, names)):
        if name != wanted:
            yield Problem(('arm', 'actuators', i, 'name'), f'expected {wanted!r}', repr(name))


@check('sections', 'actuators')
def _pressures_within_curves(rig: Any) -> Iterator[Problem]:
    curves = [
        curve for s in rig.sections for curve in (s.curves * 3 if len(s.curves) == 1 else s.curves)
    ]
    for i, (a, curve) in enumerate(zip(rig.actuators, curves)):
        if a.pressure_max_Pa > curve.pressure_Pa[-1]:
            yield Problem(
                ('arm', 'actuators', i, 'pressure_max_Pa'),
                f'expected at most {curve.pressure_Pa[-1]:g}, where the curve of its section ends',
                f'{a.pressure_max_Pa:g}',
            )


@check('tracker')
def _no_cables(rig: Any) -> Iterator[Problem]:
    if rig.tracker.pretension_m != 0.0:
        yield Problem(
            ('controller', 'pretension_m'),
            'expected 0: there are no cables, commands are pressures',
            f'{rig.tracker.pretension_m:g}',
        )


@check('sections', 'plant')
def _plant_sections(rig: Any) -> Iterator[Problem]:
    yield from plant_sections(rig, {'bending_length_m': 2.0, 'chamber_radius_m': 2.0})


@check('sections', 'plant')
def _plant_length(rig: Any) -> Iterator[Problem]:
    known = sum(s.bending_length_m + s.rigid_length_m for s in rig.sections)
    real = sum(s.bending_length_m for s in rig.plant.sections) + rig.plant.tip_length_m
    real += sum(s.deforming_length_m for s in rig.plant.sections[1:])  # the first is in the frame
    if abs(real - known) > _LENGTH_SHARE * known:
        yield Problem(
            ('plant', 'tip_length_m'),
            f'with it the plant is {real:.4g} m long at rest (bending_length_m of all sections, '
            f'deforming_length_m of all but the first), and the arm {known:.4g} m; expected at '
            f'most {100.0 * _LENGTH_SHARE:.0f} % apart',
            f'{rig.plant.tip_length_m:g}',
        )


@check('gripper', 'medium', 'tip_load_kg')
def _floating(rig: Any) -> Iterator[Problem]:
    heavy = rig.gripper.mass_kg + rig.tip_load_kg - _WATER_KG_M3 * rig.gripper.volume_m3
    if rig.medium == 'water' and heavy < 0.0:
        yield Problem(
            ('gripper', 'volume_m3'),
            f'expected at most {(rig.gripper.mass_kg + rig.tip_load_kg) / _WATER_KG_M3:.4g} in '
            'water: the model includes no buoyant lift at the tip',
            f'{rig.gripper.volume_m3:g}',
        )


@check('default_model', 'tip_load_kg')
def _load_known(rig: Any) -> Iterator[Problem]:
    if rig.default_model == 'constant_curvature' and rig.tip_load_kg > 0.0:
        yield Problem(
            ('tip_load_kg',),
            "expected 0 with model 'constant_curvature', which knows no weight",
            f'{rig.tip_load_kg:g}',
        )


CHECKS = checks_in(globals())
