"""
Runs a module of this installation of the package, wherever the user stands.

`python -m softarm_ros.cli` takes a package of the name that stands in the working folder (the
source, beside an installation) before the one that asks. So processes are started as
`python own_module.py MODULE ARGUMENTS...`.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

_FILE = Path(__file__).absolute()  # as it was found: an installation may be made of links


def own_module(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module with this package and this interpreter."""
    return [sys.executable, str(_FILE), module, *arguments]


def search_path(found: Sequence[str]) -> list[str]:
    """Return where modules are looked for: this package before others of its name."""
    package, parent = _FILE.parent, str(_FILE.parents[1])
    # Python puts the folder of this file first, unless told not to.
    elsewhere = [path for path in found if Path(path).resolve() != package.resolve()]
    first = next((path for path in elsewhere if (Path(path) / package.name).is_dir()), None)
    return elsewhere if first == parent else [parent, *elsewhere]


def main() -> None:
    """Run the module that the arguments name, as `python -m` does."""
    sys.path[:] = search_path(sys.path)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)


if __name__ == '__main__':
    main()
