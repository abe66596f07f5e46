"""Runs `ros2 launch` as a child process, in its own ROS graph."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # launch_test does not read conftest.py
from ros_domain import own_domain

# Background processes of a shell without job control ignore Ctrl-C, and so do their children.
signal.signal(signal.SIGINT, signal.default_int_handler)
STARTED = re.compile(r'\[(\w+)-\d+\]: process started with pid \[(\d+)\]')
LOOPBACK = Path(__file__).parents[1] / 'nodes' / 'loopback.xml'


def why_not():
    """Return why `ros2 launch softarm_ros` cannot run here, or ''."""
    if shutil.which('ros2') is None:
        return 'needs the command ros2 (a ROS installation)'
    try:
        from ament_index_python.packages import get_package_prefix

        get_package_prefix('softarm_ros')
        import launch_ros  # noqa: F401
    except ImportError as error:
        return f'needs a ROS installation ({error})'
    except (LookupError, OSError):  # OSError: ros2 is found, its environment is not
        return 'needs this package built by colcon and sourced'
    return ''


def environment(**more):
    """Return environment variables that isolate the graph from other graphs."""
    old = os.environ.get('ROS_DISTRO', '') in ('humble', 'iron', 'jazzy')
    alone = {
        'ROS_DOMAIN_ID': str(own_domain()),
        f'{"FASTRTPS" if old else "FASTDDS"}_DEFAULT_PROFILES_FILE': str(LOOPBACK),
    }
    kept = {k: v for k, v in os.environ.items() if k != 'ROS_LOCALHOST_ONLY'}
    return {**kept, **alone, **more}


def short_trajectory(rig_name, folder):
    """Write the first tenth of a rig's default path as a trajectory; return the file."""
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.runtime.assembly import build_loop

    rig = load_rig(rig_name)
    points = build_loop(rig, None).path(400)[:41:10]
    path = Path(folder) / f'{rig_name}.yaml'
    path.write_text(
        'type: waypoints\nframe: base\nclosed: false\nlaps: 1\n'
        f'speed: {rig.trajectories[rig.default_trajectory].speed}\n'
        f'points: {np.round(points, 5).tolist()}\n'
    )
    return str(path)


class RealLaunch:
    """Runs `ros2 launch softarm_ros arm.launch.py ...` in a `with` block; keeps its output."""

    def __init__(self, *arguments, **more):
        self._condition = threading.Condition()
        self.text = ''
        self.process = subprocess.Popen(
            ['ros2', 'launch', 'softarm_ros', 'arm.launch.py', *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # its own process group, as in a terminal
            env=environment(**more),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        for pid in [*self.nodes().values(), self.process.pid]:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(10.0)
        self.process.stdout.close()

    def _read(self):
        for line in self.process.stdout:
            with self._condition:
                self.text += line
                self._condition.notify_all()

    def until(self, said, timeout):
        """Wait until a text is printed."""
        with self._condition:
            if not self._condition.wait_for(lambda: said in self.text, timeout):
                pytest.fail(f'{said!r} not within {timeout} s:\n{self.text}')

    def end(self, timeout):
        """Wait for the end; return exit status and everything printed."""
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            pytest.fail(f'not ended within {timeout} s:\n{self.text}')
        self._reader.join(10.0)
        return status, self.text

    def ctrl_c(self):
        """Send SIGINT to the whole process group, as Ctrl-C in a terminal does."""
        os.killpg(self.process.pid, signal.SIGINT)

    def nodes(self):
        """Return the process ids of the started nodes, by executable."""
        return {name: int(pid) for name, pid in STARTED.findall(self.text)}


def alive(pid):
    """Return whether a process runs; a zombie does not."""
    try:
        stat = Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return False
    return stat.rpartition(')')[2].split()[0] != 'Z'


def wait_until(condition, timeout, what):
    """Poll a condition until it holds."""
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f'{what} not within {timeout} s')
        time.sleep(0.02)
