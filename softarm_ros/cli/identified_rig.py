"""Writes identified values into the rig file; comments stay where they are."""

from __future__ import annotations

import copy
import io
import re
from typing import Any

import numpy as np
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.cable_driven.pair_identification import PairParameters
from softarm_ros.models.cable_driven.paired_cables import (
    PairedCablesArm,
    bends_of_matrix,
)
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.recording import RecordingConfig
from softarm_ros.rigs.schema import Rig

_DIGITS = 5  # significant, in the file
_NO_WRAPPING = 4096  # columns
_COMMENT_COLUMN = 40


def known_parameters(rig: Rig, config: RecordingConfig) -> PairParameters:
    """Return what the rig file says about the arm and about the frame of its recordings."""
    model = rig.model()
    if not isinstance(model, PairedCablesArm):
        raise TypeError(f'rig {rig.name!r} has the model {model.name}, not one of paired cables')
    z = np.asarray(config.mount.z_axis, dtype=float)
    z = z / np.linalg.norm(z)
    x = np.asarray(config.mount.x_axis, dtype=float)
    x = x - (x @ z) * z
    x = x / np.linalg.norm(x)
    return PairParameters(
        mount_position=np.asarray(config.mount.position_m, dtype=float),
        mount_rotation=np.stack([x, np.cross(z, x), z], axis=1),
        lengths=np.array([[s.length_m, s.endcap_length_m] for s in CableArm.of(rig).sections]),
        rest=model.rest_configuration,
        bends=model.bends_per_contraction,
        delay_s=config.delay_s,
    )


def updated_text(text: str, rig: Rig, found: PairParameters, source: str) -> str:
    """
    Return the text of a rig file with the identified values in it.

    Each of them is marked with `source`. Entries of `arm.sections` and `arm.actuators` that are
    merely references (`- *other`) become entries of their own, as their values differ from now on.
    """
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = _NO_WRAPPING
    if re.search(
        r'^( *)(sections|actuators):[^\n]*\n(\s*#[^\n]*\n)*\1 +-', text, flags=re.MULTILINE
    ):
        yaml.indent(mapping=2, sequence=4, offset=2)
    document = yaml.load(text)
    note = f'[I] identified from {source}'
    arm = document['arm']
    for field in ('sections', 'actuators'):
        _separate(arm[field])
    for k, section in enumerate(arm['sections']):
        _set(section, 'length_m', _number(found.lengths[k, 0]), note)
        _set(section, 'rest_bend_deg', _list(np.rad2deg(found.rest[2 * k : 2 * k + 2])), note)
    for j, actuator in enumerate(arm['actuators']):
        _set_bends(actuator, _bends(rig, found.bends, j), note)
    recording = document['recording']
    _set(recording, 'delay_s', _number(found.delay_s), note)
    mount = recording['mount']
    for field, value in (
        ('position_m', found.mount_position),
        ('z_axis', found.mount_rotation[:, 2]),
        ('x_axis', found.mount_rotation[:, 0]),
    ):
        _set(mount, field, _list(value), note)
    stream = io.StringIO()
    yaml.dump(document, stream)
    return stream.getvalue()


def _set(entry: CommentedMap, field: str, value: Any, note: str) -> None:
    """Write a value with its mark, in a mapping that has a line for each field from then on."""
    entry.fa.set_block_style()
    behind = entry.ca.items.get(field, [None] * 4)[2]
    # Comments on the lines after this one hang on it, too.
    _, newline, after = behind.value.partition('\n') if behind is not None else ('', '', '')
    entry[field] = value
    entry.yaml_add_eol_comment(note, field, column=_COMMENT_COLUMN)
    entry.ca.items[field][2].value += newline + after


def _set_bends(actuator: CommentedMap, value: CommentedSeq, note: str) -> None:
    """
    Write `bends`, its mark behind the first entry.

    What has them already keeps its entries, for comments further down hang on the last one.
    """
    actuator.fa.set_block_style()
    old = dict(actuator.non_merged_items()).get('bends')
    if old is not None and [e['section'] for e in old] == [e['section'] for e in value]:
        for entry, new in zip(old, value):
            entry.update(new)
        value = old
    actuator['bends'] = value
    value.yaml_add_eol_comment(note, 0)


def _separate(entries: CommentedSeq) -> None:
    seen: set[int] = set()
    for i, entry in enumerate(entries):
        if id(entry) in seen:
            own = copy.deepcopy(entry)
            own.yaml_set_anchor(None)
            entries[i] = own
        seen.add(id(entry))


def _bends(rig: Rig, matrix: Array, column: int) -> CommentedSeq:
    entries = CommentedSeq()
    for bend in bends_of_matrix(matrix, CableArm.of(rig).sections, column):
        entry = CommentedMap(
            section=bend.section,
            gain_rad_m=_number(bend.gain_rad_m),
            angle_deg=_number(bend.angle_deg),
        )
        entry.fa.set_flow_style()
        entries.append(entry)
    return entries


def _list(values: Any) -> CommentedSeq:
    entries = CommentedSeq(_number(value) for value in values)
    entries.fa.set_flow_style()
    return entries


def _number(value: float) -> float:
    """Return a value with as many digits as are meaningful; never an integer, never -0."""
    return float(f'{float(value):.{_DIGITS}g}') + 0.0
