"""Plan in a separate process: a search may take longer than many cycles of the loop."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.control.goals.goal import Goal
from softarm_ros.control.goals.plan import Plan
from softarm_ros.control.goals.smoothed import SmoothedMotion
from softarm_ros.geometry.arrays import Array
from softarm_ros.own_module import own_module
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_planner, build_tracker

RESTARTS = 3  # in a row, without a plan between them
# A process that has not answered for this long is frozen; docs/goals.md has the longest plans.
POINT_S = 60.0  # for a plan to a single target
ANSWER_S = 600.0  # for any other plan, for loading, and for the first plan, which may compile
_NICE = 5  # the loop has priority
_NUMBER = struct.Struct('q')
_Asked = tuple[Goal, Array, SmoothedMotion | None]  # arguments of `Planner.plan`


class PlannerProcess:
    """
    Requests plans from a process, one at a time; of the waiting requests only the newest counts. A
    plan that is broken off ends at its next point, as refused.

    A thread talks to the process. So the loop never waits: not for a process that loads, freezes
    or ends, nor for a trajectory larger than the socket's buffer.

    A process that ends is started again. The goal it was planning is refused, since it may be the
    cause; a waiting goal goes to the next process. After `RESTARTS` in a row without a plan, every
    goal is refused.

    A frozen process, which does not answer within `POINT_S` or `ANSWER_S`, is killed in `take` and
    then counts as ended.

    The process ends with this one, however this one ends, because its socket closes.

    Parameters
    ----------
    rig : Rig
        Rig whose arm it plans for.
    model : str, optional
        Name of the model; the rig's default for None.
    open_loop : bool
        Plan without pretension, as the loop.
    clock : Clock
        Clock that times the answers.

    """

    def __init__(
        self,
        rig: Rig,
        model: str | None = None,
        *,
        open_loop: bool = False,
        clock: Clock = MONOTONIC,
    ) -> None:
        self._arm = pickle.dumps((rig, model, open_loop))
        self._changed = threading.Condition()  # guards everything below
        self._next: _Asked | None = None
        self._ready: list[Plan] = []
        self._news: list[str] = []
        self._closed = False
        self._clock = clock
        self._awaited: tuple[float, float] | None = None  # answer awaited: since, limit [s]
        self._killed = ''  # reason of the kill; empty if not killed
        self._at_work: int | None = None  # number of the goal that is being planned
        self._process, self._link, self._breaks = self._started()
        self._talker = threading.Thread(target=self._talk, name='planner', daemon=True)
        self._talker.start()

    def request(self, goal: Goal, start: Array, motion: SmoothedMotion | None = None) -> None:
        """Request a plan from a configuration (dof,), after the one in progress."""
        with self._changed:
            # A copy: another thread sends it, and the loop's motion goes on meanwhile.
            self._next = (goal, start, None if motion is None else motion.copy())
            self._changed.notify()

    def break_off(self, number: int) -> None:
        """Stop planning a goal, by its number; does not wait."""
        with self._changed:
            if self._next is not None and self._next[0].number == number:
                self._next = None
            if self._at_work == number:
                # A frozen or ended process is handled elsewhere.
                with contextlib.suppress(OSError):
                    self._breaks.send(_NUMBER.pack(number))

    def take(self) -> list[Plan]:
        """Return the plans that are ready, without waiting; kill an unresponsive process."""
        with self._changed:
            if self._process.poll() is not None:
                self._changed.notify()
            elif self._awaited is not None:
                since_s, limit_s = self._awaited
                if self._clock.now_s() - since_s > limit_s:
                    self._awaited = None
                    self._killed = f'has not answered within {limit_s:.0f} s and was killed'
                    self._process.kill()
            ready, self._ready = self._ready, []
        return ready

    def take_news(self) -> list[str]:
        """Return the messages about the process since the last call."""
        with self._changed:
            news, self._news = self._news, []
        return news

    def close(self) -> None:
        """End the process; it has no state to save."""
        with self._changed:
            self._closed = True
            self._process.kill()
            self._changed.notify()
        self._talker.join()

    # -- the thread

    def _started(self) -> tuple[subprocess.Popen[bytes], Connection[Any, Any], socket.socket]:
        ours, theirs = socket.socketpair()
        breaks, hears = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        breaks.setblocking(False)
        with theirs, hears:
            ends = (theirs.fileno(), hears.fileno())
            process = subprocess.Popen(
                own_module(__name__, *map(str, ends)), pass_fds=ends, stdin=subprocess.DEVNULL
            )
        return process, Connection(ours.detach()), breaks

    def _talk(self) -> None:
        """Serve one process after another, until `close`."""
        in_vain = 0
        while True:
            planned, lost = self._lead()
            code = self._process.wait()
            in_vain = 0 if planned else in_vain + 1
            if self._closed:
                return
            why = f'the planner {self._killed or f"has ended (exit status {code})"}'
            if in_vain > RESTARTS:
                self._give_up(
                    lost, f'{why}, {in_vain} times without a plan: the tracker must be restarted'
                )
                return
            try:
                process, link, breaks = self._started()
            except OSError as error:
                self._give_up(
                    lost,
                    f'{why} and does not start again ({error}): the tracker must be restarted',
                )
                return
            with self._changed:
                self._say(lost, f'{why}; it is started again')
                self._process, self._link, self._breaks = process, link, breaks
                if self._closed:
                    process.kill()

    def _lead(self) -> tuple[bool, Goal | None]:
        """Request plans until the process ends; return whether any was made, and the goal lost."""
        planned, at_work = False, None
        try:
            self._wait(ANSWER_S)
            self._link.send_bytes(self._arm)
            self._link.recv()  # the process is ready
            self._wait(None)
            while True:
                asked = self._asked()
                if asked is None:
                    break
                at_work = asked[0]
                self._set_at_work(at_work.number)
                self._wait(POINT_S if planned and len(at_work.points) == 1 else ANSWER_S)
                self._link.send(asked)
                plan = self._link.recv()
                self._wait(None)
                self._set_at_work(None)
                with self._changed:
                    self._ready.append(plan)
                planned, at_work = True, None
        except (EOFError, OSError):
            pass
        self._set_at_work(None)
        self._link.close()
        self._breaks.close()
        return planned, at_work

    def _set_at_work(self, number: int | None) -> None:
        with self._changed:
            self._at_work = number

    def _wait(self, limit_s: float | None) -> None:
        """Note that an answer is awaited from now on, for `limit_s` [s]; None: no longer."""
        with self._changed:
            self._awaited = None if limit_s is None else (self._clock.now_s(), limit_s)
            self._killed = ''

    def _asked(self) -> _Asked | None:
        """Wait for a request and return it; None if the process has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._next or self._over)
            if self._over:
                return None
            asked, self._next = self._next, None
        return asked

    @property
    def _over(self) -> bool:
        return self._closed or self._process.poll() is not None

    def _say(self, lost: Goal | None, why: str) -> None:
        self._news.append(why)
        if lost is not None:
            self._ready.append(Plan(lost, None, why))

    def _give_up(self, lost: Goal | None, why: str) -> None:
        """Refuse every goal."""
        with self._changed:
            self._say(lost, why)
            while not self._closed:
                if self._next is not None:
                    (goal, *_), self._next = self._next, None
                    self._ready.append(Plan(goal, None, why))
                self._changed.wait()


