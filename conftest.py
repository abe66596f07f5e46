"""
What holds for all tests: which files are imported, and how many threads linear algebra has.

Parts of the tests that run by themselves (`-m packets`) import their own files only: importing all
takes ten seconds of each process, those of a part one.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

PARTS = ('wall_clock', 'graphs', 'packets', 'long')

# One thread, as nodes have: there is a process of tests on every processor, and threads that wait
# for one another there take twice the processor time. It counts from the first import of NumPy.
for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS'):
    os.environ.setdefault(name, '1')


@cache
def marks(file: Path, part: str) -> bool:
    """Return whether a test file gives one of its tests the mark of a part."""
    return f'mark.{part}' in file.read_text(encoding='utf-8')


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test of the one part that `-m` asks for."""
    part = config.option.markexpr
    wanted = part not in PARTS or collection_path.suffix != '.py' or marks(collection_path, part)
    return None if wanted else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    See that no test is left out so.

    Raises
    ------
    pytest.UsageError
        Names a test of a part whose own file does not give it the mark.

    """
    for item in items:
        for part in PARTS:
            if item.get_closest_marker(part) and not marks(item.path, part):
                raise pytest.UsageError(f'{item.nodeid}: its file does not say mark.{part}')
