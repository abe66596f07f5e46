"""Kinds of configuration coordinates, by their names: bending in rad, and others."""

from __future__ import annotations

from collections.abc import Sequence


def bending_sections(names: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return (section, column of bend_x, column of bend_y) of configuration names."""
    columns = {name: i for i, name in enumerate(names)}
    found = []
    for name, i in columns.items():
        section = name.removesuffix('_bend_x')
        if section != name and f'{section}_bend_y' in columns:
            found.append((section, i, columns[f'{section}_bend_y']))
    return found


def not_bending(names: Sequence[str]) -> list[int]:
    """Return the columns of configuration names that are no bending: tensions, lengths, ..."""
    bending = {column for _, *pair in bending_sections(names) for column in pair}
    return [i for i in range(len(names)) if i not in bending]
