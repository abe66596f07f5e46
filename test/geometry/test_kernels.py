"""The one decorator of compiled functions."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from softarm_ros.geometry.kernels import kernel

ROOT = Path(__file__).parents[2]


@kernel
def scaled(values, times, negative):
    """Return the sum of values, `times` over, maybe negative."""
    total = 0.0
    for value in values:
        total += times * value
    return -total if negative else total


@kernel
def both(values, times, negative):
    """Return what calls with constants and with variables give."""
    return scaled(values, 2, True) + scaled(values, 3, False) + scaled(values, times, negative)


def test_constants_in_calls_do_not_compile_a_kernel_again():
    assert both(np.ones(4), 5, False) == -8.0 + 12.0 + 20.0
    assert len(scaled.signatures) == len(both.signatures) == 1


def test_a_callee_or_constant_of_another_file_that_changes_is_compiled_anew(tmp_path):
    (tmp_path / 'caller.py').write_text(
        'from softarm_ros.geometry.kernels import kernel\n'
        'from callee import OFFSET, twice\n'
        '@kernel\ndef answer(x):\n    return twice(x) + OFFSET\n'
    )

    def callee(factor, offset):
        (tmp_path / 'callee.py').write_text(
            'from softarm_ros.geometry.kernels import kernel\n'
            f'OFFSET = {offset}\n@kernel\ndef twice(x):\n    return {factor} * x\n'
        )

    def answer():
        code = 'from caller import answer; print(answer(10.0), len(answer.stats.cache_hits))'
        done = subprocess.run(
            [sys.executable, '-c', code],
            env={**os.environ, 'PYTHONPATH': os.pathsep.join([str(tmp_path), str(ROOT)])},
            capture_output=True,
            text=True,
            check=True,
        )
        total, from_disk = done.stdout.split()
        return float(total), int(from_disk)

    callee('2.0', '1.0')
    assert answer() == (21.0, 0)
    assert answer() == (21.0, 1)  # what has not changed is not compiled again
    callee('3.00', '1.0')
    assert answer() == (31.0, 0)
    callee('3.00', '5.00')
    assert answer() == (35.0, 0)
