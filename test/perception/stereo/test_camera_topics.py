"""Images in ROS messages."""

import numpy as np
import pytest

cv2 = pytest.importorskip('cv2', reason='opencv-python-headless is not installed')
messages = pytest.importorskip('sensor_msgs.msg', reason='ROS 2 is not installed')

from softarm_ros.nodes.camera_topics import frame_of_compressed, frame_of_image
from softarm_ros.perception.stereo.camera import CameraError

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
def test_an_image_of_any_encoding(encoding, sent, wanted, padding):
    frame = frame_of_image(message(encoding, np.ascontiguousarray(sent), padding))
    assert np.array_equal(frame.image, wanted)
    assert frame.stamp_ns == 12_000_000_345


def test_a_compressed_image():
    data = cv2.imencode('.png', PICTURE)[1].tobytes()
    assert np.array_equal(frame_of_compressed(messages.CompressedImage(data=data)).image, PICTURE)
    with pytest.raises(CameraError, match='are no image'):
        frame_of_compressed(messages.CompressedImage(data=b'abc', format='jpeg'))


def test_what_is_no_image_is_named():
    with pytest.raises(CameraError, match=r"encoding = 'yuv422'"):
        frame_of_image(message('yuv422', PICTURE))
    short = message('bgr8', PICTURE)
    short.height = 7
    with pytest.raises(CameraError, match='expected 8 x 7 of bgr8'):
        frame_of_image(short)
