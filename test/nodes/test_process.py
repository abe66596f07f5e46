"""How the process of a node ends."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def start(code, stdin=None, **more):
    return subprocess.Popen(
        [sys.executable, '-c', textwrap.dedent(code)],
        cwd=ROOT,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **more},
    )


def said(process, word):
    assert process.stdout.readline().strip() == word


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGHUP])
def test_signal_during_startup_ends_the_process_at_once(number, heard_hangup):
    process = start("""
        import signal, time
        from softarm_ros.nodes.process import StopSignals
        StopSignals()
        print('starting', flush=True)
        time.sleep(60)
    """)
    said(process, 'starting')
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, '', '')


def test_a_closed_terminal_does_not_end_a_process_under_nohup():
    process = start("""
        import signal
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        from softarm_ros.nodes.process import StopSignals
        stop = StopSignals()
        signal.raise_signal(signal.SIGHUP)
        print(stop.seen)
    """)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, 'False\n', '')


def test_leave_waits_for_threads_and_runs_atexit_functions():
    process = start("""
        import atexit, threading
        from softarm_ros.nodes.process import leave
        atexit.register(print, 'registered', end='')
        spoken = threading.Event()
        threading.Thread(target=lambda: (spoken.wait(), print('thread', end=' '))).start()
        print('main', end=' ')
        spoken.set()
        leave(7)
    """)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (7, 'main thread registered', '')


def test_further_signals_do_not_interrupt_closing():
    process = start("""
        import time
        from softarm_ros.nodes.process import StopSignals
        stop = StopSignals()
        stop.note_only()
        print('working', flush=True)
        while not stop.seen:
            time.sleep(0.01)
        print('closing', flush=True)
        time.sleep(0.5)
        print('closed', flush=True)
    """)
    said(process, 'working')
    process.send_signal(signal.SIGINT)
    said(process, 'closing')
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, 'closed\n', '')


CHILD = """
import subprocess, sys, time
from softarm_ros.nodes.process import end_with_parent
end_with_parent()
print('watching', flush=True)
{then}
"""


@pytest.mark.skipif(not hasattr(os, 'pidfd_open'), reason='needs Linux')
@pytest.mark.parametrize(
    ('on_term', 'shell'),
    [
        ('signal.SIG_DFL', False),
        ('signal.SIG_DFL', True),
        ('signal.SIG_IGN', True),
        ('lambda *_: sum(range(10**15))', False),
    ],
)
def test_node_process_ends_when_its_parent_is_killed(shell, on_term, tmp_path):
    """A shell may be in between; the node may ignore SIGTERM, or hang while it holds the GIL."""
    then = f'import signal; signal.signal(signal.SIGTERM, {on_term}); time.sleep(60)'
    script = tmp_path / 'child.py'
    script.write_text(CHILD.format(then=then))
    command = f'{sys.executable} {script}; true' if shell else [sys.executable, str(script)]
    parent = start(
        f"""
        import os, subprocess, sys, time
        from softarm_ros.nodes.process import node_environment
        child = subprocess.Popen(
            {command!r}, shell={shell}, env=node_environment(os.environ), stdout=subprocess.PIPE
        )
        child.stdout.readline()
        listed = subprocess.run(['pgrep', '-f', {str(script)!r}], capture_output=True, text=True)
        print(' '.join(listed.stdout.split()), flush=True)
        time.sleep(60)
    """,
        PYTHONPATH=str(ROOT),
    )
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    watching = [pid for pid in pids if pid != parent.pid and python(pid)]
    assert len(watching) == 1
    parent.kill()
    parent.wait()
    parent.stdout.close()
    parent.stderr.close()
    end = time.monotonic() + 8.0
    while python(watching[0]) and time.monotonic() < end:
        time.sleep(0.02)
    lives = python(watching[0])
    if lives:
        os.kill(watching[0], signal.SIGKILL)
    assert not lives


def python(pid):
    """Return whether a process runs Python, and has not ended."""
    try:
        line = Path(f'/proc/{pid}/cmdline').read_bytes()
        state = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0]
    except OSError:
        return False
    return state != 'Z' and line.startswith(sys.executable.encode())


@pytest.mark.skipif(not hasattr(os, 'pidfd_open'), reason='needs Linux')
def test_node_process_refuses_to_start_if_its_parent_has_ended():
    gone = start('')
    gone.communicate(timeout=20)
    process = start(CHILD.format(then=''), SOFTARM_PARENT_PID=str(gone.pid))
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert 'has ended' in err


def test_held_process_continues_when_released_and_exits_if_its_stdin_is_closed():
    held = """
        from softarm_ros.nodes.process import wait_for_release
        print('loaded', flush=True)
        wait_for_release()
        print('let go')
    """
    for answer, status, output in (('\n', 0, 'let go\n'), ('', 1, '')):
        process = start(held, stdin=subprocess.PIPE, SOFTARM_HELD='1')
        said(process, 'loaded')
        out, err = process.communicate(answer, timeout=20)
        assert (process.returncode, out, err) == (status, output, '')
    free = start(held, stdin=subprocess.DEVNULL)  # not held: it does not wait
    out, err = free.communicate(timeout=20)
    assert (free.returncode, out, err) == (0, 'loaded\nlet go\n', '')


def test_a_node_that_fails_to_close_is_reported_and_the_others_are_closed():
    pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
    process = start("""
        from rclpy.node import Node
        from softarm_ros.nodes.run_nodes import run_nodes

        class Stuck(Node):
            def close(self):
                raise TypeError('valve is stuck')

        class Last(Node):
            def close(self):
                print('closed', flush=True)

        def refuse():
            raise ValueError('no such rig')

        run_nodes({'a': lambda: Stuck('a'), 'b': lambda: Last('b'), 'c': refuse})
    """)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, 'closed\n')
    assert 'c: no such rig' in err and 'a: closing failed: TypeError: valve is stuck' in err
