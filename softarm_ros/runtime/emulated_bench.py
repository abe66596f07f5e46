"""Emulated devices of a rig, running in the background of this process: for tools without ROS."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType

from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_emulated_arm

_CHUNK_S = 0.002
_BACKLOG_S = 0.1  # more is not made up for: the arm would race


class EmulatedBench:
    """
    Devices and simulated arm in real time, in a thread; `folder` has the devices' addresses.

    Raises
    ------
    RigError
        If the rig declares no devices.
    EmulationError
        If they cannot be emulated here.

    """

    def __init__(self, rig: Rig, seed: int = 0) -> None:
        # The first steps load compiled code; they are another plant's.
        rig.simulated_arm(seed).step(None, _CHUNK_S)
        self._arm = build_emulated_arm(rig, seed)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name='emulated arm', daemon=True)
        self._error: BaseException | None = None
        self.folder = Path(tempfile.mkdtemp(prefix='softarm-devices-'))

    def __enter__(self) -> EmulatedBench:
        try:
            self._arm.start(self.folder)
        except BaseException:
            self._end()
            raise
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(5.0)
        self._end()
        if self._error is not None and error is None:
            raise self._error

    def inject(self, fault: str) -> str:
        """Break or mend something; see `EmulatedArm.inject`."""
        with self._lock:
            return self._arm.inject(fault)

    def report(self) -> dict[str, str]:
        """Return the truth on the devices' side."""
        with self._lock:
            return self._arm.report()

    def _end(self) -> None:
        self._arm.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self) -> None:
        began = time.monotonic() - self._arm.time_s
        try:
            while not self._stop.is_set():
                with self._lock:
                    behind = time.monotonic() - began - self._arm.time_s
                    if behind > _BACKLOG_S:
                        began += behind
                    elif behind > 0.5 * _CHUNK_S:
                        self._arm.advance(_CHUNK_S)
                        continue
                time.sleep(_CHUNK_S)
        except BaseException as error:  # told by the thread that waits for this one
            self._error = error
