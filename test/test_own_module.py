"""Processes of the package are of the package that starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from softarm_ros.own_module import own_module, search_path

PARENT = str(Path(search_path.__code__.co_filename).absolute().parents[1])


@pytest.fixture
def elsewhere(tmp_path):
    """Return a folder with another package of the name."""
    (tmp_path / 'softarm_ros').mkdir()
    (tmp_path / 'softarm_ros' / '__init__.py').write_text('raise SystemExit("the other one")\n')
    return tmp_path


def said(folder: Path, *words: str, **environment: str) -> str:
    done = subprocess.run(
        own_module(*words),
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize('environment', [{}, {'PYTHONSAFEPATH': '1'}, {'PYTHONPATH': ''}])
def test_another_package_where_the_user_stands_is_not_taken(elsewhere, environment):
    plain = [sys.executable, '-m', 'softarm_ros.nodes.prepare_kernels', '--help']
    wrong = subprocess.run(plain, cwd=elsewhere, capture_output=True, text=True)
    assert 'the other one' in wrong.stderr  # what this is about
    assert 'prepare_kernels' in said(elsewhere, *plain[2:], **environment)


def test_arguments_and_exit_status_are_those_of_the_module(tmp_path):
    (tmp_path / 'asked.py').write_text(
        'import sys\nprint(__name__, sys.argv[1:])\nsys.exit(len(sys.argv) - 1)\n'
    )
    done = subprocess.run(
        own_module('asked', '--ros-args', 'a b'),
        env={**os.environ, 'PYTHONPATH': str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "__main__ ['--ros-args', 'a b']"
    assert done.returncode == 2


def test_the_path_of_others_stays_as_it_is(elsewhere):
    other, package = str(elsewhere), str(Path(PARENT) / 'softarm_ros')
    assert search_path([package, '/usr/lib/python3']) == [PARENT, '/usr/lib/python3']
    assert search_path([package, '/a', PARENT, other]) == ['/a', PARENT, other]
    assert search_path([package, other, PARENT]) == [PARENT, other, PARENT]
    assert search_path(['/a', PARENT]) == ['/a', PARENT]
