"""The stereo camera driver on emulated cameras over HTTP: sightings and reported faults."""

import http.server
import re
import socket
import threading
import time
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

pytest.importorskip('cv2', reason='opencv-python-headless is not installed')

from arm_cases import (
    LENGTH_M,
    NAMES,
    SECTIONS,
    a_config,
    a_server,
    bent,
    centreline,
    disk_config,
    model_of,
)
from manual_clock import ManualClock

from softarm_ros.cli.sensor_checks import save_view
from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.emulation.stereo_camera_process import CameraProcess
from softarm_ros.emulation.stereo_camera_server import (
    StereoCameraServer,
    calibration_of,
    cameras_around,
)
from softarm_ros.geometry.rotations import angle_between
from softarm_ros.perception.sensor import SensorError
from softarm_ros.perception.stereo.calibration_file import write_calibration
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.frame_source import Frame, PushedFrames
from softarm_ros.perception.stereo.images import read_image
from softarm_ros.perception.stereo.network_frames import MjpegFrames
from softarm_ros.perception.stereo.pairing import PairByStamp
from softarm_ros.perception.stereo.sensor import StereoCameraSensor
from softarm_ros.perception.stereo.sources import FileFrames, open_source
from softarm_ros.rigs.part_registry import find_part

pytestmark = pytest.mark.packets

TRIES = 200


class Bench:
    """Emulated cameras and their driver; unless `still`, the arm moves with each exposure."""

    def __init__(self, config=None, still=True):
        self.config = config or a_config()
        self.still = still
        self.server = a_server(self.config)
        self.sensor = StereoCameraSensor(
            self.config.model_copy(update=self.server.start()), 'base'
        )
        self.sensor.expect_by(lambda: model_of(self.tips(), self.config))
        self.sensor.open()
        self.count = 0

    def tips(self):
        return bent() if self.still else bent((0.3 + 0.004 * self.count, -0.2))

    def expose(self):
        self.count += 1
        tips = self.tips()
        self.server.expose(tips, centreline(tips), time.time_ns())
        return self.sensor.read(0.1)

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


@pytest.fixture
def disks():
    made = Bench(disk_config(), still=False)
    yield made
    made.close()


def codes(health):
    return [problem.code for problem in health.problems]


def complete(seen, health):
    return any(len(sighting.points) == 4 for sighting in seen)


def test_points_match_the_true_markers(bench):
    seen, health = bench.until(complete)
    truth = bench.server.markers(bent())
    for point in seen[-1].points:
        assert np.linalg.norm(point.position - truth[point.name]) < 1e-3
        assert 0.0 < np.sqrt(np.linalg.eigvalsh(point.covariance).max()) < 1e-3
    assert seen[-1].frame_id == 'base'
    assert health.connected
    assert health.seen == tuple(NAMES)


def test_view_of_the_cameras_is_saved_or_the_reason_is_reported(bench, tmp_path):
    bench.until(complete)
    image = tmp_path / 'seen.png'
    assert save_view(bench.sensor, 'stereo_cameras', image).ok
    assert image.read_bytes().startswith(b'\x89PNG')
    finding = save_view(bench.sensor, 'stereo_cameras', tmp_path / 'missing' / 'seen.png')
    assert not finding.ok
    assert finding.text.endswith('seen.png: cannot be written (No such file or directory)')


@pytest.mark.parametrize('side', ['left', 'right'])
def test_unplugged_camera_is_named_and_reconnects_by_itself(bench, side):
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
def test_camera_fault_is_reported_with_advice(bench, fault, code):
    bench.until(complete)
    bench.server.inject(fault)
    _, health = bench.until(lambda seen, health: code in codes(health))
    assert all(problem.advice for problem in health.problems)


def test_two_simultaneous_camera_faults_are_both_reported(bench):
    bench.until(complete)
    for side in ('left', 'right'):
        bench.server.inject(f'unplug {side}')
    _, health = bench.until(lambda seen, health: len(health.problems) > 1)
    told = {(p.code, p.subject) for p in health.problems}
    assert told == {('no-camera', 'left camera'), ('no-camera', 'right camera')}
    assert bench.server.report()['fault'] == 'unplug left, unplug right'
    bench.server.inject('mend')
    bench.until(lambda seen, health: complete(seen, health) and health.connected)


