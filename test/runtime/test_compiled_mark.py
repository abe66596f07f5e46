"""Compiled kernels are not checked again until something that they depend on changes."""

import importlib
import os
import subprocess
import sys

import pytest

from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.compiled_mark import CompiledMark

KERNEL = """\
from softarm_ros.geometry.kernels import kernel

@kernel
def twice(x):
    return 2.0 * x
"""
PREPARED = """\
from softarm_ros.geometry.kernels import kept_files
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.warm_up import prepare
prepare(load_rig('cable_arm_single'))
print(len(kept_files()))
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Yield a separate module with one kernel, compiled and on disk."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / 'marked_kernels.py').write_text(KERNEL)
    made = importlib.import_module('marked_kernels')
    assert made.twice(1.5) == 3.0
    yield made
    del sys.modules['marked_kernels']


@pytest.fixture
def mark(module, tmp_path):
    """Return a function that makes the mark of a rig in a temporary folder."""
    return lambda *settings: CompiledMark(load_rig('cable_arm_single', settings), tmp_path)


def test_mark_holds_only_for_the_rig_and_compiler_options_of_its_setting(mark, monkeypatch):
    assert not mark().holds()
    mark().set()
    assert mark().holds()
    assert not mark('tip_load_kg=0.001').holds()
    monkeypatch.setenv('NUMBA_OPT', '1')
    assert not mark().holds()


def test_changed_source_or_missing_kernel_invalidates_the_mark(mark, module, tmp_path):
    mark().set()
    source = tmp_path / 'marked_kernels.py'
    source.write_text(KERNEL.replace('2.0', '3.0 '))
    assert not mark().holds()
    mark().set()
    assert mark().holds()
    (kept,) = (tmp_path / '__pycache__').glob('marked_kernels.twice*.nbi')
    away = kept.rename(tmp_path / 'away')
    assert not mark().holds()
    mark().set()  # refused: not everything is on disk
    assert not mark().holds()
    away.rename(kept)


def test_truncated_mark_file_does_not_hold(mark, tmp_path):
    mark().set()
    (file,) = tmp_path.glob('*.compiled')
    file.write_text(file.read_text()[:100])
    assert not mark().holds()


def test_second_preparation_loads_no_kernels():
    def kernels_in_use():
        done = subprocess.run(
            [sys.executable, '-c', PREPARED],
            capture_output=True,
            text=True,
            timeout=280,
            env={**os.environ, 'OMP_NUM_THREADS': '1'},
        )
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    # More than twice: kernels that another test compiles meanwhile cause another check.
    assert any(kernels_in_use() == 0 for _ in range(4))