class _BrokenOff:
    """Numbers of the goals whose planning was broken off, as received from the other end."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(False)
        self._numbers: set[int] = set()

    def has(self, number: int) -> bool:
        """Return whether the number of a goal was received; does not wait."""
        with contextlib.suppress(OSError):  # nothing more was received
            while len(data := self._socket.recv(_NUMBER.size)) == _NUMBER.size:
                self._numbers.add(*_NUMBER.unpack(data))
        return number in self._numbers


def _serve(descriptor: int, breaks: int) -> None:
    """Make plans until the other end closes."""
    # Ctrl-C in a terminal reaches this process too; it ends with the loop instead.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform.startswith('linux'):  # do not inherit the loop's real-time priority
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.nice(_NICE)
    link: Connection[Any, Any] = Connection(descriptor)
    broken_off = _BrokenOff(breaks)
    try:
        rig, model, open_loop = pickle.loads(link.recv_bytes())
        planner = build_planner(rig, build_tracker(rig, rig.model(model), open_loop=open_loop))
        link.send(None)
        while True:
            goal, start, motion = link.recv()
            link.send(planner.plan(goal, start, motion, partial(broken_off.has, goal.number)))
    except (EOFError, OSError):
        return


if __name__ == '__main__':
    _serve(int(sys.argv[1]), int(sys.argv[2]))
