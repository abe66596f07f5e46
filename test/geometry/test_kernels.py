"""The decorator `kernel` of compiled functions; each test compiles its own files."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forked_python import ForkedPython

ROOT = Path(__file__).parents[2]
CONSTANTS = """
import numpy as np
from softarm_ros.geometry.kernels import kernel


@kernel
def scaled(values, times, negative):
    total = 0.0
    for value in values:
        total += times * value
    return -total if negative else total


@kernel
def both(values, times, negative):
    return scaled(values, 2, True) + scaled(values, 3, False) + scaled(values, times, negative)


print(both(np.ones(4), 5, False), len(scaled.inner.signatures), len(both.signatures))
"""
ALLOCATING = """
import numba
import numpy as np
from softarm_ros.geometry.kernels import kernel


@kernel
def doubled(values):
    return 2.0 * values


@kernel(allocates=False)
def total_of(values):
    total = 0.0
    for i in range(values.shape[0]):
        total += doubled(values[i:])[0]
    return total


@kernel(allocates=False)
def careless(values):
    return np.zeros(values.shape[0])


print(total_of(np.ones(3)))
try:
    careless(np.ones(3))
except numba.core.errors.NumbaError:
    print(1)
"""
LINEAR = """
import sys
import numpy as np
from softarm_ros.geometry.kernels import kernel


@kernel
def plain(values):
    return values.sum()


@kernel
def linear(A, b):
    return np.linalg.solve(A, A @ b)


print(plain(np.ones(3)), int('scipy.linalg' in sys.modules))
print(*linear(np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([4.0, 5.0])).round(12))
print(len(linear.stats.cache_hits))
"""
SLICES = """
import numpy as np
from softarm_ros.geometry.kernels import kernel


@kernel
def put(target, source):
    target[:] = source


@kernel
def total_of(values):
    copy = np.empty(3)
    put(copy, values)
    return copy.sum()


print(total_of(np.ones(3)))
try:
    total_of(np.ones(4))
except ValueError:
    print(1)
compiled = total_of.overloads[total_of.signatures[0]].library.get_defined_functions()
print(sum('unicode' in function.name for function in compiled))
"""
BOTH = """
import numpy as np
from softarm_ros.geometry.kernels import kernel


@kernel
def doubled(x):
    return 2.0 * x


@kernel
def answer(x):
    return 1.0 + doubled(x)


@kernel
def other_answer(x):
    return doubled(x)


print(answer(1.0), len(doubled.signatures), len(doubled.inner.signatures))
print(doubled(2.0), other_answer(4), other_answer(4.0))
of_callee = [one.library.get_defined_functions() for one in doubled.inner.overloads.values()]
print(sum('cpython' in function.name for functions in of_callee for function in functions))
"""
CALLER = """
from softarm_ros.geometry.kernels import kernel
from callee import OFFSET, twice


@kernel
def answer(x):
    return plus(x)


@kernel
def plus(x):
    return twice(x) + OFFSET


if __name__ == '__main__':
    print(answer(10.0), len(answer.stats.cache_hits))
"""
CALLEE = """
from softarm_ros.geometry.kernels import kernel

OFFSET = {offset}


@kernel
def twice(x):
    return {factor} * x
