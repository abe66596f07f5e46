"""DATA_DIR of the studies of measured arms: the folder of all recordings, or that of one arm."""

from __future__ import annotations

from pathlib import Path


def folder_of(given: Path, arm: str, holds: str) -> Path:
    """
    Return the folder of an arm's recordings: `given` itself, or the one named `arm` in it.

    Where a study reads those of several arms, `arm` is empty and `holds` begins with a folder.

    Raises
    ------
    SystemExit
        If neither holds a file like `holds`, such as `*.csv`.

    """
    for folder in (given / arm, given):
        if any(folder.glob(holds)):
            return folder
    looked_for = dict.fromkeys((Path(arm, holds), Path(holds)))
    raise SystemExit(f'DATA_DIR {given}: no {" or ".join(map(str, looked_for))} in it')
