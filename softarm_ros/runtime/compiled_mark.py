"""Record on disk that all kernels of a rig are compiled."""

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
from softarm_ros.whole_file import write_text

if TYPE_CHECKING:
    from softarm_ros.rigs.schema import Rig


class CompiledMark:
    """
    A file beside the kernels that names the rig, software and processor they were compiled for.

    It holds while these stay the same and no listed file has changed: kernel caches and the
    sources that were imported. A kernel cache may be shared with other rigs; when it changes, the
    mark no longer holds and the kernels are checked again.

    Parameters
    ----------
    rig : Rig
    folder : Path, optional
        Folder of the file, instead of the one beside the kernels.

    """

    def __init__(self, rig: Rig, folder: Path | None = None) -> None:
        said = [repr(rig), _surroundings()]
        self._of = hashlib.sha256(json.dumps(said).encode()).hexdigest()
        # At most sixteen files per rig, however often its fields change.
        beside = kept_beside(rows_kernel) if folder is None else folder
        self._file = beside / f'{rig.name}-{self._of[0]}.compiled'

    def holds(self) -> bool:
        """Return whether all kernels are compiled."""
        try:
            said = json.loads(self._file.read_text(encoding='utf-8'))
            if said['of'] != self._of:
                return False
            return bool(said['files'] == _states(said['files']))
        except (OSError, ValueError, KeyError, TypeError):  # no file, or an incomplete one
            return False

    def set(self) -> None:
        """Record the kernels that this process has compiled or loaded, if they are on disk."""
        packages = kernel_packages()
        sources = {
            module.__file__
            for name, module in list(sys.modules.items())
            if name.partition('.')[0] in packages and getattr(module, '__file__', None)
        }
        with contextlib.suppress(OSError):  # some file is not on disk, or the folder is read-only
            files = _states(str(path) for path in (*sources, *kept_files()))
            write_text(self._file, json.dumps({'of': self._of, 'files': files}))


def _surroundings() -> list[Any]:
    """Return what besides its sources decides whether a compiled kernel can be loaded."""
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
    """Return size [bytes] and modification time [ns] of files; OSError if one is missing."""
    found = {path: Path(path).stat() for path in paths}
    return {path: [state.st_size, state.st_mtime_ns] for path, state in sorted(found.items())}
