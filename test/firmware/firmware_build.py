"""Builds the firmware's programs once a run, into a folder of the test's, and finds toolchains."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

FIRMWARE = Path(__file__).resolve().parents[2] / 'firmware'


def need(*programs: str) -> None:
    """Skip the test, with the reason, where a program is not installed."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f'{", ".join(missing)} is not installed')


@functools.cache
def folder() -> Path:
    """A folder for what is built; it goes with the machine's temporary files."""
    return Path(tempfile.mkdtemp(prefix='softarm-firmware-'))


@functools.cache
def build(target: str) -> Path:
    """Make `firmware/build/<target>` in a folder of the tests' and return its path."""
    need('make', 'cc')
    done = subprocess.run(
        ['make', '-C', str(FIRMWARE), f'BUILD={folder()}', f'{folder()}/{target}'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'warning' not in done.stderr, done.stderr
    return folder() / target
