"""The rig that a bag was recorded with, from its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.rigs.arguments import settings_of
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.schema import Rig


def recorded_rig(about: Mapping[str, str], folder: Path) -> Rig:
    """Return the rig of a bag; its file is put into `folder`."""
    if 'rig_file' not in about:
        raise UsageError(
            'the bag does not state its rig: it was recorded neither by `softarm run --bag` or '
            '`softarm record` nor by `bag:=`'
        )
    path = folder / f'{Path(about["rig"]).name}.yaml'
    path.write_text(about['rig_file'], encoding='utf-8')
    return load_rig(path, settings_of([about.get('settings', '')]))
