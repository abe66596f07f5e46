"""Images and calibrations in ROS messages."""

import struct
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

cv2 = pytest.importorskip('cv2', reason='opencv-python-headless is not installed')
messages = pytest.importorskip('sensor_msgs.msg', reason='ROS 2 is not installed')

from arm_cases import a_config
from stereo_cases import a_camera

from softarm_ros.emulation.stereo_camera_server import calibration_of, cameras_around
from softarm_ros.nodes.camera_topics import (
    camera_of_info,
    frame_of_compressed,
    frame_of_image,
    info_topic,
    subscribe,
)
from softarm_ros.perception.stereo.calibration_file import write_calibration
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.frame_source import PushedFrames
from softarm_ros.perception.stereo.images import read_image
from softarm_ros.perception.stereo.sensor import StereoCameraSensor

pytestmark = pytest.mark.ros
PICTURE = np.random.default_rng(0).integers(0, 255, (6, 8, 3)).astype(np.uint8)


def message(encoding, rows, padding=0, **more):
    rows = np.pad(rows.reshape(6, -1), ((0, 0), (0, padding)))
    out = messages.Image(
        height=6, width=8, encoding=encoding, step=rows.shape[1], data=rows.tobytes(), **more
    )
    out.header.stamp.sec, out.header.stamp.nanosec = 12, 345
    return out


@pytest.mark.parametrize(
    ('encoding', 'sent', 'wanted'),
    [
        ('bgr8', PICTURE, PICTURE),
        ('rgb8', PICTURE[..., ::-1], PICTURE),
        ('rgba8', np.dstack([PICTURE[..., ::-1], PICTURE[..., 0]]), PICTURE),
        ('mono8', PICTURE[..., 0], PICTURE[..., 0]),
        ('mono16', (PICTURE[..., 0].astype('<u2') << 8).view(np.uint8), PICTURE[..., 0]),
    ],
)
@pytest.mark.parametrize('padding', [0, 5])
def test_image_message_of_each_encoding_is_read(encoding, sent, wanted, padding):
    frame = frame_of_image(message(encoding, np.ascontiguousarray(sent), padding))
    assert np.array_equal(frame.image, wanted)
    assert frame.stamp_ns == 12_000_000_345


def test_compressed_image_is_read_and_other_data_is_refused():
    data = cv2.imencode('.png', PICTURE)[1].tobytes()
    assert np.array_equal(frame_of_compressed(messages.CompressedImage(data=data)).image, PICTURE)
    with pytest.raises(CameraError, match='are no image'):
        frame_of_compressed(messages.CompressedImage(data=b'abc', format='jpeg'))


def test_image_is_not_turned_by_exif_whether_from_a_file_or_a_topic(tmp_path):
    """One camera's files calibrate it, and its topic measures: both must be the same way up."""
    cv2 = pytest.importorskip('cv2')
    picture = np.zeros((48, 64, 3), np.uint8)
    picture[:12, :16] = 255
    plain = cv2.imencode('.jpg', picture)[1].tobytes()
    entry = struct.pack('<HHIHH', 0x0112, 3, 1, 3, 0)  # orientation 3: upside down
    tiff = b'II*\0' + struct.pack('<IH', 8, 1) + entry + bytes(4)
    exif = b'Exif\0\0' + tiff
    turned = plain[:2] + b'\xff\xe1' + struct.pack('>H', len(exif) + 2) + exif + plain[2:]
    raw = np.frombuffer(turned, np.uint8)
    upside_down = cv2.imdecode(raw, cv2.IMREAD_COLOR)
    assert upside_down[-1, -1, 0] > 200 > upside_down[0, 0, 0]  # OpenCV reads this EXIF
    (tmp_path / 'a.jpg').write_bytes(turned)
    sent = frame_of_compressed(messages.CompressedImage(data=turned, format='jpeg')).image
    np.testing.assert_array_equal(sent, read_image(tmp_path / 'a.jpg'))
    assert sent[0, 0, 0] > 200


def test_image_of_unknown_encoding_or_wrong_size_is_refused():
    with pytest.raises(CameraError, match=r"encoding = 'yuv422'"):
        frame_of_image(message('yuv422', PICTURE))
    short = message('bgr8', PICTURE)
    short.height = 7
    with pytest.raises(CameraError, match='expected 8 x 7 of bgr8'):
        frame_of_image(short)


def info_of(camera, **changes):
    width, height = camera.size
    return messages.CameraInfo(**{
        'width': width,
        'height': height,
        'distortion_model': 'plumb_bob',
        'k': camera.matrix.ravel().tolist(),
        'd': list(camera.distortion),
    } | changes)  # fmt: skip


def test_camera_info_is_read_and_an_unknown_distortion_model_is_refused():
    camera = a_camera()
    read = camera_of_info(info_of(camera), 'left')
    point = [[0.1, -0.05, 0.6]]
    assert read.project(point) == pytest.approx(camera.project(point))
    assert camera.apart_px(read) < 1e-9
    with pytest.raises(CameraError, match='equidistant'):
        camera_of_info(info_of(camera, distortion_model='equidistant'), 'left')


