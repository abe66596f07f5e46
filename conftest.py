"""
Settings of all tests: imported files, threads of linear algebra, garbage collection, Ctrl-C.

A run of one part (`-m packets`) imports only the files with tests of that part. Importing all
files takes ten seconds in each process, importing those of a part one second. Garbage collection
took a tenth of the tests' processor time: it is less frequent, and leaves out objects that exist
before the first test.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
from functools import cache
from pathlib import Path

import pytest

# A script starts background commands with Ctrl-C ignored; commands that tests start inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

PARTS = ('wall_clock', 'graphs', 'packets', 'long')

gc.set_threshold(20_000, *gc.get_threshold()[1:])  # new objects before a collection; usually 700

# One thread, as in nodes: a process of tests runs on every processor, and threads that wait for
# one another double the processor time. NumPy reads these variables when it is first imported.
for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS'):
    os.environ.setdefault(name, '1')


@cache
def marks(file: Path, part: str) -> bool:
    """Return whether a test file contains the mark of a part."""
    return f'mark.{part}' in file.read_text(encoding='utf-8')


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without a test of the part that `-m` selects."""
    part = config.option.markexpr
    wanted = part not in PARTS or collection_path.suffix != '.py' or marks(collection_path, part)
    return None if wanted else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Check that this selection skips no test.

    Raises
    ------
    pytest.UsageError
        If a test has the mark of a part but its file does not contain that mark.

    """
    for item in items:
        for part in PARTS:
            if item.get_closest_marker(part) and not marks(item.path, part):
                raise pytest.UsageError(f'{item.nodeid}: its file does not say mark.{part}')


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude existing objects from garbage collection."""
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # otherwise compiled modules report frozen objects as leaks
