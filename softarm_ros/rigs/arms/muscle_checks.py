"""Consistency of muscle arms: modules, valves and their simulated plant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from softarm_ros.models.minimum_energy.muscles import muscle_names
from softarm_ros.models.parts import MinimumEnergySettings
from softarm_ros.rigs.checks import as_many, check, checks_in, only_in_air, same_arm
from softarm_ros.rigs.errors import Problem


@check('modules', 'actuators')
def _muscles(rig: Any) -> Iterator[Problem]:
    names = muscle_names(rig.modules.modules)
    wanted = f'three for each of arm.modules.modules = {rig.modules.modules}', len(names)
    yield from as_many(('arm', 'actuators'), len(rig.actuators), 'actuator', *wanted)
    for i, (actuator, name) in enumerate(zip(rig.actuators, names)):
        if actuator.name != name:
            message = f'expected {name!r}: modules and muscles are numbered from base to tip'
            yield Problem(('arm', 'actuators', i, 'name'), message, repr(actuator.name))


@check('modules', 'actuators', 'valves')
def _ranges(rig: Any) -> Iterator[Problem]:
    table_low, table_high = rig.valves.range_m
    model_low, model_high = rig.modules.command_range_m
    low, high = max(model_low, table_low), min(model_high, table_high)
    for i, a in enumerate(rig.actuators):
        if not low <= a.position_min_m:
            yield Problem(
                ('arm', 'actuators', i, 'position_min_m'),
                f'expected at least {low:g}, a limit of arm.modules and arm.valves',
                f'{a.position_min_m:g}',
            )
        if not a.position_max_m <= high:
            yield Problem(
                ('arm', 'actuators', i, 'position_max_m'),
                f'expected at most {high:g}, a limit of arm.modules and arm.valves',
                f'{a.position_max_m:g}',
            )


@check('modules')
def _gas(rig: Any) -> Iterator[Problem]:
    if rig.modules.muscle_stiffness_N_m is not None:
        yield Problem(
            ('arm', 'modules', 'muscle_stiffness_N_m'),
            'expected no value: valves change the gas in a muscle, and the driver counts that',
            f'{rig.modules.muscle_stiffness_N_m:g}',
        )


@check('modules', 'backbone', 'actuators')
def _room(rig: Any) -> Iterator[Problem]:
    law = rig.modules.gas_springs
    if law is None:
        return  # reported by another check
    neutral = float(law.vented(rig.backbone.length_m / rig.modules.modules))
    for i, a in enumerate(rig.actuators):
        if not a.position_min_m < neutral < a.position_max_m:
            yield Problem(
                ('arm', 'actuators', i, 'position_max_m'),
                f'expected position_min_m < {neutral:g} < position_max_m: the command '
                'of vented muscles in the straight arm; bending needs more and less gas',
                f'{a.position_min_m:g} to {a.position_max_m:g}',
            )


@check('modules', 'chosen_model')
def _intervals(rig: Any) -> Iterator[Problem]:
    default = MinimumEnergySettings.model_fields['intervals'].default
    intervals = rig.chosen_model.of_part.get('intervals', default)
    if isinstance(intervals, int) and intervals % rig.modules.modules:
        yield Problem(('model', 'intervals'), _multiple(rig), f'{intervals}')


@check('modules', 'plant')
def _plant_intervals(rig: Any) -> Iterator[Problem]:
    if rig.plant.intervals % rig.modules.modules:
        yield Problem(('plant', 'intervals'), _multiple(rig), f'{rig.plant.intervals}')


def _multiple(rig: Any) -> str:
    return (
        f'expected a multiple of arm.modules.modules = {rig.modules.modules}: disks lie on nodes'
    )


@check('valves', 'plant')
def _guard(rig: Any) -> Iterator[Problem]:
    relays = rig.plant.relays
    needed = relays.longest_delay_s - relays.shortest_delay_s
    needed += 2.0 * relays.closing_spread_s + 6.0 * relays.jitter_s
    if rig.valves.guard_s <= needed:
        yield Problem(
            ('arm', 'valves', 'guard_s'),
            f'expected more than {needed:.3g}: the spread of the delays of plant.relays and its '
            'jitter, else both valves of a muscle can be open together',
            f'{rig.valves.guard_s:g}',
        )


@check('valves', 'actuators')
def _valve_speed(rig: Any) -> Iterator[Problem]:
    table = rig.valves.table()
    for i, a in enumerate(rig.actuators):
        for name, curve in (('deflating', table.deflating), ('inflating', table.inflating)):
            low, high = curve.y_limits
            if not low <= a.position_min_m < a.position_max_m <= high:
                continue  # reported by another check
            ends = curve.inverse([a.position_min_m, a.position_max_m])
            slowest = float(min(abs(curve.slope(ends))))
            if a.max_speed_m_s > slowest:
                yield Problem(
                    ('arm', 'actuators', i, 'max_speed_m_s'),
                    f'expected at most {slowest:.3g}: how fast the table arm.valves.{name} moves '
                    'at '
                    'the slower end of the range',
                    f'{a.max_speed_m_s:g}',
                )


@check('backbone', 'modules', 'plant')
def _same_arm(rig: Any) -> Iterator[Problem]:
    known, real = rig.backbone, rig.plant.backbone
    pairs: list[tuple[tuple[str, ...], float, float, float]] = [
        (('plant', 'backbone', field), getattr(real, field), getattr(known, field), factor)
        for field, factor in (
            ('length_m', 1.2),
            ('diameter_m', 1.5),
            ('youngs_modulus_Pa', 5.0),
            ('shear_modulus_Pa', 5.0),
        )
    ]
    radii = rig.plant.anchor_radius_m, rig.modules.anchor_radius_m
    pairs.append((('plant', 'anchor_radius_m'), *radii, 1.5))
    for path, value, reference, factor in pairs:
        yield from same_arm(path, value, reference, factor)


@check('tracker')
def _no_cables(rig: Any) -> Iterator[Problem]:
    if rig.tracker.pretension_m != 0.0:
        yield Problem(
            ('controller', 'pretension_m'),
            'expected 0: commands are lengths of muscles, and a longer muscle is slack',
            f'{rig.tracker.pretension_m:g}',
        )


@check('medium')
def _medium(rig: Any) -> Iterator[Problem]:
    yield from only_in_air(rig, 'muscle arms')


@check('backbone', 'modules', 'trajectories')
def _within_length(rig: Any) -> Iterator[Problem]:
    # The model refuses points farther away; this check also names the field.
    for name, trajectory in rig.trajectories.items():
        for field in ('start', 'end', 'center'):
            point = getattr(trajectory, field, None)
            if point is not None and math.dist(point, (0.0, 0.0, 0.0)) >= rig.backbone.length_m:
                yield Problem(
                    ('trajectories', name, field),
                    f'expected within arm.backbone.length_m = {rig.backbone.length_m:g} of the '
                    'base',
                    '[' + ', '.join(f'{v:g}' for v in point) + ']',
                )


CHECKS = checks_in(globals())
