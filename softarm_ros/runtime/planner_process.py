"""Plans made by a process of its own: a search may take longer than many cycles of the loop."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
from multiprocessing.connection import Connection
from typing import Any

from softarm_ros.control.goals.goal import Goal
from softarm_ros.control.goals.plan import Plan
from softarm_ros.geometry.arrays import Array
from softarm_ros.own_module import own_module
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_planner, build_tracker

_NICE = 5  # the loop first
_END_S = 1.0


class PlannerProcess:
    """
    Asks a process for plans, one at a time; of those that wait only the newest counts.

    It is asked once it listens: a trajectory is more than a socket holds, and sending it would
    make the loop wait for the process to load.

    The process ends with this one, however that ends: nobody is left at the other end of its
    socket.

    Parameters
    ----------
    rig : Rig
        Whose arm it plans for.
    model : str, optional
        Name of the model; the rig's default for None.
    open_loop : bool
        Without pretension, as the loop.

    """

    def __init__(self, rig: Rig, model: str | None = None, *, open_loop: bool = False) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                own_module(__name__, str(theirs.fileno())),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
            )
        self._link: Connection[Any, Any] = Connection(ours.detach())
        self._link.send_bytes(pickle.dumps((rig, model, open_loop)))
        self._listens = False
        self._at_work: Goal | None = None
        self._next: tuple[Goal, Array] | None = None
        self._ready: list[Plan] = []

    def request(self, goal: Goal, start: Array) -> None:
        """Ask for a plan from a configuration (dof,), after the one that is being made."""
        self._next = (goal, start)
        self._send_next()

    def take(self) -> list[Plan]:
        """Return plans that are ready; does not wait."""
        try:
            if not self._listens and self._link.poll():
                self._link.recv()
                self._listens = True
            while self._at_work is not None and self._link.poll():
                self._ready.append(self._link.recv())
                self._at_work = None
        except (EOFError, OSError):
            self._fail()
        self._send_next()
        ready, self._ready = self._ready, []
        return ready

    def close(self) -> None:
        """End the process."""
        self._link.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:  # in the middle of a search
            self._process.kill()
            self._process.wait()

    def _send_next(self) -> None:
        if self._next is None or self._at_work is not None or not self._listens:
            return
        (goal, start), self._next = self._next, None
        self._at_work = goal
        try:
            self._link.send((goal, start))
        except OSError:
            self._fail()

    def _fail(self) -> None:
        self._listens = True  # whatever is asked for now gets this answer
        goal, self._at_work = self._at_work, None
        if goal is not None:
            code = self._process.poll()
            self._ready.append(Plan(goal, None, f'the planner has ended (exit status {code})'))


def _serve(descriptor: int) -> None:
    """Make plans until the other end is gone."""
    # Ctrl-C in a terminal reaches this process too; it ends with the loop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICE)
    link: Connection[Any, Any] = Connection(descriptor)
    try:
        rig, model, open_loop = pickle.loads(link.recv_bytes())
        planner = build_planner(rig, build_tracker(rig, rig.model(model), open_loop=open_loop))
        link.send(None)
        while True:
            goal, start = link.recv()
            link.send(planner.plan(goal, start))
    except (EOFError, OSError):
        return


if __name__ == '__main__':
    _serve(int(sys.argv[1]))
