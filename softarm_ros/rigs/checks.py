"""Checks between the fields of a rig: definition, execution and shared rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from softarm_ros.rigs.errors import FieldPath, Problem, did_you_mean, listed


@dataclass(frozen=True)
class Check:
    """
    A rule between top-level fields of a rig.

    Attributes
    ----------
    needs : frozenset of str
        Fields that the check reads; it runs if each of them is valid by itself and is given.
    run : callable
        Takes the rig, or any object with these fields as attributes, and yields problems.

    """

    needs: frozenset[str]
    run: Callable[[Any], Iterator[Problem]]


def check(*needs: str) -> Callable[[Callable[[Any], Iterator[Problem]]], Check]:
    """Return a decorator that makes a check of a function which reads these top-level fields."""
    return lambda function: Check(frozenset(needs), function)


def checks_in(module: Mapping[str, Any]) -> tuple[Check, ...]:
    """Return the checks that a module defines (pass its `globals()`), in order of definition."""
    return tuple(
        value
        for value in module.values()
        if isinstance(value, Check) and value.run.__module__ == module['__name__']
    )


def find_inconsistencies(
    rig: Any, checks: Iterable[Check], available: Iterable[str] | None = None
) -> list[Problem]:
    """
    Run the checks whose fields are all available (None: all fields) and given.

    Parameters
    ----------
    rig : Rig, or any object with the available fields as attributes
        The rig to check.
    checks : iterable of Check
        Checks to run.
    available : iterable of str, optional
        Names of the fields that are valid by themselves.

    """
    have = None if available is None else frozenset(available)
    return [
        problem
        for check in checks
        if have is None or check.needs <= have
        if all(getattr(rig, field, None) is not None for field in check.needs)
        for problem in check.run(rig)
    ]


# -- shared by several checks --------------------------------------------------------------------


def duplicates(
    blocks: Iterable[Any], field: str, under: tuple[str, ...] = ('arm',)
) -> Iterator[Problem]:
    """Yield a problem for every block of the list `field` with the name of an earlier one."""
    where = '.'.join((*under, field))
    seen: dict[str, int] = {}
    for i, block in enumerate(blocks):
        if block.name in seen:
            message = f'same name as {where}[{seen[block.name]}]; expected unique names'
            yield Problem((*under, field, i, 'name'), message, repr(block.name))
        seen.setdefault(block.name, i)


def actuator_sections(rig: Any) -> Iterator[Problem]:
    """Yield a problem for every actuator whose `section` is no section of the arm."""
    names = [s.name for s in rig.sections]
    for i, a in enumerate(rig.actuators):
        if a.section not in names:
            message = f'no such section{did_you_mean(a.section, names)}; known: {listed(names)}'
            yield Problem(('arm', 'actuators', i, 'section'), message, repr(a.section))


def as_many(
    path: FieldPath, count: int, noun: str, wanted: str, expected: int
) -> Iterator[Problem]:
    """Yield a problem if a list has `count` items rather than `expected`."""
    if count != expected:
        message = f'expected {wanted}: {expected}'
        yield Problem(path, message, f'{count} {noun}{"s" if count != 1 else ""}')


def as_many_sections(rig: Any) -> Iterator[Problem]:
    """Yield a problem if the plant does not have as many sections as the arm."""
    wanted = 'as many as sections of the arm', len(rig.sections)
    yield from as_many(('plant', 'sections'), len(rig.plant.sections), 'section', *wanted)


def plant_sections(rig: Any, factors: Mapping[str, float]) -> Iterator[Problem]:
    """Yield problems of the plant's sections: a wrong number, or fields beyond a factor."""
    yield from as_many_sections(rig)
    for i, (known, real) in enumerate(zip(rig.sections, rig.plant.sections)):
        for field, factor in factors.items():
            path = ('plant', 'sections', i, field)
            yield from same_arm(path, getattr(real, field), getattr(known, field), factor)


def same_arm(path: FieldPath, value: float, reference: float, factor: float) -> Iterator[Problem]:
    """Yield a problem if a plant's value differs from the controller's by more than a factor."""
    if not reference / factor <= value <= reference * factor:
        yield Problem(
            path,
            f"expected within a factor {factor:g} of the controller's {reference:g} "
            '(the plant is the same arm, with stated errors)',
            f'{value:g}',
        )


def only_in_air(rig: Any, arms: str) -> Iterator[Problem]:
    """Yield a problem for any medium but air: these arms have no model of water."""
    if rig.medium != 'air':
        yield Problem(
            ('medium',), f"expected 'air': {arms} have no model of water", repr(rig.medium)
        )
