"""Starts the processes of a plan and makes sure that they all end."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from softarm_ros.leftovers import temporary_folder
from softarm_ros.nodes.process import HELD_VARIABLE, node_environment
from softarm_ros.own_module import own_module
from softarm_ros.rigs.graph import NodeSpec, parameter_file, process_command, processes_of
from softarm_ros.whole_file import write_text

STOP_ORDER_LAST = 'recorder'
# Time [s] that processes get after each signal; the bag is written during the first.
GRACE_S = ((signal.SIGINT, 4.0), (signal.SIGTERM, 1.0), (signal.SIGKILL, 2.0))
LAST_LINES = 6


@dataclass(frozen=True)
class Ended:
    """
    A process that ended by itself.

    Holds its name, its nodes, its exit code (negative: signal) and the last lines of its log.
    """

    name: str
    nodes: tuple[str, ...]
    exit_code: int
    last_lines: tuple[str, ...]
    required: bool

    def describe(self) -> str:
        """Return one line about the end of the process."""
        how = (
            f'was killed by {signal.Signals(-self.exit_code).name}'
            if self.exit_code < 0
            else f'ended with exit status {self.exit_code}'
        )
        said = f': {" | ".join(self.last_lines)}' if self.last_lines else ''
        who = ', '.join(self.nodes)
        what = f'node {who}' if len(self.nodes) == 1 else f'process {self.name} ({who})'
        return f'{what} {how}{said}'


@dataclass
class _Running:
    nodes: tuple[NodeSpec, ...]
    process: subprocess.Popen[bytes]
    log: Path


class NodeProcesses:
    """
    The processes of a plan, as a context manager.

    Every process has its own process group, so that Ctrl-C in a terminal reaches it only through
    this class. The processes end with the block, with the interpreter, and, on Linux, with this
    process even if it is killed.

    With `held`, they import their modules and wait for `release` before they build their nodes.
    """

    def __init__(self, plan: Sequence[NodeSpec], *, held: bool = False) -> None:
        self._plan = processes_of(plan)
        self._held = held
        self._of_node = {spec.name: spec.process for spec in plan}
        self._running: dict[str, _Running] = {}
        self._folder = temporary_folder()
        self._told: set[str] = set()

    def __enter__(self) -> NodeProcesses:
        atexit.register(self.stop)
        try:
            for name in self._plan:
                self.start(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *reason: object) -> None:
        self.stop()
        self._close_inputs()
        atexit.unregister(self.stop)
        self._folder.cleanup()

    def start(self, node: str) -> None:
        """Start the process of a node; a process that has ended may be started again."""
        name = self._of_node.get(node, node)
        nodes = self._plan[name]
        folder = Path(self._folder.name)
        parameters = folder / f'{name}.yaml'
        write_text(parameters, parameter_file(nodes))
        log = folder / f'{name}.log'
        with log.open('wb') as output:
            process = subprocess.Popen(
                own_module(*process_command(nodes, parameters)),
                stdin=subprocess.PIPE if self._held else subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={
                    **node_environment(os.environ),
                    **({HELD_VARIABLE: '1'} if self._held else {}),
                },
            )
        self._told.discard(name)
        self._running[name] = _Running(nodes, process, log)

    def release(self) -> None:
        """Let held processes build their nodes; processes started later are not held."""
        self._held = False
        for running in self._running.values():
            if running.process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):  # the process has ended: see `ended`
                    running.process.stdin.write(b'\n')
        self._close_inputs()

    def _close_inputs(self) -> None:
        for running in self._running.values():
            if running.process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    running.process.stdin.close()

    def pid(self, node: str) -> int:
        """Return the process id of a node."""
        return self._running[self._of_node[node]].process.pid

    def ended(self) -> list[Ended]:
        """Return the processes that have ended since the last call."""
        fresh = []
        for name, running in self._running.items():
            code = running.process.poll()
            if code is not None and name not in self._told:
                self._told.add(name)
                lines = tuple(_last_lines(running.log))
                nodes = tuple(spec.name for spec in running.nodes)
                required = any(spec.required for spec in running.nodes)
                fresh.append(Ended(name, nodes, code, lines, required))
        return fresh

    def log(self, node: str) -> str:
        """Return the log of a node's process so far."""
        return self._running[self._of_node[node]].log.read_text(errors='replace')

    def stop(self, wait: Callable[[float], None] = time.sleep) -> None:
        """End all processes, the recorder last; return when none is left or their time is up."""
        names = list(self._running)
        last = [n for n in names if n == STOP_ORDER_LAST]
        _end([self._running[n].process for n in names if n not in last], wait)
        _end([self._running[n].process for n in last], wait)


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
            found = lines(stream)
    except OSError:
        return []
    fatal = [i for i, line in enumerate(found) if line.startswith('Fatal Python error')]
    crashed = [i for i, line in enumerate(found) if line.startswith('Current thread')]
    if fatal and crashed:  # the place of the crash comes first, all imported modules last
        frames = itertools.takewhile(
            lambda line: line.startswith('File '), found[crashed[-1] + 1 :]
        )
        return [found[fatal[-1]], *frames][:LAST_LINES]
    # What the node told in passing hides why it has ended.
    return ([line for line in found if not line.startswith('[INFO]')] or found)[-LAST_LINES:]
