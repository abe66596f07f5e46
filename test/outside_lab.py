"""Installs a laboratory's package of parts with pip, and runs commands and scripts with it."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from forked_python import DIRECT, ForkedPython

ROOT = Path(__file__).parents[1]
PACKAGE = Path(__file__).parent / 'outside_parts'
RIG = 'lab_arm/lab_arm.yaml'


@contextmanager
def installed_lab(folder):
    """Yield a function that runs Python with the installed package, and the package's rig."""
    source, installed = folder / 'source', folder / 'installed'
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns('__pycache__'))
    done = subprocess.run(
        [
            *(sys.executable, '-m', 'pip', 'install', '--quiet', '--no-index', '--no-deps'),
            *('--no-build-isolation', '--target', str(installed), str(source)),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    paths = [str(installed), str(ROOT), os.environ.get('PYTHONPATH', '')]
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(paths)}

    with ForkedPython(DIRECT, environment, folder, rig='cable_arm_single') as python:
        yield python.run, installed / RIG


def softarm(lab, *arguments):
    run, _ = lab
    return run('-m', 'softarm_ros.cli', *arguments)


def assert_refused(lab, cases):
    """Check that `softarm check` refuses each rig file text with the expected message."""
    paths = [lab[1].with_name(f'bad_{number}.yaml') for number in range(len(cases))]
    for path, (text, _) in zip(paths, cases):
        path.write_text(text)
    done = softarm(lab, 'check', *paths)
    assert done.returncode == 1
    for path, (_, message) in zip(paths, cases):
        said = [line for line in done.stderr.splitlines() if line.startswith(f'{path}:')]
        assert any(message in line for line in said), (message, done.stderr)


def said_by(lab, code):
    """Return the output of a script in which `rig` is the laboratory's rig."""
    run, rig = lab
    begin = f'from softarm_ros import load_rig\nrig = load_rig({str(rig)!r})\n'
    done = run('-c', begin + code)
    assert done.returncode == 0, done.stderr
    return done.stdout
