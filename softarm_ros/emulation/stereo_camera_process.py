"""
Emulated cameras in their own process, so that drawing cannot delay devices or the arm.

`python -m softarm_ros.emulation.stereo_camera_process` reads one line of JSON from its standard
input (the sensor's configuration, the section names, the seed), then records of a fixed size: an
exposure or a fault. It writes lines of JSON: first the fields that address the cameras, or
`error`; then a report twice a second. It ends when its input ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from softarm_ros.emulation.camera_setup import setup_of
from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.emulation.stereo_camera_server import FAULTS, StereoCameraServer
from softarm_ros.emulation.wall_times import WallTimes
from softarm_ros.geometry.arrays import Array
from softarm_ros.own_module import own_module
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.config import StereoCamerasConfig
from softarm_ros.perception.stereo.tracking import MarkerTracker
from softarm_ros.plant.mocap import PoseMeasurement
from softarm_ros.plant.plant import Plant

_LINE_POINTS = 25  # of the centreline: a pipe takes records below 4096 bytes whole
_REPORT_S = 0.5
_END_S = 5.0


class CameraProcess:
    """
    Two network cameras that observe the simulated arm; an `EmulatedSensor`, a `LookingSensor`.

    Parameters
    ----------
    config : StereoCamerasConfig
        Configuration of the driver that will read them.
    sections : sequence of str
        Section names, base to tip.
    seed : int
        Seed of every random number.

    """

    def __init__(self, config: StereoCamerasConfig, sections: Sequence[str], seed: int) -> None:
        self._config, self._sections, self._seed = config, tuple(sections), seed
        self._process: subprocess.Popen[bytes] | None = None
        self._listener: threading.Thread | None = None
        self._report: dict[str, str] = {}
        self._frames = self._skipped = 0
        self._next_s = 0.0
        self._times = WallTimes()

    def start(self) -> dict[str, object]:
        """See `EmulatedSensor`."""
        self.close()
        self._process = subprocess.Popen(
            own_module('softarm_ros.emulation.stereo_camera_process'),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        given = {
            'config': self._config.model_dump(mode='json'),
            'sections': self._sections,
            'seed': self._seed,
        }
        pipe, lines = self._pipes()
        try:
            pipe.write(json.dumps(given).encode() + b'\n')
            pipe.flush()
        except OSError:
            pass  # its error message is read next
        first = lines.readline()
        said: dict[str, object] = json.loads(first) if first else {'error': 'they ended at once'}
        if 'error' in said:
            self.close()
            raise EmulationError(f'emulated cameras: {said["error"]}')
        os.set_blocking(pipe.fileno(), False)
        self._listener = threading.Thread(target=self._listen, args=(lines,), daemon=True)
        self._listener.start()
        return said

    def look(self, plant: Plant, now_s: float) -> None:
        """See `LookingSensor`; exposes when a frame is due."""
        now = time.monotonic()
        wall_s = self._times.of(now_s, now)
        if now_s < self._next_s - 1e-9:
            return
        period_s = 1.0 / self._config.rate_hz
        self._next_s = max(self._next_s + period_s, now_s - period_s)
        exposed_ns = time.time_ns() - round(1e9 * (now - wall_s))
        line = plant.true_centerline(_LINE_POINTS)
        record = np.concatenate([plant.true_section_tips().ravel(), line.ravel()])
        if self._send(exposed_ns, record):
            self._frames += 1
        else:
            self._skipped += 1

    def load_code(self) -> None:
        """See `LookingSensor`."""
        try:
            cameras, _ = setup_of(self._config, len(self._sections), self._seed)
            StereoCameraServer(self._config, self._sections, self._seed, cameras)
            MarkerTracker(self._config, cameras)
        except CameraError as error:
            raise EmulationError(f'emulated cameras: {error}') from None

    def deliver(self, measured: Sequence[PoseMeasurement], now_s: float) -> None:
        """See `EmulatedSensor`; does nothing, as these cameras send images rather than poses."""

    def inject(self, fault: str) -> str:
        """See `EmulatedSensor`."""
        if fault not in FAULTS:
            raise ValueError(f'no fault {fault!r} here; known: {", ".join(FAULTS)}')
        if not self._send(-1 - FAULTS.index(fault), np.zeros(self._numbers())):
            raise RuntimeError('the process of the emulated cameras takes no orders')
        return fault

    def report(self) -> dict[str, str]:
        """See `EmulatedSensor`."""
        own = {'exposures': self._frames, 'exposures_left_out': self._skipped}
        found = {**self._report, **{key: str(n) for key, n in own.items()}}
        return {f'cameras_{key}': value for key, value in found.items()}

    def close(self) -> None:
        """See `EmulatedSensor`."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin,):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.join(_END_S)
        if process.stdout is not None:
            process.stdout.close()

    def _numbers(self) -> int:
        return 16 * len(self._sections) + 3 * _LINE_POINTS

    def _send(self, stamp_ns: int, record: Array) -> bool:
        """Return whether the cameras took a record; a pipe takes it whole or not at all."""
        if self._process is None:
            return False
        pipe, _ = self._pipes()
        data = np.int64(stamp_ns).tobytes() + np.asarray(record, dtype='<f8').tobytes()
        try:
            os.write(pipe.fileno(), data)
        except BlockingIOError:  # full: the process draws more slowly than the arm moves
            return False
        except OSError:
            raise EmulationError('emulated cameras: their process has ended') from None
        return True

    def _listen(self, lines: IO[bytes]) -> None:
        for line in lines:
            self._report = json.loads(line)

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return self._process.stdin, self._process.stdout


