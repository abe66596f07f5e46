"""Remembers that everything a rig needs compiled is on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llvmlite
import numba
import numpy as np
from llvmlite import binding

from softarm_ros.geometry.kernels import kept_beside, kept_files, kernel_packages
from softarm_ros.geometry.pose_kernels import rows_kernel

if TYPE_CHECKING:
    from softarm_ros.rigs.schema import Rig


class CompiledMark:
    """
    A file beside the kernels: with which rig, software and processor they were all compiled.

    It holds as long as these are the same and no file has changed, of those that kernels are
    kept in and of the sources that were imported meanwhile. What it says of kernels of other
    rigs that share a file does not matter: it then no longer holds, and they are looked at again.

    Parameters
    ----------
    rig : Rig
    folder : Path, optional
        In which the file is, instead of beside the kernels.

    """

    def __init__(self, rig: Rig, folder: Path | None = None) -> None:
        said = [repr(rig), _surroundings()]
        self._of = hashlib.sha256(json.dumps(said).encode()).hexdigest()
        # Sixteen files a rig, however often its fields change.
        beside = kept_beside(rows_kernel) if folder is None else folder
        self._file = beside / f'{rig.name}-{self._of[0]}.compiled'

    def holds(self) -> bool:
        """Return whether nothing needs to be compiled."""
        try:
            said = json.loads(self._file.read_text(encoding='utf-8'))
            if said['of'] != self._of:
                return False
            return bool(said['files'] == _states(said['files']))
        except (OSError, ValueError, KeyError, TypeError):  # none, or half of one
            return False

    def set(self) -> None:
        """Note the kernels that this process has compiled or loaded, if they are on disk."""
        packages = kernel_packages()
        sources = {
            module.__file__
            for name, module in list(sys.modules.items())
            if name.partition('.')[0] in packages and getattr(module, '__file__', None)
        }
        with contextlib.suppress(OSError):  # not all is on disk, or nobody may write there
            files = _states(str(path) for path in (*sources, *kept_files()))
            fresh = self._file.with_suffix(f'.{os.getpid()}')
            fresh.write_text(json.dumps({'of': self._of, 'files': files}), encoding='utf-8')
            fresh.replace(self._file)


def _surroundings() -> list[Any]:
    """Return what else than its sources decides whether a compiled kernel can be loaded."""
    return [
        sys.version,
        numba.__version__,
        llvmlite.__version__,
        np.__version__,
        binding.get_host_cpu_name(),
        str(binding.get_host_cpu_features().flatten()),
        sorted(item for item in os.environ.items() if item[0].startswith('NUMBA_')),
    ]


def _states(paths: Iterable[str]) -> dict[str, list[int]]:
    """Return size and time [ns] of files; OSError if one is not there."""
    found = {path: Path(path).stat() for path in paths}
    return {path: [state.st_size, state.st_mtime_ns] for path, state in sorted(found.items())}
