"""Blocks of a rig that name a part by `kind`, together with the part's own fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import create_model

from softarm_ros.control.config import EstimatorConfig, TrackerConfig
from softarm_ros.geometry.configs import ConfigBlock, PartBlock
from softarm_ros.geometry.parts import Part
from softarm_ros.rigs.errors import FieldPath, Problem, RigError, did_you_mean, listed
from softarm_ros.rigs.part_registry import find_part, kinds_of
from softarm_ros.rigs.validation import validate_document
from softarm_ros.rigs.yaml_document import YamlDocument

# Family (also the name of the block in a rig file) -> class of the block.
CHOSEN: Mapping[str, type[PartBlock]] = {
    'model': PartBlock,
    'estimator': EstimatorConfig,
    'controller': TrackerConfig,
}


def chosen_part(family: str, block: PartBlock) -> tuple[Part, ConfigBlock]:
    """Return the part that a block names, and its validated fields."""
    part = find_part(family, block.kind)
    return part, part.config.model_validate(block.of_part)


def choice_problems(family: str, block: PartBlock, within: FieldPath = ()) -> Iterator[Problem]:
    """Yield problems of a block's part and its fields; `within` is the path of the block."""
    for problem in _problems(family, block):
        yield replace(problem, path=(*within, *problem.path))


def _problems(family: str, block: PartBlock) -> Iterator[Problem]:
    known = kinds_of(family)
    if block.kind not in known:
        expected = f'no such {family}{did_you_mean(block.kind, known)}; known: {listed(known)}'
        yield Problem((family, 'kind'), expected, repr(block.kind))
        return
    own = {
        field: getattr(block, field)
        for field in type(block).model_fields
        if field in block.model_fields_set
    }
    try:
        whole = _whole_block(type(block), family, block.kind)
        validate_document(whole, YamlDocument('', own | block.of_part))
    except RigError as error:
        for problem in error.problems:
            yield replace(problem, path=(family, *problem.path))


def fitting(document: YamlDocument, file: YamlDocument) -> YamlDocument:
    """
    Return the document without fields of the file's part, in blocks that select another part.

    Fields that both parts have mean the same and stay; fields that only the file's part has go,
    unless the document changes them.
    """
    for family, block_class in CHOSEN.items():
        block, before = document.value_at((family,)), file.value_at((family,))
        if not isinstance(block, dict) or not isinstance(before, dict):
            continue
        default = block_class.model_fields['kind'].default
        kind, was = block.get('kind', default), before.get('kind', default)
        known = kinds_of(family)
        if kind == was or kind not in known or was not in known:
            continue
        old, new = (find_part(family, name).config.model_fields for name in (was, kind))
        kept = {
            field: value
            for field, value in block.items()
            if field in new or field not in old or value != before.get(field)
        }
        document = replace(document, data={**document.data, family: kept})
    return document


@cache
def _whole_block(block: type[PartBlock], family: str, kind: str) -> type[PartBlock]:
    """Return a class with the fields of block and part, and no others."""
    part = find_part(family, kind)
    both = sorted(set(part.config.model_fields) & set(block.model_fields))
    if both:
        raise RigError('', f'part {part.name}: {listed(both)} are fields of {family} already')
    bases: Any = (block, part.config)
    whole: type[PartBlock] = create_model(family, __base__=bases)
    return whole