@pytest.mark.parametrize('rate_hz', [20.0, 60.0, 100.0])
def test_images_of_a_late_camera_are_not_paired(rate_hz):
    server = a_server(a_config(rate_hz=rate_hz))
    server.inject('late')
    pairs = PairByStamp(0.004)
    for k in range(20):
        exposed_ns = round(1e9 * k / rate_hz)
        for side in ('left', 'right'):
            assert pairs.push(side, server.stamp_ns(side, exposed_ns), k) is None


class AtRate:
    """An image source that gives uniform images at a rate, on the clock of the test."""

    lens = None

    def __init__(self, clock, size, rate_hz):
        self.clock, self.size, self.rate_hz, self.next_s = clock, size, rate_hz, 0.0

    def open(self):
        self.next_s = self.clock.now_s()

    def close(self):
        pass

    def read(self, timeout_s):
        if self.clock.now_s() < self.next_s:
            return None
        stamp_ns, self.next_s = round(1e9 * self.next_s), self.next_s + 1.0 / self.rate_hz
        width, height = self.size
        return Frame(stamp_ns, np.full((height, width), stamp_ns % 97, dtype=np.uint8))

    def problem(self):
        return ''

    def ended(self):
        return False


@pytest.mark.parametrize(('rate_hz', 'told'), [(10.0, ()), (5.0, ('slow',))])
def test_cameras_below_the_expected_rate_are_reported_as_slow(tmp_path, rate_hz, told):
    cameras = cameras_around(0.3)
    write_calibration(tmp_path / 'cameras.yaml', calibration_of(cameras))
    config = a_config(base_calibration=str(tmp_path / 'cameras.yaml'), rate_hz=10.0, timeout_s=1.0)
    clock = ManualClock()
    sources = {side: AtRate(clock, cameras.left.size, rate_hz) for side in ('left', 'right')}
    sensor = StereoCameraSensor(config, 'base', clock, sources)
    sensor.open()
    for _ in range(35):
        sensor.read(0.0)
        clock.sleep(0.1)
    slow = [p for p in sensor.health().problems if p.code == 'slow']
    assert tuple(p.code for p in slow) == told
    assert all('5 pairs of images per second arrive (expected 10)' in p.text for p in slow)
    sensor.close()


def test_grey_images_of_coloured_markers_are_reported_and_left_out(tmp_path):
    cameras = cameras_around(0.3)
    write_calibration(tmp_path / 'cameras.yaml', calibration_of(cameras))
    sources = {side: PushedFrames(side) for side in ('left', 'right')}
    config = a_config(
        base_calibration=str(tmp_path / 'cameras.yaml'),
        markers={'kind': 'colour', 'hue_deg': (340.0, 20.0)},
    )
    sensor = StereoCameraSensor(config, 'base', ManualClock(), sources)
    sensor.open()
    for source in sources.values():
        source.push(Frame(33_000_000, np.zeros(cameras.left.size[::-1], np.uint8)))
    assert sensor.read(0.0) == []
    assert codes(sensor.health()) == ['no-colour', 'no-colour']
    sensor.close()


@pytest.mark.parametrize('first', ['left', 'right'])
def test_pair_is_seen_as_soon_as_its_second_image_arrives(tmp_path, first):
    cameras = cameras_around(0.3)
    write_calibration(tmp_path / 'cameras.yaml', calibration_of(cameras))
    config = a_config(base_calibration=str(tmp_path / 'cameras.yaml'))
    clock = ManualClock()
    sources = {side: PushedFrames(side, clock) for side in ('left', 'right')}
    sensor = StereoCameraSensor(config, 'base', clock, sources)
    sensor.open()
    width, height = cameras.left.size
    rng = np.random.default_rng(0)
    for k in range(1, 4):
        for side in sorted(sources, key=lambda side: side != first):
            image = rng.integers(0, 40, (height, width), dtype=np.uint8)
            sources[side].push(Frame(k * 20_000_000, image))
            began_s = clock.now_s()
            seen = sensor.read(0.05)
            assert bool(seen) == (side != first)
            assert not seen or clock.now_s() == began_s
    sensor.close()


