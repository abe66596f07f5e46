"""Tested in separate processes: the test runner must not keep a raised priority."""

import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
import os, resource, sys, threading
from softarm_ros.runtime.scheduling import raise_priority
{before}
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
print(raise_priority({priority}))
{after}
print(sorted(os.sched_getscheduler(int(t)) for t in os.listdir('/proc/self/task')))
print(os.SCHED_FIFO, os.SCHED_OTHER)
stop.set()
"""


def run(priority, before='', after=''):
    program = textwrap.dedent(PROGRAM).format(priority=priority, before=before, after=after)
    done = subprocess.run(
        [sys.executable, '-c', program], capture_output=True, text=True, check=True, timeout=60
    )
    answer, policies, kinds = done.stdout.splitlines()
    fifo, other = kinds.split()
    return answer, policies, fifo, other


@pytest.mark.skipif(not sys.platform.startswith('linux'), reason='SCHED_FIFO is Linux')
def test_priority_of_all_threads_is_raised_or_the_refusal_reported():
    answer, policies, fifo, other = run(20)
    if answer == 'None':
        assert policies == f'[{fifo}, {fifo}]'
    else:
        assert 'ulimit -r' in answer
        assert policies == f'[{other}, {other}]'


@pytest.mark.skipif(not sys.platform.startswith('linux'), reason='SCHED_FIFO is Linux')
def test_missing_right_to_real_time_priority_is_reported():
    lose_right = (
        'resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))\n'
        'if os.getuid() == 0: os.setgid(65534); os.setuid(65534)'
    )
    answer, policies, _, other = run(20, lose_right)
    assert answer == 'no right to real-time priority 20 (ulimit -r): ordinary scheduling'
    assert policies == f'[{other}, {other}]'


def test_priority_zero_leaves_the_scheduling_unchanged():
    answer, policies, _, other = run(0)
    assert answer == 'None'
    assert policies == f'[{other}, {other}]'


@pytest.mark.skipif(not sys.platform.startswith('linux'), reason='SCHED_FIFO is Linux')
def test_drop_priority_restores_ordinary_scheduling_of_all_threads():
    dropping = 'import softarm_ros.runtime.scheduling as s; s.drop_priority()'
    _, policies, _, other = run(20, after=dropping)
    assert policies == f'[{other}, {other}]'


LOCKING = """
import mmap, os, resource, sys
from softarm_ros.runtime.scheduling import keep_in_memory
{before}
print(keep_in_memory())
large = mmap.mmap(-1, 400_000_000)  # never touched
large[:50_000_000] = bytes(50_000_000)
held = [line for line in open('/proc/self/smaps_rollup') if line.startswith('Locked')]
print(held[0].split()[1])
"""


def lock(before=''):
    done = subprocess.run(
        [sys.executable, '-c', textwrap.dedent(LOCKING).format(before=before)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answer, held_kb = done.stdout.splitlines()
    return answer, 1e-3 * float(held_kb)


@pytest.mark.skipif(not sys.platform.startswith('linux'), reason='mlockall is Linux')
def test_memory_lock_holds_only_touched_pages_or_reports_the_refusal():
    answer, held_mb = lock()
    if answer != 'None':
        assert 'ulimit -l' in answer
        assert held_mb == 0.0
    else:
        assert 50.0 < held_mb < 350.0


@pytest.mark.skipif(not sys.platform.startswith('linux'), reason='mlockall is Linux')
def test_missing_right_to_lock_memory_is_reported():
    answer, held_mb = lock(
        'resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))\n'
        'if os.getuid() == 0: os.setgid(65534); os.setuid(65534)'
    )
    assert 'ulimit -l' in answer
    assert held_mb == 0.0
