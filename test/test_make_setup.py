"""The Makefile uses a sourced ROS installation, but not the one inside an active environment."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(shutil.which('make') is None, reason='needs make')


def have_ros(python: Path, path: Path) -> str:
    done = subprocess.run(
        ['make', '--silent', '--eval', 'told: ; @echo $(HAVE_ROS)', 'told', f'PYTHON={python}'],
        cwd=REPOSITORY,
        env={**os.environ, 'PYTHONPATH': str(path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.strip()


def test_only_ros_outside_the_environment_counts_as_a_ros_installation(tmp_path):
    environment, outside = tmp_path / 'environment', tmp_path / 'ros'
    venv.create(environment, symlinks=True)
    python = environment / 'bin' / 'python'
    version = f'python{sys.version_info.major}.{sys.version_info.minor}'
    packages = environment / 'lib' / version / 'site-packages'
    assert have_ros(python, tmp_path) == ''
    for folder in (packages, outside):
        (folder / 'rclpy').mkdir(parents=True)
        (folder / 'rclpy' / '__init__.py').touch()
    assert have_ros(python, tmp_path) == ''
    assert have_ros(python, outside) == 'yes'