def test_cameras_are_not_connected_before_their_first_pair(tmp_path):
    cameras = cameras_around(0.3)
    write_calibration(tmp_path / 'cameras.yaml', calibration_of(cameras))
    sources = {side: PushedFrames(side) for side in ('left', 'right')}
    config = a_config(base_calibration=str(tmp_path / 'cameras.yaml'))
    sensor = StereoCameraSensor(config, 'base', ManualClock(), sources)
    sensor.open()
    width, height = cameras.left.size
    noise = np.random.default_rng(0).integers(0, 9, (2, height, width), dtype=np.uint8)
    for side, image, connected in (('left', noise[0], False), ('right', noise[1], True)):
        assert not sensor.health().connected
        assert sensor.health().problems == ()
        sources[side].push(Frame(100_000_000, image))
        sensor.read(0.0)
        assert sensor.health().connected is connected
    sensor.close()


@pytest.mark.parametrize('stuck', [('left',), ('left', 'right')])
def test_images_without_time_stamps_are_reported_by_camera(tmp_path, stuck):
    """Many a ROS driver leaves the stamp 0: advice on triggers does not help."""
    cameras = cameras_around(0.3)
    write_calibration(tmp_path / 'cameras.yaml', calibration_of(cameras))
    sources = {side: PushedFrames(side) for side in ('left', 'right')}
    clock = ManualClock()
    config = a_config(base_calibration=str(tmp_path / 'cameras.yaml'), timeout_s=1.0)
    sensor = StereoCameraSensor(config, 'base', clock, sources)
    sensor.open()
    width, height = cameras.left.size
    rng = np.random.default_rng(0)
    for k in range(1, 20):
        for side, source in sources.items():
            noise = rng.integers(0, 9, (height, width), dtype=np.uint8)
            source.push(Frame(0 if side in stuck else k * 100_000_000, noise))
        sensor.read(0.0)
        clock.sleep(0.1)
    told = [(p.code, p.subject) for p in sensor.health().problems[: len(stuck)]]
    assert told == [('no-stamp', f'{side} camera') for side in stuck]
    assert 'time stamp, 0.000 s, does not advance' in sensor.health().problems[0].text
    sensor.close()


@pytest.mark.parametrize('level', [0, 255])
def test_black_or_white_images_are_not_reported_as_frozen(tmp_path, level):
    cameras = cameras_around(0.3)
    write_calibration(tmp_path / 'cameras.yaml', calibration_of(cameras))
    sources = {side: PushedFrames(side) for side in ('left', 'right')}
    config = a_config(base_calibration=str(tmp_path / 'cameras.yaml'))
    sensor = StereoCameraSensor(config, 'base', ManualClock(), sources)
    sensor.open()
    width, height = cameras.left.size
    for k in range(6):
        images = {side: np.full((height, width), level, np.uint8) for side in sources}
        images['right'][:, ::9] = k
        for side, source in sources.items():
            source.push(Frame(k * 33_000_000, images[side]))
        sensor.read(0.0)
    found = [(p.code, p.subject) for p in sensor.health().problems]
    assert ('no-marker', 'left camera') in found
    assert 'frozen' not in codes(sensor.health())


def both_disks(seen, health):
    return any(len(sighting.bodies) == 2 for sighting in seen)


def test_disks_are_measured_as_poses_with_covariance(disks):
    seen, health = disks.until(both_disks)
    for body, truth in zip(seen[-1].bodies, disks.tips()):
        assert np.linalg.norm(body.pose[:3, 3] - truth[:3, 3]) < 1.5e-3
        assert angle_between(body.pose[:3, :3], truth[:3, :3]) < 0.06
        assert 0.0 < np.sqrt(np.trace(body.covariance[:3, :3])) < 2e-3
    assert health.seen[:2] == SECTIONS
    assert {p.name for p in seen[-1].points} <= {f'{s}:{k}' for s in SECTIONS for k in range(1, 5)}


