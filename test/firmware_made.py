"""Builds targets of firmware/Makefile for tests, once for all test processes and runs."""

from __future__ import annotations

import fcntl
import functools
import shutil
import subprocess
from pathlib import Path

import pytest

FIRMWARE = Path(__file__).resolve().parents[1] / 'firmware'
FOLDER = FIRMWARE / 'build' / 'tests'


def need(*programs: str) -> None:
    """Skip the test, with the reason, if a program is not installed."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f'{", ".join(missing)} is not installed')


@functools.cache
def build(target: str) -> Path:
    """Build a target and return its path; skip the test if there is no compiler."""
    need('make', 'cc')
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = FOLDER / target
    with (FOLDER / 'lock').open('w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            ['make', '-C', str(FIRMWARE), f'BUILD={FOLDER}', str(made)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0 or 'warning' in done.stderr:
            made.unlink(missing_ok=True)  # otherwise the next run would not see the failure
            pytest.fail(done.stdout + done.stderr)
    return made
