"""`softarm parts`: the parts that arms can be composed of, as text."""

from __future__ import annotations

from collections.abc import Iterator

from softarm_ros.control.gripper import GRIPPER
from softarm_ros.geometry.parts import FAMILIES, Part
from softarm_ros.rigs.part_fields import FieldRow, fields_of
from softarm_ros.rigs.part_registry import find_part, parts_and_problems, registrations
from softarm_ros.rigs.rig_parts import gripper_fields


def list_parts(family: str | None) -> tuple[list[str], list[str]]:
    """
    Return lines that list the parts (of a family), and the problems of parts left out.

    Raises
    ------
    RigError
        If the family does not exist; lists the known families.

    """
    found, problems = parts_and_problems(family)
    lines: list[str] = []
    for name, meaning in FAMILIES.items():
        own = [part for part in found if part.family == name]
        if not own:
            continue
        lines += [*([''] if lines else []), f'{name}: {meaning}']
        width = max(len(part.name) for part in own)
        lines += [f'  {part.name:<{width}}  {part.summary}{_from(part)}' for part in own]
    return lines, [str(problem) for problem in problems]


def show_part(name: str) -> list[str]:
    """
    Return lines about one part, named `family.kind`, and its fields.

    Raises
    ------
    RigError
        If the part does not exist or cannot be used.

    """
    family, _, kind = name.partition('.')
    part = find_part(family, kind)
    return [
        f'{part.name}: {part.summary}{_from(part)}',
        f'roles: {", ".join(part.builders) or "none"}',
        *(_field_lines(fields_of(part.config)) or ['no fields']),
        *_elsewhere(part),
    ]


def _elsewhere(part: Part) -> Iterator[str]:
    """Yield lines about the fields of a gripper in other blocks of a rig."""
    if part.family == GRIPPER:
        for block in part.takes:
            yield f'and under {block}.gripper:'
            yield from _field_lines(fields_of(gripper_fields(part, block)))


def _from(part: Part) -> str:
    """Return the package of a part, '' for a part of this package."""
    homes = [entry for entry in registrations() if entry.name == part.name]
    return ''.join(f'  [{home.distribution}]' for home in homes if not home.built_in)


def _field_lines(rows: tuple[FieldRow, ...]) -> list[str]:
    texts = [
        (
            row.name,
            row.type,
            row.unit,
            'required' if row.default is None else f'default {row.default}',
            row.description,
        )
        for row in rows
    ]
    widths = [max(len(text[i]) for text in texts) for i in range(4)] if texts else []
    return [
        '  ' + '  '.join([*(f'{t:<{w}}' for t, w in zip(text, widths)), text[4]]).rstrip()
        for text in texts
    ]
