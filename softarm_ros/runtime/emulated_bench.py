"""Emulated devices of a rig in their own process, for tools without ROS."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.emulation.emulated_arm import SWITCH_S, EmulatedArm, EmulationError
from softarm_ros.leftovers import temporary_folder
from softarm_ros.rigs.graph import REAL_TIME_PRIORITY
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_emulated_arm, build_plant
from softarm_ros.runtime.pacing import Pacer
from softarm_ros.runtime.scheduling import raise_priority

_CHUNK_S = 0.002
_READY_S = 600.0  # the first run compiles kernels and firmware
_ANSWER_S = 5.0


class EmulatedBench:
    """
    Emulated devices and simulated arm in real time; `folder` holds the devices' addresses.

    They share nothing with this process, like real devices: a delay here does not delay them.

    Raises
    ------
    RigError
        If the rig declares no devices.
    EmulationError
        On entering, if the devices cannot be emulated here; later, if their process has ended.

    """

    def __init__(self, rig: Rig, seed: int = 0) -> None:
        rig.required_devices('emulated')
        self._folder = temporary_folder()
        self.folder = Path(self._folder.name)
        spawning = multiprocessing.get_context('spawn')
        self._pipe, self._theirs = spawning.Pipe()
        self._process = spawning.Process(
            target=_serve, args=(rig, seed, self.folder, self._theirs), daemon=True
        )

    def __enter__(self) -> EmulatedBench:
        self._process.start()
        self._theirs.close()
        try:
            self._answer(_READY_S)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def inject(self, fault: str) -> str:
        """Inject or repair a fault; see `EmulatedArm.inject`."""
        done: str = self._ask('inject', fault)
        return done

    def report(self) -> dict[str, str]:
        """Return the true state on the devices' side."""
        said: dict[str, str] = self._ask('report')
        return said

    def _ask(self, *order: str) -> Any:
        with contextlib.suppress(BrokenPipeError):
            self._pipe.send(order)
        return self._answer(_ANSWER_S)

    def _answer(self, within_s: float) -> Any:
        try:
            if not self._pipe.poll(within_s):
                raise EmulationError(f'emulated devices: no answer within {within_s:g} s')
            said = self._pipe.recv()
        except (EOFError, ConnectionError):
            raise EmulationError('emulated devices: their process has ended') from None
        if isinstance(said, Exception):
            raise said
        return said

    def _end(self) -> None:
        self._pipe.close()  # the process ends when its pipe closes
        self._process.join(_ANSWER_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._folder.cleanup()


def _serve(rig: Rig, seed: int, folder: Path, pipe: Connection) -> None:
    # Ctrl-C is for the drivers: they stop the arm first.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.setswitchinterval(SWITCH_S)
    try:
        # The first steps load compiled code; another plant takes them.
        build_plant(rig, seed).step(None, _CHUNK_S)
        arm = build_emulated_arm(rig, seed)
    except Exception as error:
        pipe.send(EmulationError(str(error)))
        return
    try:
        arm.start(folder)
        # As for the emulator of a running graph, if permitted: other programs must not delay it.
        raise_priority(REAL_TIME_PRIORITY)
        pipe.send('ready')
        _run(arm, pipe)
    except (EOFError, ConnectionError):  # asked to end
        pass
    except Exception as error:
        with contextlib.suppress(ConnectionError):
            pipe.send(EmulationError(str(error)))
    finally:
        arm.close()


def _run(arm: EmulatedArm, pipe: Connection, clock: Clock = MONOTONIC) -> None:
    pacer = Pacer(1.0)
    while True:
        while pipe.poll():
            order = pipe.recv()
            if order[0] == 'report':
                pipe.send(arm.report())
            else:
                try:
                    pipe.send(arm.inject(order[1]))
                except ValueError as error:
                    pipe.send(error)
                except RuntimeError as error:
                    pipe.send(EmulationError(str(error)))
        if arm.time_s + 0.5 * _CHUNK_S < pacer.target(clock.now_s(), arm.time_s):
            arm.advance(_CHUNK_S)
        else:
            clock.sleep(_CHUNK_S)
