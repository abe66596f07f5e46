"""`softarm demo` without a graph, without a desktop, and Ctrl-C; `make demo` runs the demo."""

import io
import subprocess
import sys

import pytest
from rich.console import Console

from softarm_ros.cli.demo import _drive_graph
from softarm_ros.cli.instance_lock import instance_lock
from softarm_ros.cli.viewer.desktop import has_desktop, open_page
from softarm_ros.rigs.loader import load_rig


def test_a_graph_that_cannot_start_is_reported_and_does_not_end_the_demo():
    pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
    console = Console(file=io.StringIO(), width=200)
    with instance_lock('cable_arm'):
        assert _drive_graph(load_rig('cable_arm'), 0, console, lambda: False) is None
    said = console.file.getvalue()
    assert 'the graph was not started: ' in said and 'already running' in said


def test_no_page_is_opened_without_a_desktop(monkeypatch):
    monkeypatch.setattr('sys.platform', 'linux')
    monkeypatch.delenv('DISPLAY', raising=False)
    monkeypatch.delenv('WAYLAND_DISPLAY', raising=False)
    assert not has_desktop()
    assert not open_page('http://127.0.0.1:8080')
    monkeypatch.setenv('WAYLAND_DISPLAY', 'wayland-0')
    assert has_desktop()


INTERRUPTED = """
import os, signal
from softarm_ros.cli.run_cases import RunCase, run_cases
from softarm_ros.rigs.loader import load_rig

def interrupt(done):
    os.killpg(0, signal.SIGINT)

if __name__ == '__main__':
    rig = load_rig('cable_arm_single')
    cases = [RunCase(rig, 'circle_small', 'constant_curvature', True, 1, 0)]
    try:
        run_cases(cases, interrupt)
    except KeyboardInterrupt:
        raise SystemExit(130)
"""


def test_ctrl_c_ends_runs_in_processes_without_tracebacks(tmp_path):
    script = tmp_path / 'interrupted.py'
    script.write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, start_new_session=True
    )
    assert (done.returncode, done.stderr) == (130, '')