@pytest.mark.parametrize(
    ('fault', 'code', 'subject'),
    [
        ('unplug right', 'no-camera', 'right camera'),
        ('freeze left', 'frozen', 'left camera'),
        ('freeze right', 'frozen', 'right camera'),
        ('late', 'not-together', 'cameras'),
        ('swap', 'swapped', 'cameras'),
        ('dark', 'no-marker', 'left camera'),
        ('hide', 'marker-missing', 'second'),
        ('reflect', 'reflection', 'cameras'),
    ],
)
def test_camera_fault_is_reported_and_gives_no_wrong_pose(disks, fault, code, subject):
    disks.until(both_disks)
    disks.server.inject(fault)
    named = False
    for _ in range(TRIES):
        path = [disks.tips()]
        for sighting in disks.expose():
            path.append(disks.tips())
            for body in sighting.bodies:
                # An image in transit may show the exposure before.
                truths = [tips[SECTIONS.index(body.name)] for tips in path]
                away = [np.linalg.norm(body.pose[:3, 3] - X[:3, 3]) for X in truths]
                assert min(away) < 3e-3
        problems = disks.sensor.health().problems
        # A frozen camera gives no pairs either, but its cause is not triggers or clocks.
        assert code == 'not-together' or 'not-together' not in [p.code for p in problems]
        named |= any((p.code, p.subject) == (code, subject) and p.advice for p in problems)
        lasting = code == 'frozen' and disks.sensor.health().connected
        if named and not lasting:
            break
    assert named, f'{fault}: {problems}'
    disks.server.inject('mend')
    disks.until(lambda seen, health: both_disks(seen, health) and health.connected)


def test_calibration_file_of_emulated_cameras_is_refused(tmp_path):
    made_up = calibration_of(cameras_around(0.3)).model_copy(update={'made_up': True})
    write_calibration(tmp_path / 'cameras.yaml', made_up)
    config = a_config(base_calibration=str(tmp_path / 'cameras.yaml'))
    with pytest.raises(SensorError, match='run softarm calibrate stereo'):
        StereoCameraSensor(config, 'base').open()


def test_lost_images_omit_sightings_and_keep_stamps_in_order(bench):
    bench.until(complete)
    bench.server.inject('drop')
    stamps = []
    for _ in range(40):
        for sighting in bench.expose():
            assert {p.name for p in sighting.points} <= set(NAMES)
            stamps.append(sighting.stamp_ns)
    assert 0 < len(stamps) < 40
    assert stamps == sorted(set(stamps))


def test_missing_calibration_raises_at_open():
    with pytest.raises(SensorError, match=r'cameras.yaml.*softarm calibrate'):
        StereoCameraSensor(a_config(), 'base').open()


class Hanging:
    """The part of a plant that emulated cameras use: an arm at rest."""

    def true_section_tips(self):
        return bent()

    def true_centerline(self, n):
        return centreline(bent())[:n]


def test_stereo_part_builds_emulated_cameras_and_their_driver(tmp_path):
    part, file = find_part('sensors', 'stereo_cameras'), tmp_path / 'cameras.yaml'
    made_up = calibration_of(cameras_around(LENGTH_M)).model_copy(update={'made_up': True})
    write_calibration(file, made_up)
    config = disk_config().model_copy(update={'base_calibration': str(file)})
    cameras = part.builder('emulated')(config, SECTIONS, 3)
    try:
        sensor = part.builder('driver')(config.model_copy(update=cameras.start()), 'base')
        sensor.expect_by(lambda: model_of(bent(), config))
        sensor.open()
        time_s, seen = 0.0, []
        for _ in range(TRIES):
            time_s += 1.0 / 30.0
            cameras.look(Hanging(), time_s)
            seen = [s for s in sensor.read(0.1) if s.bodies]
            if seen:
                break
        sensor.close()
        assert np.linalg.norm(seen[0].bodies[0].pose[:3, 3] - bent()[0][:3, 3]) < 2e-3
        with pytest.raises(ValueError, match='known: unplug left'):
            cameras.inject('break')
        assert int(cameras.report()['cameras_exposures']) > 0
    finally:
        cameras.close()


# -- pairing


def test_images_are_paired_by_nearest_stamp_and_used_once():
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
    # After a clock is set back by an hour, pairing starts anew.
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
def test_image_source_is_chosen_by_its_name(text, kind):
    assert type(open_source(text)).__name__ == kind


