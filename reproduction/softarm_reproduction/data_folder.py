"""Find an arm's recordings in DATA_DIR, the folder of all recordings or of one arm."""

from __future__ import annotations

from pathlib import Path


def folder_of(given: Path, arm: str, holds: str) -> Path:
    """
    Return the folder of an arm's recordings: the subfolder `arm` of `given`, or `given` itself.

    If a study reads recordings of several arms, `arm` is empty and `holds` begins with a folder.

    Raises
    ------
    SystemExit
        If neither folder contains a file that matches `holds`, such as `*.csv`.

    """
    for folder in (given / arm, given):
        if any(folder.glob(holds)):
            return folder
    looked_for = dict.fromkeys((Path(arm, holds), Path(holds)))
    raise SystemExit(f'DATA_DIR {given}: no {" or ".join(map(str, looked_for))} in it')
