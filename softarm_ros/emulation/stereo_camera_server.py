"""Two network cameras that observe a plant: rendered grey images over HTTP, and faults."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.emulation.stereo_renderer import ArmLooks, StereoRenderer
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import inverse_pose, pose
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.geometry.section_curve import along_sections
from softarm_ros.geometry.sightings import Place
from softarm_ros.leftovers import temporary_folder
from softarm_ros.perception.stereo.calibration_file import (
    BaseBlock,
    CalibrationFile,
    CameraBlock,
    PoseBlock,
    StereoBlock,
    write_calibration,
)
from softarm_ros.perception.stereo.camera import Camera
from softarm_ros.perception.stereo.cameras import SIDES, Side, StereoCameras
from softarm_ros.perception.stereo.config import StereoCamerasConfig
from softarm_ros.perception.stereo.images import Image, opencv

LOCALHOST = '127.0.0.1'
SIZE = (640, 480)
LENS = (-0.18, 0.06, 4e-4, -3e-4, -0.008)
BASELINE_M = 0.3
FILLED = 0.75  # share of the image's height that the arm fills at rest
MARKER_M = 0.008
BOUNDARY = 'exposure'
FAULTS = (
    'unplug left',
    'unplug right',
    'freeze left',
    'freeze right',
    'drop',
    'swap',
    'dark',
    'hide',
    'reflect',
    'late',
    'mend',
)
_DROPPED = 0.5  # share of images that are lost, for each camera separately
# From the exposure to the image on the network; slower drawing delays it further.
_TRANSFER_S = 0.015
_CLEARANCE_M = 0.002  # between the arm's surface and its markers


class StereoCameraServer:
    """
    Draws the images of both cameras and serves them on two ports.

    Faults: `unplug left|right` (the port closes), `freeze left|right` (the same image, with new
    time stamps), `drop` (half of the images of each camera are lost), `swap` (plugs exchanged),
    `dark` (lamps off), `hide` (an object in front of the last marker or body), `reflect` (a bright
    reflection beside it), `late` (the right camera exposes half a period after the left one).
    Faults add up; `mend` ends all.

    Parameters
    ----------
    config : StereoCamerasConfig
        Rate, markers and their places.
    sections : sequence of str
        Section names, base to tip.
    seed : int
        Seed of the noise and of lost images.
    cameras : StereoCameras
        The true cameras.
    calibration : CalibrationFile, optional
        Calibration for the driver; None: the true cameras are known exactly.

    """

    def __init__(
        self,
        config: StereoCamerasConfig,
        sections: Sequence[str],
        seed: int,
        cameras: StereoCameras,
        calibration: CalibrationFile | None = None,
    ) -> None:
        opencv()
        self._config = config
        self._places = config.marker_places(tuple(sections))
        self._seats = _seats(self._places)
        self.cameras = cameras
        self._calibration = calibration or calibration_of(cameras)
        diameter_m = config.marker_diameter_m or MARKER_M
        looks = ArmLooks(self._tube_radius_m(diameter_m), diameter_m)
        self._renderer = StereoRenderer(self.cameras, looks, seed)
        self._random = np.random.default_rng([seed, 1])
        self._streams: dict[Side, _Stream] = {}
        self._folder: TemporaryDirectory[str] | None = None
        self._faults: frozenset[str] = frozenset()
        self._drawn_s: list[float] = []
        self._news = threading.Condition()
        self._next: tuple[Array, Array, int] | None = None
        self._ending = False
        self._painter: threading.Thread | None = None
        self._frozen: dict[Side, Image] = {}

    def _tube_radius_m(self, diameter_m: float) -> float:
        """Return the radius of an arm whose surface most markers clear by a small distance."""
        out = [float(np.linalg.norm(p.offset[:2, 3])) for p in self._places.values()]
        clear = [r - 0.5 * diameter_m - _CLEARANCE_M for r in out]
        beside = [radius for radius in clear if radius > 0.0]
        return float(np.median(beside)) if beside else ArmLooks().tube_radius_m

    def start(self) -> dict[str, object]:
        """Start serving; return the sensor's configuration fields that address the cameras."""
        self.close()
        self._folder = temporary_folder()
        file = Path(self._folder.name) / 'cameras.yaml'
        write_calibration(file, self._calibration)
        self._streams = {side: _Stream() for side in SIDES}
        for stream in self._streams.values():
            stream.plug()
        self._ending, self._next = False, None
        self._painter = threading.Thread(target=self._draw_newest, name='camera', daemon=True)
        self._painter.start()
        return {
            'left': self._streams['left'].url,
            'right': self._streams['right'].url,
            'base_calibration': str(file),
        }

    def expose(self, section_tips: Array, centreline: Array, exposed_ns: int) -> None:
        """
        Take an exposure of an arm: section tips (sections, 4, 4), points (n, 3), and its time.

        A thread draws it, so the caller does not wait. If the thread is late, it draws the newest
        exposure and skips earlier ones, as a slow camera does.
        """
        with self._news:
            self._next = (section_tips, centreline, exposed_ns)
            self._news.notify_all()

    def _draw_newest(self) -> None:
        """Draw and show exposures until the server closes (runs in the thread)."""
        transfer_s = min(_TRANSFER_S, 0.8 / self._config.rate_hz)
        while True:
            with self._news:
                while self._next is None and not self._ending:
                    self._news.wait()
                if self._next is None or self._ending:
                    return
                (tips, line, exposed_ns), self._next = self._next, None
            begin_s = time.thread_time()
            images = self.draw(tips, line)
            self._drawn_s = [*self._drawn_s[-99:], time.thread_time() - begin_s]
            # An image that is ready before a real camera would have sent it waits until then.
            with self._news:
                left_s = transfer_s - 1e-9 * (time.time_ns() - exposed_ns)
                if left_s > 0.0:
                    self._news.wait_for(lambda: self._ending, left_s)
            for side, image in images.items():
                if 'drop' in self._faults and self._random.random() < _DROPPED:
                    continue
                self._streams[side].show(image, self.stamp_ns(side, exposed_ns))

    def stamp_ns(self, side: Side, exposed_ns: int) -> int:
        """Return the time stamp [ns] of a camera's image; `late` shifts that of the right one."""
        late_s = 0.5 / self._config.rate_hz if 'late' in self._faults and side == 'right' else 0.0
        return exposed_ns + round(1e9 * late_s)

    def draw(self, section_tips: Array, centreline: Array) -> dict[Side, Image]:
        """Return both images of an arm: section tips (sections, 4, 4), centreline (n, 3)."""
        markers = np.array([*self.markers(section_tips).values()])
        boxes = []
        if 'hide' in self._faults:
            boxes = self._hiding(markers)
        if 'reflect' in self._faults:
            # Beside the last marker, where a wet arm reflects.
            along = section_tips[-1][:3, 2]
            shine = markers[-1] - 1.6 * self._renderer.looks.marker_diameter_m * along
            markers = np.concatenate([markers, shine[None]])
        left, right = self._renderer.draw(centreline, markers, boxes)
        if 'dark' in self._faults:
            left, right = (np.asarray(image // 8, dtype=np.uint8) for image in (left, right))
        if 'swap' in self._faults:
            left, right = right, left
        shown: dict[Side, Image] = {'left': left, 'right': right}
        for side in SIDES:
            if f'freeze {side}' in self._faults:
                shown[side] = self._frozen.setdefault(side, shown[side])
            else:
                self._frozen.pop(side, None)
        return shown

    def _hiding(self, markers: Array) -> list[Array]:
        """Return squares that hide the last marker, or the whole last body, from each camera."""
        last = self._config.bodies[-1] if self._config.bodies else None
        hidden = markers if last is None else markers[-len(last.markers) :]
        middle = markers[-1] if last is None else hidden.mean(axis=0)
        half_m = 0.03 + float(np.linalg.norm(hidden - middle, axis=1).max(initial=0.0))
        half_m = half_m if last is not None else 0.04
        X_BL = inverse_pose(self.cameras.base_pose())
        boxes = []
        for side in SIDES:
            X_BC = X_BL @ self.cameras.pose(side)
            towards = X_BC[:3, 3] - middle
            towards /= np.linalg.norm(towards)
            before = middle + (0.02 + half_m) * towards
            x, y = X_BC[:3, 0], X_BC[:3, 1]
            boxes.append(np.array([before + half_m * (a * x + b * y) for a, b in _SQUARE]))
        return boxes

    def inject(self, fault: str) -> str:
        """See `EmulatedSensor`."""
        if fault not in FAULTS:
            raise ValueError(f'no fault {fault!r} here; known: {", ".join(FAULTS)}')
        self._faults = frozenset() if fault == 'mend' else self._faults | {fault}
        for side, stream in self._streams.items():
            if f'unplug {side}' in self._faults:
                stream.unplug()
            else:
                stream.plug()
        return fault

    def report(self) -> dict[str, str]:
        """See `EmulatedSensor`."""
        drawn = self._drawn_s
        return {
            'fault': ', '.join(sorted(self._faults)) or 'none',
            'draw_cpu_ms': f'{1e3 * float(np.median(drawn)):.1f}' if drawn else 'none',
            **{f'images {side}': str(s.shown) for side, s in self._streams.items()},
        }

    def close(self) -> None:
        """See `EmulatedSensor`."""
        painter, self._painter = self._painter, None
        if painter is not None:
            with self._news:
                self._ending = True
                self._news.notify_all()
            painter.join()
        for stream in self._streams.values():
            stream.unplug()
        self._streams = {}
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def markers(self, tips: Array) -> dict[str, Array]:
        """Return the marker positions (3,), by name, for section tips (sections, 4, 4)."""
        found: dict[str, Array] = {}
        for (section, fraction), (names, offsets) in self._seats.items():
            if section < 0:
                places = offsets
            else:
                X = (
                    tips[section]
                    if fraction == 1.0
                    else along_sections(tips, section, np.array([fraction]))[0]
                )
                places = offsets @ X[:3, :3].T + X[:3, 3]
            found.update(zip(names, places))
        return {name: found[name] for name in self._places}


def _seats(
    places: Mapping[str, Place],
) -> dict[tuple[int, float], tuple[tuple[str, ...], Array]]:
    """Return the names and offsets (n, 3) of the markers at each cross-section; -1 is the base."""
    names: dict[tuple[int, float], list[str]] = {}
    for name, place in places.items():
        seat = (place.section, place.fraction) if place.section >= 0 else (-1, 0.0)
        names.setdefault(seat, []).append(name)
    return {
        seat: (tuple(group), np.array([places[name].offset[:3, 3] for name in group]))
        for seat, group in names.items()
    }


_SQUARE = ((1, 1), (1, -1), (-1, -1), (-1, 1))


class _Stream:
    """One camera on the network: its port and its newest image."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._part: tuple[bytes, Image] | None = None
        self.shown = 0
        self._port = 0
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Address of the stream."""
        return f'http://{LOCALHOST}:{self._port}/stream'

    def plug(self) -> None:
        """Serve on the same port as before, unless already serving."""
        if self._server is not None:
            return
        stream = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                stream._serve(self, server)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing: requests are of no interest."""

        try:
            server = _Server((LOCALHOST, self._port), Handler)
        except OSError as error:
            raise EmulationError(f'camera: port {self._port}: {error}') from None
        self._port = server.server_address[1]
        self._server = server
        self._thread = threading.Thread(
            target=server.serve_forever, kwargs={'poll_interval': 0.05}, daemon=True
        )
        self._thread.start()

    def unplug(self) -> None:
        """Close the port and all connections; may be called twice."""
        server, self._server = self._server, None
        if server is None:
            return
        server.shutdown()
        server.server_close()
        with self._news:
            self._news.notify_all()
        if self._thread is not None:
            self._thread.join()

    def show(self, image: Image, stamp_ns: int) -> None:
        """Send an uncompressed grey image to all clients, as industrial cameras do."""
        if self._server is None:
            return
        pgm = b'P5\n%d %d\n255\n' % (image.shape[1], image.shape[0])
        head = (
            f'\r\n--{BOUNDARY}\r\nContent-Type: image/x-portable-graymap\r\n'
            f'Content-Length: {len(pgm) + image.size}\r\n'
            f'X-Timestamp: {stamp_ns // 1_000_000_000}.{stamp_ns % 1_000_000_000:09d}\r\n\r\n'
        )
        with self._news:
            self._part = (head.encode() + pgm, image)
            self.shown += 1
            self._news.notify_all()

    def _serve(self, request: BaseHTTPRequestHandler, server: ThreadingHTTPServer) -> None:
        request.send_response(200)
        request.send_header('Content-Type', f'multipart/x-mixed-replace;boundary={BOUNDARY}')
        request.end_headers()
        sent = self.shown
        with contextlib.suppress(OSError):
            while True:
                with self._news:
                    while self.shown == sent and self._server is server:
                        self._news.wait()
                    if self._server is not server:
                        return
                    sent, part = self.shown, self._part
                if part is not None:
                    _send(request.connection, part[0], part[1])


def _send(link: socket.socket, head: bytes, image: Image) -> None:
    """Send both at once: a driver that waits for images then wakes up once."""
    body = image.reshape(-1).data
    sent = link.sendmsg([head, body])
    if sent < len(head):
        link.sendall(head[sent:])
    link.sendall(body[max(sent - len(head), 0) :])


class _Server(ThreadingHTTPServer):
    """HTTP server that does not wait for its connections to end and can reuse its port."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True


def cameras_around(length_m: float) -> StereoCameras:
    """Return two cameras, 0.3 m apart, whose images show a whole hanging arm of this length."""
    width, height = SIZE
    focal_px = 1.1 * width
    distance_m = max(length_m * focal_px / (FILLED * height), 0.3)
    K = np.array([[focal_px, 0, 0.5 * width], [0, focal_px, 0.5 * height], [0, 0, 1]])
    turn = np.arctan2(BASELINE_M, distance_m)
    X_LR = pose(exp_so3(np.array([0.0, -turn, 0.0])), (BASELINE_M, 0.0, 0.0))
    # In the image, the arm's z axis points down; its y axis points towards the cameras.
    axes = np.column_stack([[1, 0, 0], [0, 0, -1.0], [0, 1, 0]])
    left, right = (Camera(side, SIZE, K, np.array(LENS)) for side in SIDES)
    X_LB = pose(axes, (0.0, -0.5 * length_m, distance_m))
    return StereoCameras(left, right, inverse_pose(X_LR), X_LB)


def calibration_of(cameras: StereoCameras) -> CalibrationFile:
    """Return the calibration file of cameras that are known exactly."""
    blocks: dict[Side, CameraBlock] = {}
    for side in SIDES:
        camera = cameras.camera(side)
        rows = [tuple(row) for row in camera.matrix.tolist()]
        blocks[side] = CameraBlock(
            size_px=camera.size,
            matrix=(rows[0], rows[1], rows[2]),
            distortion=camera.distortion.tolist(),
            rms_px=0.0,
            coverage_percent=100.0,
        )
    return CalibrationFile(
        cameras=blocks,
        stereo=StereoBlock(
            left_in_right=PoseBlock.of(cameras.X_RL),
            baseline_mm=1e3 * cameras.baseline_m,
            rms_px=0.0,
            board_misfit_mm=0.0,
        ),
        base=BaseBlock(base_in_left=PoseBlock.of(cameras.base_pose()), source='board', rms_mm=0.0),
    )