def test_video_and_image_folder_are_read_to_their_end(tmp_path):
    import cv2

    video = tmp_path / 'run.avi'
    writer = cv2.VideoWriter(str(video), cv2.VideoWriter_fourcc(*'MJPG'), 20.0, (64, 48))
    if not writer.isOpened():
        pytest.skip('this OpenCV writes no video')
    for k in range(9):
        writer.write(np.full((48, 64, 3), 25 * k, dtype=np.uint8))
        cv2.imwrite(str(tmp_path / f'image_{k}.png'), np.full((48, 64), 25 * k, dtype=np.uint8))
    writer.release()
    for source, why in (
        (open_source(str(video)), 'the video has ended'),
        (FileFrames(str(tmp_path), 20.0), 'all files are read'),
    ):
        source.open()
        frames = []
        while not source.ended():
            frame = source.read(1.0)
            if frame is not None:
                frames.append(frame)
        assert source.problem() == why
        source.close()
        levels = [float(f.image.mean()) for f in frames]
        assert levels == pytest.approx([25.0 * k for k in range(9)], abs=3.0)
        assert [f.stamp_ns for f in frames] == sorted({f.stamp_ns for f in frames})


def test_missing_or_invalid_image_files_are_left_out_and_later_stamps_kept(tmp_path):
    import cv2

    for k in range(4):
        cv2.imwrite(str(tmp_path / f'image_{k}.png'), np.zeros((48, 64), dtype=np.uint8))
    (tmp_path / 'image_1.png').write_bytes(b'no image')
    source = FileFrames(str(tmp_path), 20.0)
    source.open()
    (tmp_path / 'image_2.png').unlink()
    frames = [source.read(0.0) for _ in range(4)]
    assert [frame and frame.stamp_ns for frame in frames] == [0, None, None, 150_000_000]
    assert re.fullmatch(r'all files are read; left out: .*image_1.png: not an.*', source.problem())


def test_image_files_are_paired_by_number_where_one_is_missing(tmp_path):
    """Pairs of left n and right n+1 would show a moving arm at a wrong place."""
    import cv2

    config = a_config(
        left=str(tmp_path / 'left_*.png'),
        right=str(tmp_path / 'right_*.png'),
        base_calibration=str(tmp_path / 'cameras.yaml'),
    )
    cameras = cameras_around(0.3)
    write_calibration(tmp_path / 'cameras.yaml', calibration_of(cameras))
    server = StereoCameraServer(config, SECTIONS, 1, cameras)
    missing = {'left': {7}, 'right': {3, 4}}
    tips = [bent((0.3 + 0.02 * k, -0.2)) for k in range(12)]
    for k in range(12):
        for side, image in server.draw(tips[k], centreline(tips[k])).items():
            if k not in missing[side]:
                cv2.imwrite(str(tmp_path / f'{side}_{k}.png'), image)
    sensor = StereoCameraSensor(config, 'base', ManualClock())
    exposure = 0
    sensor.expect_by(lambda: model_of(tips[exposure], config))
    sensor.open()
    seen = {}
    for _ in range(12):
        for sighting in sensor.read(0.0):
            exposure = round(1e-9 * sighting.stamp_ns * config.rate_hz)
            seen[exposure] = sighting
    assert set(seen) == set(range(12)) - {3, 4, 7}
    for k, sighting in seen.items():
        truth = server.markers(tips[k])
        for point in sighting.points:
            assert np.linalg.norm(point.position - truth[point.name]) < 1e-3
    assert len(seen[11].points) == 4
    assert sensor.health().values['unpaired left'] == '2'
    sensor.close()


def answer_once(status, kind, body):
    """Return a server that gives this answer to every request."""

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


def frame_of_stream(body):
    """Return the first frame that an MJPEG source reads from the body of an answer."""
    server = answer_once(200, MULTIPART, body)
    source = MjpegFrames(f'http://127.0.0.1:{server.server_address[1]}/')
    source.open()
    found = None
    for _ in range(TRIES):
        found = found or source.read(0.02)
    source.close()
    return found


def huge_jpeg():
    """Return a JPEG whose damaged header states 65500 x 65500 pixels: OpenCV raises an error."""
    cv2 = pytest.importorskip('cv2')
    data = bytearray(cv2.imencode('.jpg', np.zeros((48, 64), np.uint8))[1].tobytes())
    at = data.index(b'\xff\xc0') + 5
    data[at : at + 4] = (65_500).to_bytes(2, 'big') * 2
    return bytes(data)


def test_image_after_one_with_a_damaged_header_is_read():
    cv2 = pytest.importorskip('cv2')
    good = cv2.imencode('.pgm', np.full((40, 48), 7, np.uint8))[1].tobytes()
    body = b''.join(
        f'--b\r\nContent-Length: {len(data)}\r\n\r\n'.encode() + data + b'\r\n'
        for data in (huge_jpeg(), good)
    )
    found = frame_of_stream(body)
    assert found is not None and found.image.shape == (40, 48)


