"""The driver reads emulated cameras over HTTP: sightings, and what it says of each fault."""

import http.server
import threading

import numpy as np
import pytest

pytest.importorskip('cv2', reason='opencv-python-headless is not installed')

from arm_cases import NAMES, SECTIONS, a_config, a_server, bent, measured

from softarm_ros.perception.sensor import SensorError
from softarm_ros.perception.stereo.pairing import PairByStamp
from softarm_ros.perception.stereo.sensor import StereoCameraSensor
from softarm_ros.perception.stereo.sources import FileFrames, MjpegFrames, open_source
from softarm_ros.rigs.part_registry import find_part

pytestmark = pytest.mark.packets

TRIES = 200


class Bench:
    """Emulated cameras and the driver that reads them; time goes on with every exposure."""

    def __init__(self):
        self.server = a_server()
        self.sensor = StereoCameraSensor(a_config(**self.server.start()), 'base')
        self.sensor.open()
        self.time_s = 0.0

    def expose(self):
        self.time_s += 1.0 / 30.0
        self.server.deliver([measured(self.time_s)], self.time_s)
        return self.sensor.read(0.05)

    def until(self, wanted):
        """Expose until the last sightings and the health are as wanted; return both."""
        for _ in range(TRIES):
            seen, health = self.expose(), self.sensor.health()
            if wanted(seen, health):
                return seen, health
        raise AssertionError(f'not within {TRIES} exposures: {health}')

    def close(self):
        self.server.close()  # first: a reader without images would wait for the next one
        self.sensor.close()


@pytest.fixture
def bench():
    made = Bench()
    yield made
    made.close()


def codes(health):
    return [problem.code for problem in health.problems]


def complete(seen, health):
    return any(len(sighting.points) == 4 for sighting in seen)


def test_points_are_where_the_plant_has_them(bench):
    seen, health = bench.until(complete)
    truth = {name: bench.server._marker(bent(), name) for name in NAMES}
    for point in seen[-1].points:
        assert np.linalg.norm(point.position - truth[point.name]) < 1e-3
        assert 0.0 < np.sqrt(np.linalg.eigvalsh(point.covariance).max()) < 1e-3
    assert seen[-1].frame_id == 'base'
    assert health.connected
    assert health.seen == tuple(NAMES)


@pytest.mark.parametrize('side', ['left', 'right'])
def test_an_unplugged_camera_is_named_and_comes_back_by_itself(bench, side):
    bench.until(complete)
    bench.server.inject(f'unplug {side}')
    _, health = bench.until(lambda seen, health: not health.connected)
    assert health.problems[0].code == 'no-camera'
    assert health.problems[0].subject == f'{side} camera'
    assert 'plug' in health.problems[0].advice
    bench.server.inject('mend')
    bench.until(lambda seen, health: complete(seen, health) and health.connected)


@pytest.mark.parametrize(
    ('fault', 'code'),
    [
        ('swap', 'swapped'),
        ('dark', 'no-marker'),
        ('hide', 'marker-missing'),
        ('late', 'not-together'),
    ],
)
def test_a_fault_is_named(bench, fault, code):
    bench.until(complete)
    bench.server.inject(fault)
    _, health = bench.until(lambda seen, health: code in codes(health))
    assert all(problem.advice for problem in health.problems)


def test_images_that_are_lost_are_not_paired_with_others(bench):
    bench.until(complete)
    bench.server.inject('drop')
    stamps = []
    for _ in range(40):
        for sighting in bench.expose():
            assert {p.name for p in sighting.points} <= set(NAMES)
            stamps.append(sighting.stamp_ns)
    assert 0 < len(stamps) < 40
    assert stamps == sorted(set(stamps))


def test_a_missing_calibration_is_no_matter_of_waiting():
    with pytest.raises(SensorError, match=r'cameras.yaml.*softarm calibrate'):
        StereoCameraSensor(a_config(), 'base').open()


def test_the_part_builds_both_ends():
    part = find_part('sensors', 'stereo_cameras')
    config = a_config()
    server = part.builder('emulated')(config, SECTIONS, 3)
    fields = server.start()
    sensor = part.builder('driver')(config.model_copy(update=fields), 'base')
    sensor.open()
    sensor.close()
    assert 'draw_ms' in server.report()
    server.close()


