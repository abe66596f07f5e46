"""The folder of the files that come with the package: rigs, launch files, firmware sources."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PACKAGE = 'softarm_ros'


def share_folder(content: str) -> Path:
    """
    Return the folder that holds `content` (a folder or file, as `config/rigs`).

    That is the repository for an editable installation, and share/softarm_ros under the
    installation prefix for wheels and for colcon.

    Raises
    ------
    FileNotFoundError
        If none has it; names the folders that were searched.

    """
    here = Path(__file__).resolve()
    candidates = []
    repository = here.parents[1]
    if (repository / 'package.xml').is_file():
        candidates.append(repository)
    prefixes = [*here.parents[1:], Path(sys.prefix)]
    prefixes += [Path(p) for p in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if p]
    candidates += [prefix / 'share' / PACKAGE for prefix in prefixes]
    for folder in candidates:
        if (folder / content).exists():
            return folder
    looked = ', '.join(str(c) for c in dict.fromkeys(candidates))
    raise FileNotFoundError(
        f'the files that come with {PACKAGE} are not installed: no {content}; looked in {looked}'
    )
