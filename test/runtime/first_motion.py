"""Prints which kernels compile or load when a rig starts to move after its warm-up."""

import sys
from pathlib import Path

from numba.core.dispatcher import Dispatcher

from softarm_ros.cli.beginning import beginning
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.direct import run_direct
from softarm_ros.runtime.warm_up import warm_up


def compiled():
    """Return all loaded kernels, each with the argument types it was compiled for."""
    modules = [m for name, m in list(sys.modules.items()) if name.startswith('softarm_ros')]
    kernels = {k for m in modules for k in vars(m).values() if isinstance(k, Dispatcher)}
    both = kernels | {k.inner for k in kernels if hasattr(k, 'inner')}
    return {(k.py_func.__qualname__, str(kind)) for k in both for kind in k.signatures}


if __name__ == '__main__':
    rig = load_rig(sys.argv[1])
    warm_up(rig)
    before = compiled()
    path = beginning(rig, 0.002, Path(sys.argv[2]))
    assert run_direct(rig, path, laps=1, seed=0).error() is not None
    late = sorted({name for name, _ in compiled() - before})
    print(f'{len(before)} before, late: {" ".join(late) or "none"}')
