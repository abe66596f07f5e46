"""List the fields of a configuration block, for authors of rig files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.rigs.expectation import Schema, SchemaTree

# The unit that the end of a field's name states; the longest match counts.
_UNITS = {
    'm': 'm',
    'm2': 'm^2',
    'm3': 'm^3',
    'm_s': 'm/s',
    'm_s2': 'm/s^2',
    'm_s3': 'm/s^3',
    'm_N': 'm/N',
    'm_per_rev': 'm/rev',
    'm3_Pa': 'm^3/Pa',
    'm3_s_Pa': 'm^3/(s Pa)',
    '1_m': '1/m',
    '1_s': '1/s',
    '1_s2': '1/s^2',
    's': 's',
    'hz': 'Hz',
    'rad': 'rad',
    'rad_m': 'rad/m',
    'rad_s': 'rad/s',
    'deg': 'deg',
    'kg': 'kg',
    'kg_m': 'kg/m',
    'kg_m2': 'kg m^2',
    'kg_m3': 'kg/m^3',
    'N': 'N',
    'N_m': 'N/m',
    'N_m2': 'N m^2',
    'N_s': 'N/s',
    'N_s2': 'N/s^2',
    'N_s_m2': 'N s/m^2',
    'Pa': 'Pa',
    'Pa_s': 'Pa/s',
    'Pa_s2': 'Pa/s^2',
    'V': 'V',
    'A': 'A',
    'px': 'px',
    # Products where the name alone might be a quotient, and the reverse.
    'torque_N_m': 'N m',
    'limit_N_m': 'N m',
    'noise_N_m': 'N m',
    'range_N_m': 'N m',
    'step_N_m': 'N m',
    'N_m_s': 'N m s',
    'N_s_m': 'N s/m',
    'viscosity_Pa_s': 'Pa s',
    'in_stiffness_N_m2': 'N/m^2',
    'presliding_stiffness_N_m2': 'N/m^2',
    'rad_N_m': 'rad/(N m)',
    'N_m_A': 'N m/A',
    'N_m_Pa': 'N m/Pa',
    'N_Pa': 'N/Pa',
}
# A word that is part of a unit. Lower-case words that may be names (min, g, h) are not.
_SYMBOL = re.compile(r'deg|rev|psi|bar|l|ml|kg|[cmnuk]?m|[mnu]?s|m?rad|[mnukM]?(N|Pa|V|A|W|J|Hz)')


@dataclass(frozen=True)
class FieldRow:
    """
    One field of a block, or of a block within it.

    Attributes
    ----------
    name : str
        Name, with the fields that lead to it: `motors[].motor`.
    type : str
        Accepted values, such as 'a number > 0'.
    unit : str
        Unit stated by the name; empty if it states none.
    default : str or None
        Default as YAML, `...` for a block of defaults; None for a required field.
    description : str
        Meaning of the field.

    """

    name: str
    type: str
    unit: str
    default: str | None
    description: str

    @property
    def required(self) -> bool:
        """Whether a rig file must state the field."""
        return self.default is None


def fields_of(config: type[ConfigBlock]) -> tuple[FieldRow, ...]:
    """Return the fields of a block in order, those of an inner block after its own field."""
    tree = SchemaTree(config.model_json_schema())
    return tuple(_rows(tree, tree.root, ''))


def unit_of(field: str) -> str:
    """Return the unit that a field's name ends with; '' if there is none, or an unknown one."""
    words = field.split('_')
    for start in range(len(words)):
        unit = _UNITS.get('_'.join(words[start:]))
        if unit is not None:
            # The s of speed_mm_s is not its unit.
            return '' if start and _SYMBOL.fullmatch(words[start - 1]) else unit
    return ''


def _rows(tree: SchemaTree, block: Schema, place: str) -> Iterator[FieldRow]:
    required = block.get('required', [])
    for name, schema in block.get('properties', {}).items():
        default = None if name in required else _yaml(schema.get('default'))
        inner, suffix = _inner(tree, tree.resolve(schema))
        kind = tree.words(schema) if inner is None else _block(suffix)
        yield FieldRow(
            place + name, kind, unit_of(name), default, str(schema.get('description', ''))
        )
        if inner is not None:
            yield from _rows(tree, inner, f'{place}{name}{suffix}.')


def _inner(tree: SchemaTree, schema: Schema) -> tuple[Schema | None, str]:
    """Return the block that a field holds (or None), and the suffix that leads to its fields."""
    if 'properties' in schema:
        return schema, ''
    for key, suffix in (('items', '[]'), ('additionalProperties', '.NAME')):
        member = schema.get(key)
        if isinstance(member, dict):
            resolved = tree.resolve(member)
            if 'properties' in resolved:
                return resolved, suffix
    return None, ''


def _block(suffix: str) -> str:
    return {'': 'a mapping', '[]': 'a list of mappings'}.get(suffix, 'a mapping of names')


def _yaml(value: Any) -> str:
    return '...' if isinstance(value, dict) and value else json.dumps(value)
