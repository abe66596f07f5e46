"""Labels of rigs in tables: their names, with the file added if names are equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from softarm_ros.rigs.schema import Rig


def rig_labels(rigs: Sequence[Rig]) -> list[str]:
    """Return a label for each rig; rigs from different files have different labels."""
    files = {(rig.name, rig.source) for rig in rigs}
    same_name = Counter(name for name, _ in files)
    same_file = Counter((name, file.name) for name, file in files if file is not None)
    labels = []
    for rig in rigs:
        if same_name[rig.name] == 1 or rig.source is None:
            labels.append(rig.name)
        else:
            unique = same_file[rig.name, rig.source.name] == 1
            labels.append(f'{rig.name} ({rig.source.name if unique else rig.source})')
    return labels