def test_file_with_a_damaged_header_is_no_image(tmp_path):
    path = tmp_path / 'huge.jpg'
    path.write_bytes(huge_jpeg())
    with pytest.raises(CameraError, match=r'huge\.jpg: not an image that OpenCV reads'):
        read_image(path)


@pytest.mark.parametrize(('suffix', 'off'), [('.jpg', 12), ('.pgm', 0)])
def test_mjpeg_source_reads_compressed_and_raw_images(suffix, off):
    cv2 = pytest.importorskip('cv2')
    sent = np.tile(np.arange(0, 240, 5, dtype=np.uint8), (40, 1))
    data = cv2.imencode(suffix, sent)[1].tobytes()
    head = f'--b\r\nContent-Length: {len(data)}\r\nX-Timestamp: 1700000000.25\r\n\r\n'
    found = frame_of_stream(head.encode() + data + b'\r\n')
    assert found.stamp_ns == 1_700_000_000_250_000_000
    assert np.abs(found.image.astype(int) - sent.astype(int)).max() <= off


@pytest.mark.parametrize(
    'head',
    [
        b'\r\n\r\n--b\r\nContent-Length: 20\r\nX-Timestamp: 1700000000.5\r\n\r\n',
        b'--b\nContent-Length: 20\nX-Timestamp: 1700000000.5\n\n',
        b'--b\nContent-Length: 20\nX-Timestamp: 1700000000.5\r\n\r\n',
        b'--b\r\n\r\ncontent-length:20\r\nx-timestamp:1700000000.5\r\nother\r\n\r\n',
        b'--b\r\nContent-Length: 20\r\nX-Timestamp: 1700000000.5\r\n'
        + b'X-Long: %s\r\n\r\n' % (b'12 ' * 4000),
    ],
)
def test_header_of_a_part_ends_at_its_first_blank_line(head):
    pixels = b'\r\n\r\n\n\n\r\n'  # an image may contain what ends a header
    found = frame_of_stream(head + b'P5 3 3 255\n' + pixels + b'x')
    assert found.stamp_ns == 1_700_000_000_500_000_000
    assert found.image.tobytes() == pixels + b'x'


@pytest.mark.parametrize(
    ('status', 'kind', 'body', 'says'),
    [
        (404, 'text/html', b'no', 'answered 404'),
        (200, 'text/html', b'a page', 'expected a stream'),
        (200, MULTIPART, b'--b\r\nContent-Length: 99999999999\r\n\r\n', 'Content-Length'),
        (200, MULTIPART, b'--b\r\nContent-Length: 10\r\n\r\nabc', 'ended within an image'),
        (200, MULTIPART, b'--b\r\nContent-Length: 3\r\n\r\nabc', 'ended after 3 bytes'),
    ],
)
def test_wrong_answer_of_an_address_gives_no_image_and_is_reported(status, kind, body, says):
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


def test_source_of_a_silent_camera_closes_within_two_seconds():
    silent = socket.create_server(('127.0.0.1', 0))
    source = MjpegFrames(f'http://127.0.0.1:{silent.getsockname()[1]}/', timeout_s=30.0)
    source.open()
    link, _ = silent.accept()
    with link, silent:
        link.recv(4096)  # the request; no image follows the header
        link.sendall(f'HTTP/1.1 200 OK\r\nContent-Type: {MULTIPART}\r\n\r\n'.encode())
        began = time.monotonic()
        source.close()
        assert time.monotonic() - began < 2.0


def test_end_of_the_process_of_emulated_cameras_is_named():
    tips = bent()
    line = centreline(tips)[:25]
    plant = SimpleNamespace(true_section_tips=lambda: tips, true_centerline=lambda _: line)
    others = psutil.Process().children()
    cameras = CameraProcess(a_config(), SECTIONS, seed=1)
    cameras.start()
    cameras.look(plant, 0.0)
    (process,) = (child for child in psutil.Process().children() if child not in others)
    process.kill()
    with pytest.raises(EmulationError, match='their process has ended'):
        for k in range(1, 100_000):
            cameras.look(plant, float(k))
    cameras.close()
