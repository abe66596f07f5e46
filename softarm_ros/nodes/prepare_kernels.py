"""Compiles the code that the nodes of a rig use, once, before they start."""

from __future__ import annotations

import argparse
import sys
import time
from typing import NoReturn

from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.nodes.process import EXIT_BAD_INPUT, leave
from softarm_ros.rigs.arguments import settings_of
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.graph import BACKENDS
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.warm_up import prepare


def main() -> NoReturn:
    """Compile the kernels of a rig and the firmware of its emulated boards; print the time."""
    leave(_prepared())


def _prepared() -> int:
    parser = argparse.ArgumentParser(prog='prepare_kernels', description=__doc__)
    parser.add_argument('rig', help='name of a built-in rig or path of a rig file')
    parser.add_argument('--set', action='append', default=[], metavar='FIELD=VALUE')
    parser.add_argument('--backend', choices=BACKENDS, default='sim')
    asked = parser.parse_args()
    try:
        rig = load_rig(asked.rig, settings_of(asked.set))
        print(
            f'preparing {rig.name}: code that is not cached yet is compiled now, which takes '
            'up to a minute or two the first time; nodes start afterwards',
            flush=True,
        )
        began = time.monotonic()
        prepare(rig, asked.backend)
    except (RigError, EmulationError) as error:
        print(f'prepare_kernels: {error}', file=sys.stderr)
        return EXIT_BAD_INPUT
    print(f'{rig.name} is prepared, after {time.monotonic() - began:.1f} s', flush=True)
    return 0


if __name__ == '__main__':
    main()