def build(config: StereoCamerasConfig, sections: Sequence[str], seed: int) -> CameraProcess:
    """Return the emulated cameras of a rig, not yet started."""
    return CameraProcess(config, sections, seed)


def main() -> int:
    """Serve the cameras until the input ends."""
    # This process has the real-time priority of its parent, as the rest of the emulated hardware.
    # At a lower one, drawing waits for the whole loop, and the loop stops for want of poses.
    given = json.loads(sys.stdin.buffer.readline())
    try:
        config = StereoCamerasConfig.model_validate(given['config'])
        sections, seed = given['sections'], given['seed']
        cameras, calibration = setup_of(config, len(sections), seed)
        server = StereoCameraServer(config, sections, seed, cameras, calibration)
        address = server.start()
    except (EmulationError, ValueError, OSError) as error:
        _say({'error': ' '.join(str(error).split())})
        return 1
    _say(address)
    try:
        _serve(server, len(sections))
    except BrokenPipeError:
        pass
    finally:
        server.close()
    return 0


def _serve(server: Any, sections: int) -> None:
    poses = 16 * sections
    size = 8 * (1 + poses + 3 * _LINE_POINTS)
    next_report_s = time.monotonic()
    began_s, spent_s = time.monotonic(), time.process_time()
    while True:
        data = sys.stdin.buffer.read(size)
        if len(data) < size:
            return
        stamp_ns = int(np.frombuffer(data, '<i8', 1)[0])
        numbers = np.frombuffer(data, '<f8', offset=8)
        if stamp_ns < 0:
            server.inject(FAULTS[-1 - stamp_ns])
        else:
            tips, line = numbers[:poses].reshape(-1, 4, 4), numbers[poses:].reshape(-1, 3)
            server.expose(tips, line, stamp_ns)
        now = time.monotonic()
        if now >= next_report_s:
            spent = time.process_time()
            share = (spent - spent_s) / max(now - began_s, 1e-3)
            _say({**server.report(), 'cpu_percent': f'{100.0 * share:.0f}'})
            next_report_s, began_s, spent_s = now + _REPORT_S, now, spent


def _say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + '\n')
    sys.stdout.flush()


if __name__ == '__main__':
    sys.exit(main())