# -- pairing


def test_images_are_paired_nearest_first_and_used_once():
    pairing = PairByStamp(0.004)
    ms, hour = 1_000_000, 3_600_000_000_000
    assert pairing.push('left', hour + 100 * ms, 'l1') is None
    assert pairing.push('left', hour + 133 * ms, 'l2') is None
    pair = pairing.push('right', hour + 134 * ms, 'r2')
    assert (pair.left, pair.right, pair.skew_ns) == ('l2', 'r2', 1 * ms)
    assert pairing.unpaired == {'left': 1, 'right': 0}
    assert pairing.push('right', hour + 134 * ms, 'r2 again') is None
    assert pairing.push('left', hour + 135 * ms, 'l3') is None
    assert pairing.push('right', hour + 166 * ms, 'r3') is None
    # A clock that was set back by an hour begins anew.
    assert pairing.push('left', 167 * ms, 'l4') is None
    assert pairing.push('right', 168 * ms, 'r4').left == 'l4'


# -- sources


@pytest.mark.parametrize(
    ('text', 'kind'),
    [
        ('0', 'OpenCvFrames'),
        ('/dev/video2', 'OpenCvFrames'),
        ('v4l2src ! videoconvert ! appsink', 'OpenCvFrames'),
        ('rtsp://camera/1', 'OpenCvFrames'),
        ('run.mp4', 'OpenCvFrames'),
        ('http://camera:8080/stream', 'MjpegFrames'),
        ('images/left_*.png', 'FileFrames'),
    ],
)
def test_a_source_is_known_by_its_name(text, kind):
    assert type(open_source(text)).__name__ == kind


def test_a_video_and_a_folder_are_read_to_their_end(tmp_path):
    import cv2

    video = tmp_path / 'run.avi'
    writer = cv2.VideoWriter(str(video), cv2.VideoWriter_fourcc(*'MJPG'), 20.0, (64, 48))
    if not writer.isOpened():
        pytest.skip('this OpenCV writes no video')
    for k in range(9):
        writer.write(np.full((48, 64, 3), 25 * k, dtype=np.uint8))
        cv2.imwrite(str(tmp_path / f'image_{k}.png'), np.full((48, 64), 25 * k, dtype=np.uint8))
    writer.release()
    for source in (open_source(str(video)), FileFrames(str(tmp_path), 20.0)):
        source.open()
        frames = []
        while not source.ended():
            frame = source.read(1.0)
            if frame is not None:
                frames.append(frame)
        source.close()
        levels = [float(f.image.mean()) for f in frames]
        assert levels == pytest.approx([25.0 * k for k in range(9)], abs=3.0)
        assert [f.stamp_ns for f in frames] == sorted({f.stamp_ns for f in frames})


def answer_once(status, kind, body):
    """Return the address of a server that answers so to everyone."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.send_header('Content-Type', kind)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


MULTIPART = 'multipart/x-mixed-replace;boundary=b'


@pytest.mark.parametrize(
    ('status', 'kind', 'body', 'says'),
    [
        (404, 'text/html', b'no', 'answered 404'),
        (200, 'text/html', b'a page', 'expected a stream'),
        (200, MULTIPART, b'--b\r\nContent-Length: 99999999999\r\n\r\n', 'Content-Length'),
        (200, MULTIPART, b'--b\r\nContent-Length: 10\r\n\r\nabc', 'ended within an image'),
        (200, MULTIPART, b'--b\r\nContent-Length: 3\r\n\r\nabc', 'the stream ended'),
    ],
)
def test_an_address_that_is_no_camera_gives_no_image_and_says_why(status, kind, body, says):
    server = answer_once(status, kind, body)
    source = MjpegFrames(f'http://127.0.0.1:{server.server_address[1]}/')
    source.open()
    found = ''
    for _ in range(TRIES):
        assert source.read(0.02) is None
        found = source.problem()
        if says in found:
            break
    source.close()
    server.shutdown()
    server.server_close()
    assert says in found