"""


@pytest.fixture(scope='module')
def forked():
    environment = {**os.environ, 'PYTHONPATH': str(ROOT)}
    with ForkedPython(['softarm_ros.geometry.kernels'], environment) as python:
        yield python


@pytest.fixture
def python(forked, tmp_path):
    """Return a function that runs a file of the folder and returns the numbers it prints."""

    def run(name):
        done = forked.run(name, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        return tuple(map(float, done.stdout.split()))

    return run


def test_constant_arguments_do_not_recompile_a_kernel(python, tmp_path):
    (tmp_path / 'constants.py').write_text(CONSTANTS)
    assert python('constants.py') == (-8.0 + 12.0 + 20.0, 1, 1)


def test_allocates_false_permits_allocating_callees_but_refuses_own_allocations(python, tmp_path):
    (tmp_path / 'allocating.py').write_text(ALLOCATING)
    assert python('allocating.py') == (6.0, 1)  # 1: `careless` is refused


def test_only_kernels_with_linear_algebra_import_scipy(python, tmp_path):
    (tmp_path / 'linear.py').write_text(LINEAR)
    for kept in (0, 1):  # compiled, then read from disk
        assert python('linear.py') == (3.0, 0, 4.0, 5.0, kept)


def test_slice_size_mismatch_raises_without_compiling_unicode_functions(python, tmp_path):
    (tmp_path / 'slices.py').write_text(SLICES)
    assert python('slices.py') == (3.0, 1, 0)


def test_a_kernel_called_by_kernels_has_no_cpython_wrapper_but_python_can_call_it(
    python, tmp_path
):
    (tmp_path / 'both.py').write_text(BOTH)
    assert python('both.py') == (3.0, 0, 1, 4.0, 8.0, 8.0, 0)
    assert python('both.py') == (3.0, 0, 0, 4.0, 8.0, 8.0, 0)  # from disk, without the callee


def test_a_changed_callee_or_constant_in_another_file_recompiles_the_caller(python, tmp_path):
    (tmp_path / 'caller.py').write_text(CALLER)
    callee = tmp_path / 'callee.py'
    callee.write_text(CALLEE.format(factor='2.0', offset='1.0'))
    assert python('caller.py') == (21.0, 0)
    assert python('caller.py') == (21.0, 1)  # unchanged: read from disk
    callee.write_text(CALLEE.format(factor='3.00', offset='1.0'))
    assert python('caller.py') == (31.0, 0)
    callee.write_text(CALLEE.format(factor='3.00', offset='5.00'))
    assert python('caller.py') == (35.0, 0)


def test_a_process_waits_for_the_lock_on_the_kernel_cache(python, tmp_path):
    (tmp_path / 'caller.py').write_text(CALLER)
    (tmp_path / 'callee.py').write_text(CALLEE.format(factor='2.0', offset='1.0'))
    assert python('caller.py') == (21.0, 0)
    path = tmp_path / '__pycache__' / 'kernels.lock'
    with path.open('a') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = subprocess.Popen(
            [sys.executable, 'caller.py'],
            cwd=tmp_path,
            env={**os.environ, 'PYTHONPATH': str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        end = time.monotonic() + 60.0
        while not waits_for(path, waiting.pid):
            assert waiting.poll() is None, waiting.communicate()
            assert time.monotonic() < end
            time.sleep(0.02)
    said, _ = waiting.communicate(timeout=60.0)
    assert said.split() == ['21.0', '1']


def waits_for(lock, pid):
    """Return whether a process waits for the lock on a file, according to /proc/locks."""
    lines = (line.split() for line in Path('/proc/locks').read_text().splitlines())
    file = f':{lock.stat().st_ino}'
    return any(
        '->' in words and str(pid) in words and any(word.endswith(file) for word in words)
        for words in lines
    )


FULL = """
import resource, sys
from softarm_ros.geometry.kernels import KernelCacheError, kernel

@kernel
def one(x):
    return x + 1.0

resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))  # as a full disk
try:
    one(1.0)
except KernelCacheError as error:
    print(error)
"""


def test_a_full_disk_of_compiled_kernels_is_named(tmp_path):
    script, cache = tmp_path / 'script.py', tmp_path / 'cache'
    script.write_text(FULL)
    environment = {**os.environ, 'NUMBA_CACHE_DIR': str(cache), 'PYTHONPATH': str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert f'compiled kernels cannot be kept in {cache}/' in done.stdout
    assert '(File too large)' in done.stdout


UNKEPT = """
from softarm_ros.geometry.kernels import KernelCacheError, kernel

held = {}
exec(compile('def one(x): return x', '/proc/version', 'exec'), held)  # nothing fits beside it
try:
    kernel(held['one'])
except KernelCacheError as error:
    print(error)
"""


def test_without_a_folder_for_compiled_kernels_the_error_names_the_folders(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k not in ('NUMBA_CACHE_DIR', 'HOME')}
    environment |= {'HOME': '/proc/none', 'XDG_CACHE_HOME': '/proc/none/.cache'}
    done = subprocess.run(
        [sys.executable, '-c', UNKEPT], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert 'neither /proc/__pycache__ nor ~/.cache/numba (HOME is /proc/none)' in done.stdout
    assert 'NUMBA_CACHE_DIR' in done.stdout
