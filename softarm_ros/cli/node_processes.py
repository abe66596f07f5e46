"""Starts the nodes of a plan as processes and sees to it that all of them end."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from softarm_ros.nodes.process import node_environment
from softarm_ros.rigs.graph import NodeSpec

STOP_ORDER_LAST = 'recorder'
# How long processes get after each signal [s]; the bag is written out within the first.
GRACE_S = ((signal.SIGINT, 4.0), (signal.SIGTERM, 1.0), (signal.SIGKILL, 2.0))
LAST_LINES = 6


@dataclass(frozen=True)
class Ended:
    """A node that ended by itself: name, exit code (negative: signal), last lines of its log."""

    name: str
    exit_code: int
    last_lines: tuple[str, ...]
    required: bool

    def describe(self) -> str:
        """Return one line about it."""
        how = (
            f'was killed by {signal.Signals(-self.exit_code).name}'
            if self.exit_code < 0
            else f'ended with exit status {self.exit_code}'
        )
        said = f': {" | ".join(self.last_lines)}' if self.last_lines else ''
        return f'node {self.name} {how}{said}'


@dataclass
class _Running:
    spec: NodeSpec
    process: subprocess.Popen[bytes]
    log: Path


class NodeProcesses:
    """
    The nodes of a plan, one process each, in a `with` block.

    Every node has its own process group, so that Ctrl-C in a terminal reaches them only through
    this class. They end with the block, with the interpreter, and, on Linux, with this process
    even if it is killed.
    """

    def __init__(self, plan: Sequence[NodeSpec]) -> None:
        self._plan = tuple(plan)
        self._running: dict[str, _Running] = {}
        self._folder = tempfile.TemporaryDirectory(prefix='softarm-')
        self._told: set[str] = set()

    def __enter__(self) -> NodeProcesses:
        atexit.register(self.stop)
        try:
            for spec in self._plan:
                self.start(spec)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *reason: object) -> None:
        self.stop()
        atexit.unregister(self.stop)
        self._folder.cleanup()

    def start(self, spec: NodeSpec) -> None:
        """Start a node; one that has ended may be started again."""
        folder = Path(self._folder.name)
        parameters = folder / f'{spec.name}.yaml'
        # JSON is YAML in which text that looks like a number stays text.
        parameters.write_text(
            json.dumps({'/**': {'ros__parameters': dict(spec.parameters)}}), encoding='utf-8'
        )
        log = folder / f'{spec.name}.log'
        with log.open('wb') as output:
            process = subprocess.Popen(
                node_command(spec, parameters),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=node_environment(os.environ),
            )
        self._told.discard(spec.name)
        self._running[spec.name] = _Running(spec, process, log)

    def pid(self, name: str) -> int:
        """Return the process id of a node."""
        return self._running[name].process.pid

    def ended(self) -> list[Ended]:
        """Return nodes that ended since the last call."""
        fresh = []
        for name, running in self._running.items():
            code = running.process.poll()
            if code is not None and name not in self._told:
                self._told.add(name)
                lines = tuple(_last_lines(running.log))
                fresh.append(Ended(name, code, lines, running.spec.required))
        return fresh

    def log(self, name: str) -> str:
        """Return what a node has written so far."""
        return self._running[name].log.read_text(errors='replace')

    def stop(self, wait: Callable[[float], None] = time.sleep) -> None:
        """End all nodes, the recorder last; returns when none is left."""
        names = list(self._running)
        last = [n for n in names if n == STOP_ORDER_LAST]
        _end([self._running[n].process for n in names if n not in last], wait)
        _end([self._running[n].process for n in last], wait)


def node_command(spec: NodeSpec, parameters: Path) -> list[str]:
    """Return the command line that runs a node with a parameter file."""
    return [
        *(sys.executable, '-m', spec.module, '--ros-args'),
        *('-r', f'__ns:={spec.namespace}', '-r', f'__node:={spec.name}'),
        *('--params-file', str(parameters)),
    ]


def _end(processes: Sequence[subprocess.Popen[bytes]], wait: Callable[[float], None]) -> None:
    for number, grace in GRACE_S:
        alive = [p for p in processes if p.poll() is None]
        for process in alive:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
        end = time.monotonic() + grace
        while any(p.poll() is None for p in alive) and time.monotonic() < end:
            wait(0.02)


def _last_lines(log: Path) -> list[str]:
    def lines(stream: IO[str]) -> list[str]:
        return [line.strip() for line in stream if line.strip()]

    try:
        with log.open(encoding='utf-8', errors='replace') as stream:
            return lines(stream)[-LAST_LINES:]
    except OSError:
        return []
