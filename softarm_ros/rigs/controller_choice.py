"""The controller that the block `tracker` of a rig names, and its fields in that block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import create_model

from softarm_ros.control.config import TrackerConfig
from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.geometry.parts import Part
from softarm_ros.rigs.errors import Problem, RigError, did_you_mean, listed
from softarm_ros.rigs.part_registry import find_part, kinds_of
from softarm_ros.rigs.validation import validate_document
from softarm_ros.rigs.yaml_document import YamlDocument

_FAMILY, _BLOCK = 'controller', 'tracker'


def controller_part(tracker: TrackerConfig) -> tuple[Part, ConfigBlock]:
    """Return the part that a tracker block names, and the fields it gives it."""
    part = find_part(_FAMILY, tracker.kind)
    return part, part.config.model_validate(tracker.of_controller)


def controller_problems(tracker: TrackerConfig) -> Iterator[Problem]:
    """Yield what is wrong with the controller of a tracker block and its fields."""
    known = kinds_of(_FAMILY)
    if tracker.kind not in known:
        expected = f'no such controller{did_you_mean(tracker.kind, known)}; known: {listed(known)}'
        yield Problem((_BLOCK, 'kind'), expected, repr(tracker.kind))
        return
    cycle = {
        name: getattr(tracker, name)
        for name in TrackerConfig.model_fields
        if name in tracker.model_fields_set
    }
    document = YamlDocument('', cycle | tracker.of_controller)
    try:
        validate_document(_whole_block(tracker.kind), document)
    except RigError as error:
        for problem in error.problems:
            yield replace(problem, path=(_BLOCK, *problem.path))


def fitting(document: YamlDocument, file: YamlDocument) -> YamlDocument:
    """
    Return a document whose tracker has another controller than the file, with what fits that.

    Fields that both controllers have mean the same and stay; those of the file's own alone go.
    """
    block, before = document.value_at((_BLOCK,)), file.value_at((_BLOCK,))
    if not isinstance(block, dict) or not isinstance(before, dict):
        return document
    default = TrackerConfig.model_fields['kind'].default
    kind, was = block.get('kind', default), before.get('kind', default)
    known = kinds_of(_FAMILY)
    if kind == was or kind not in known or was not in known:
        return document
    old, new = (find_part(_FAMILY, name).config.model_fields for name in (was, kind))
    kept = {
        name: value
        for name, value in block.items()
        if name in new or name not in old or value != before.get(name)
    }
    return replace(document, data={**document.data, _BLOCK: kept})


@cache
def _whole_block(kind: str) -> type[TrackerConfig]:
    """Return the fields of cycle and controller as one block that has no others."""
    part = find_part(_FAMILY, kind)
    both = sorted(set(part.config.model_fields) & set(TrackerConfig.model_fields))
    if both:
        raise RigError('', f'part {part.name}: {listed(both)} are fields of the cycle already')
    bases: Any = (TrackerConfig, part.config)
    block: type[TrackerConfig] = create_model(_BLOCK, __base__=bases)
    return block
