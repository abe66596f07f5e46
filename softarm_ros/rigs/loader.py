"""Loading rig files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from softarm_ros.rigs.arms.base import ArmBase
from softarm_ros.rigs.errors import Problem, RigError
from softarm_ros.rigs.part_choice import fitting
from softarm_ros.rigs.replaced_fields import replaced
from softarm_ros.rigs.rig_files import RigInfo, find_rig, find_share_folder, list_rigs
from softarm_ros.rigs.rig_schema import RigSchema
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.settings import apply_settings
from softarm_ros.rigs.validation import validate_document
from softarm_ros.rigs.yaml_document import YamlDocument, read_yaml

__all__ = ['Problem', 'RigError', 'RigInfo', 'find_share_folder', 'list_rigs', 'load_rig']


def load_rig(name_or_path: str | Path, settings: Sequence[str] = ()) -> Rig:
    """
    Load a rig by built-in name or from a file.

    A string is a path if it has a folder separator or the suffix .yaml or .yml, or if such a file
    exists; otherwise it is the name of a rig that comes with the package. `settings` are
    `field=value` texts that replace values of the file before it is checked:
    `['plant.pose_sensor.delay_s=0.02']`.

    Raises
    ------
    RigError
        With every problem of the file, or the known names.

    """
    path = find_rig(name_or_path)
    file = read_yaml(path)
    document = fitting(apply_settings(file, settings), file)
    rig = validate_rig(document)
    return rig.with_source(path.resolve(), settings, file.text)


def validate_rig(document: YamlDocument) -> Rig:
    """Return the rig that a document describes; raise RigError with every problem."""
    old = replaced(document)
    if old:  # other problems would only hide how to update the file
        raise RigError(document.source, old)
    rig: Rig = validate_document(Rig, document, RigSchema())
    return rig


def load_rig_of(
    kind: type[ArmBase], name_or_path: str | Path, settings: Sequence[str] = ()
) -> Rig:
    """
    Load a rig of one kind of arm.

    Raises
    ------
    RigError
        As `load_rig`, or if the rig is of another kind.

    """
    rig = load_rig(name_or_path, settings)
    kind.of(rig)
    return rig
