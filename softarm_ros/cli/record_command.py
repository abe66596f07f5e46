"""`softarm record`: record a running arm, and repair bags."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from softarm_ros.cli.own_node import run_own_node
from softarm_ros.leftovers import temporary_folder
from softarm_ros.nodes.bag_writer import check_bag_folder
from softarm_ros.nodes.process import unless_ignored
from softarm_ros.rigs.graph import NodeSpec
from softarm_ros.rigs.loader import load_rig


def record(rig_name: str, bag: Path | None, duration_s: float, settings: Sequence[str]) -> int:
    """
    Record until Ctrl-C or for `duration_s`; return the exit status.

    Raises
    ------
    RigError
        If the rig file is invalid.
    BagError
        If the bag cannot be created.

    """
    rig = load_rig(rig_name, settings)
    folder = bag or Path(f'{rig.name}_{datetime.now():%Y%m%d_%H%M%S}')
    folder = folder.resolve()
    check_bag_folder(folder)
    spec = NodeSpec(
        'recorder_node',
        'softarm_ros.nodes.recorder_node',
        'recorder',
        f'/{rig.name}',
        {
            'rig': str(rig.source),
            'settings': '; '.join(rig.settings),
            'bag': str(folder),
            'duration_s': duration_s,
        },
    )
    from softarm_ros.nodes import recorder_node  # needs ROS

    print(f'recording /{rig.name} into {folder}', flush=True)
    with temporary_folder() as temporary:
        status = run_own_node(spec, Path(temporary), recorder_node.main)
        print('interrupted before the recording began', file=sys.stderr)
        return status


def repair(bag: Path, folder: Path | None) -> Iterator[str]:
    """
    Write an indexed copy of a bag that has no index or is damaged; yield lines of a report.

    Raises
    ------
    BagError
        If `bag` cannot be read, or the new bag, `folder`, cannot be written.

    """
    from softarm_ros.nodes import bag_repair

    old = bag.parent if bag.is_file() else bag
    if old.name in ('', '..'):  # `.`, if the command is called inside the bag's folder
        old = old.resolve()
    for number in (signal.SIGTERM, *unless_ignored(signal.SIGHUP)):
        signal.signal(number, signal.default_int_handler)  # as Ctrl-C: half a copy is removed
    saved = bag_repair.repair(bag, folder or old.with_name(f'{old.name}_repaired'))
    yield f'{saved.messages} messages: {saved.folder}'
    if saved.damaged:
        spans = ', '.join(f'{begin:.2f} to {end:.2f} s' for begin, end in saved.damaged)
        yield f'left out, damaged: {spans}'
    if saved.lost:
        yield f'left out: {saved.lost} messages of topics that only the damaged part announced'
    if saved.left_out:
        yield f'left out, type unknown: {", ".join(saved.left_out)}'