@pytest.mark.parametrize('binning', [1, 2])
@pytest.mark.parametrize('corner', [None, (40, 24)])
def test_camera_info_of_a_part_of_the_sensor_describes_the_sent_images(binning, corner):
    """Checked against OpenCV: its projection, cropped and with pixels joined."""
    camera = a_camera()
    width, height = camera.size
    x, y = corner or (0, 0)
    part = messages.RegionOfInterest()
    if corner is not None:
        part = messages.RegionOfInterest(
            x_offset=x, y_offset=y, width=width - 2 * x, height=height - 2 * y
        )
    read = camera_of_info(info_of(camera, roi=part, binning_x=binning, binning_y=binning), 'left')
    points = np.array([[0.1, -0.05, 0.6], [-0.2, 0.1, 0.9]])
    cv2 = pytest.importorskip('cv2')
    whole, _ = cv2.projectPoints(
        points, np.zeros(3), np.zeros(3), camera.matrix, np.ravel(camera.distortion)
    )
    sent = (whole.reshape(-1, 2) + 0.5 - (x, y)) / binning - 0.5
    assert read.project(points) == pytest.approx(sent, abs=1e-9)
    assert read.size == ((width - 2 * x) // binning, (height - 2 * y) // binning)


@pytest.mark.parametrize('images', ['/left/image_raw', '/left/image_raw/compressed'])
def test_camera_info_topic_is_beside_the_image_topic(images):
    assert info_topic(images) == '/left/camera_info'


def test_reason_of_unreadable_images_is_given_until_one_is_read():
    heard = {}
    node = SimpleNamespace(
        create_subscription=lambda _, topic, take, __: heard.update({topic: take}),
        get_logger=lambda: SimpleNamespace(error=lambda *_, **__: None),
    )
    frames = subscribe(node, '/left/image_raw', compressed=False)
    heard['/left/image_raw'](message('bayer_rggb8', PICTURE[..., 0]))
    assert frames.read(0.0) is None
    assert frames.problem().startswith("encoding = 'bayer_rggb8': expected one of mono8")
    heard['/left/image_raw'](message('mono8', PICTURE[..., 0]))
    assert frames.read(0.0) is not None
    assert frames.problem() == ''


@pytest.fixture
def cameras(tmp_path):
    """Yield the left camera, and a function that sends a CameraInfo and returns the problem."""
    pair = cameras_around(0.3)
    write_calibration(tmp_path / 'cameras.yaml', calibration_of(pair))
    config = a_config(
        left='ros:/left/image_raw',
        right='ros:/right/image_raw',
        base_calibration=str(tmp_path / 'cameras.yaml'),
    )
    heard = {}

    def create_subscription(_, topic, take, __):
        heard[topic] = take

    node = SimpleNamespace(create_subscription=create_subscription)
    sensor = StereoCameraSensor(config, 'base')
    for side, topic in sensor.topics().items():
        sensor.take_from(side, subscribe(node, topic, compressed=False))
    sensor.open()
    width, height = pair.left.size
    image = messages.Image(
        height=height, width=width, encoding='mono8', step=width, data=bytes(width * height)
    )

    def stated(info):
        heard['/left/camera_info'](info)
        heard['/left/image_raw'](image)
        sensor.read(0.0)
        return {problem.code: problem for problem in sensor.health().problems}.get('other-lens')

    yield pair.left, stated
    sensor.close()


def test_images_in_the_lower_bits_of_mono16_are_reported_as_too_dark(tmp_path):
    """Only their upper 8 bits are used: of a camera of 10 bits, white becomes 3 of 255."""
    pair = cameras_around(0.3)
    write_calibration(tmp_path / 'cameras.yaml', calibration_of(pair))
    config = a_config(base_calibration=str(tmp_path / 'cameras.yaml'))
    sources = {side: PushedFrames(side) for side in ('left', 'right')}
    sensor = StereoCameraSensor(config, 'base', sources=sources)
    sensor.open()
    width, height = pair.left.size
    picture = np.full((height, width), 80, dtype=np.uint16)
    picture[100:112, 200:212] = 1023
    sent = messages.Image(
        height=height, width=width, encoding='mono16', step=2 * width, data=picture.tobytes()
    )
    sent.header.stamp.sec = 12
    for source in sources.values():
        source.push(frame_of_image(sent))
    sensor.read(0.0)
    told = [p.text for p in sensor.health().problems if p.code == 'no-marker']
    sensor.close()
    assert len(told) == 2
    assert all('no pixel is brighter than 3 of 255; of an image of 16 bits' in t for t in told)


def binned(camera):
    """Return the CameraInfo of a sensor with twice the pixels, of which four are sent as one."""
    matrix = camera.matrix.copy()
    matrix[:2, 2] += 0.5
    matrix[:2] *= 2.0
    matrix[:2, 2] -= 0.5
    width, height = camera.size
    return info_of(
        replace(camera, size=(2 * width, 2 * height), matrix=matrix), binning_x=2, binning_y=2
    )


@pytest.mark.parametrize('info', [info_of, binned])
def test_camera_info_that_contradicts_the_calibration_is_reported(info, cameras):
    left, stated = cameras
    assert stated(info_of(left, k=[0.0] * 9)) is None  # a driver that is not calibrated
    assert stated(info(left)) is None
    longer = replace(left, matrix=left.matrix * [[1.05, 1, 1], [1, 1.05, 1], [1, 1, 1]])
    problem = stated(info(longer))
    assert problem.subject == 'left camera'
    apart_px = left.apart_px(longer)
    assert apart_px > 0.01 * left.size[0]
    most_px = f'{0.01 * left.size[0]:.1f}'
    assert f'up to {apart_px:.1f} px' in problem.text
    assert problem.text.endswith(f'expected at most {most_px}')
