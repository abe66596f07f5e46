"""Fields that rig files used to have, and their replacements."""

from __future__ import annotations

from collections.abc import Mapping

from softarm_ros.rigs.errors import FieldPath, Problem, value_text
from softarm_ros.rigs.part_registry import find_part, kinds_of, parts
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.yaml_document import YamlDocument

# The kind of arm of an old file that names none.
_OLD_DEFAULT = 'cable_driven'

REPLACED: Mapping[FieldPath, str] = {
    ('kind',): 'arm.kind',
    ('segments_per_section',): 'model: {kind: hydraulic_statics, segments_per_section: ...}',
    ('model_steps',): 'model: {kind: cosserat, steps: ...}',
    ('extensible',): 'model: {kind: cosserat, extensible: ...}',
    ('intervals',): 'model: {kind: minimum_energy, intervals: ...}',
    ('default_model',): 'model',
    ('devices',): 'drives',
    ('feedback',): 'sensors.pose_topic',
    ('feedback', 'pose_topic'): 'sensors.pose_topic.topic',
    ('feedback', 'kind'): '',
    ('tracker',): 'controller',
    ('plant', 'mocap'): 'plant.pose_sensor',
    ('plant', 'water'): 'plant.medium: {kind: water, ...}',
    ('plant', 'presliding_m'): 'plant.presliding_stiffness_N_m2',
}


def replaced(document: YamlDocument) -> list[Problem]:
    """Return a problem for every outdated field, with its replacement."""
    found = {path: text for path, text in REPLACED.items() if _has(document, path)}
    found |= {(name,): f'arm.{name}' for name in _of_the_arm(document) if (name,) not in found}
    return [_problem(path, instead, document) for path, instead in found.items()]


def instead_of(path: FieldPath) -> str | None:
    """Return the replacement of an outdated field, or None if it never was one."""
    names = tuple(part for part in path if isinstance(part, str))
    for length in (2, 1):
        if names[:length] in REPLACED:
            return _words(REPLACED[names[:length]])
    return None


def _of_the_arm(document: YamlDocument) -> list[str]:
    """Return the fields of the arm that stand at the top level of the rig file."""
    block = document.data.get('arm')
    kind = document.data.get('kind', _OLD_DEFAULT)
    if isinstance(block, dict):
        kind = block.get('kind', kind)
    known = [find_part('arm', kind)] if kind in kinds_of('arm') else parts('arm')
    fields = {name for part in known for name in part.config.model_fields}
    own = {field.alias or name for name, field in Rig.model_fields.items()}
    return [name for name in document.data if name in fields and name not in own]


def _has(document: YamlDocument, path: FieldPath) -> bool:
    block = document.value_at(path[:-1])
    return isinstance(block, dict) and path[-1] in block


def _problem(path: FieldPath, instead: str, document: YamlDocument) -> Problem:
    value = document.value_at(path)
    text = None if isinstance(value, (dict, tuple)) else value_text(value)
    return Problem(path, _words(instead), text, document.line_of(path))


def _words(instead: str) -> str:
    return f'no longer a field; write {instead}' if instead else 'no longer a field; delete it'
