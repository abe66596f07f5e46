"""Reads images and calibrations of cameras from topics of another ROS driver."""

from __future__ import annotations

from typing import Any

import numpy as np
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from softarm_ros.nodes.qos import MEASUREMENT
from softarm_ros.perception.stereo.camera import Camera, CameraError
from softarm_ros.perception.stereo.frame_source import Frame, PushedFrames
from softarm_ros.perception.stereo.images import decoded, opencv

# Encoding: number of channels, bytes per channel, and the indices of blue, green and red.
_ENCODINGS = {
    'mono8': (1, 1, None),
    '8UC1': (1, 1, None),
    'mono16': (1, 2, None),
    '16UC1': (1, 2, None),
    'bgr8': (3, 1, (0, 1, 2)),
    '8UC3': (3, 1, (0, 1, 2)),
    'rgb8': (3, 1, (2, 1, 0)),
    'bgra8': (4, 1, (0, 1, 2)),
    'rgba8': (4, 1, (2, 1, 0)),
}
_LENSES = ('plumb_bob', 'rational_polynomial')


def subscribe(node: Any, topic: str, *, compressed: bool) -> PushedFrames:
    """
    Return the images of a topic as a source for `StereoCameraSensor`.

    An image that cannot be read is left out; the log and the source's `problem` give the reason.
    The source takes its lens from the topic `camera_info` beside the images; drivers of
    uncalibrated cameras send zeros, which are ignored.
    """
    frames = PushedFrames(topic)

    def take(message: Any) -> None:
        try:
            frames.push(frame_of_compressed(message) if compressed else frame_of_image(message))
            frames.unreadable = ''
        except CameraError as error:
            frames.unreadable = str(error)
            node.get_logger().error(f'{topic}: {error}', throttle_duration_sec=2.0)

    info, told = info_topic(topic), None

    def take_info(message: CameraInfo) -> None:
        nonlocal told
        roi, binning = message.roi, (message.binning_x, message.binning_y)
        part = (roi.x_offset, roi.y_offset, roi.width, roi.height, *binning)
        says = (message.width, message.height, tuple(message.k), tuple(message.d), part)
        if says == told or not any(message.k):
            return
        told = says
        try:
            frames.lens = camera_of_info(message, info)
        except CameraError as error:
            node.get_logger().warning(str(error), once=True)

    node.create_subscription(CompressedImage if compressed else Image, topic, take, MEASUREMENT)
    node.create_subscription(CameraInfo, info, take_info, MEASUREMENT)
    return frames


def info_topic(topic: str) -> str:
    """Return the CameraInfo topic beside an image topic, as image_transport names it."""
    return f'{topic.removesuffix("/compressed").rpartition("/")[0]}/camera_info'


def frame_of_image(message: Any) -> Frame:
    """
    Return the frame of a sensor_msgs/Image.

    Raises
    ------
    CameraError
        If the encoding is not known, or the data are shorter than the image size requires.

    """
    if message.encoding not in _ENCODINGS:
        raise CameraError(
            f'encoding = {message.encoding!r}: expected one of {", ".join(_ENCODINGS)}'
        )
    channels, size, order = _ENCODINGS[message.encoding]
    height, width, step = int(message.height), int(message.width), int(message.step)
    used = width * channels * size
    data = np.frombuffer(bytes(message.data), dtype=np.uint8)
    if not (0 < used <= step and height > 0 and data.size >= height * step):
        raise CameraError(
            f'{data.size} bytes, step {step}: expected {width} x {height} of {message.encoding}'
        )
    rows = data[: height * step].reshape(height, step)[:, :used]
    if size == 2:  # keep the high byte of each pixel
        return Frame(_stamp_ns(message), rows[:, 0 if message.is_bigendian else 1 :: 2].copy())
    if order is None:
        return Frame(_stamp_ns(message), rows.copy())
    colours = rows.reshape(height, width, channels)[..., list(order)]
    return Frame(_stamp_ns(message), np.ascontiguousarray(colours))


def frame_of_compressed(message: Any) -> Frame:
    """Return the frame of a sensor_msgs/CompressedImage; CameraError if it cannot be decoded."""
    data = np.frombuffer(bytes(message.data), dtype=np.uint8)
    image = decoded(data, opencv().IMREAD_COLOR)
    if image is None:
        raise CameraError(f'{data.size} bytes of {message.format!r} are no image')
    return Frame(_stamp_ns(message), image)


def camera_of_info(message: CameraInfo, name: str) -> Camera:
    """
    Return the camera that a sensor_msgs/CameraInfo describes.

    Its numbers hold for all pixels of the sensor; the camera is that of the sent images, which may
    be a part of these (`roi`) with several pixels as one (`binning`).

    Raises
    ------
    CameraError
        If the camera is not calibrated, or this package does not support its distortion model.

    """
    if message.distortion_model not in _LENSES:
        raise CameraError(
            f'camera {name}: distortion_model = {message.distortion_model!r}: expected one of '
            f'{", ".join(_LENSES)}'
        )
    roi = message.roi
    whole = (roi.width or message.width, roi.height or message.height)
    binning = (message.binning_x or 1, message.binning_y or 1)
    matrix = np.array(message.k).reshape(3, 3)
    # A pixel's centre has a whole number, so the first pixel's edge is at -0.5.
    matrix[:2, 2] += 0.5 - np.array([roi.x_offset, roi.y_offset])
    matrix[:2] /= np.array(binning, dtype=np.float64)[:, None]
    matrix[:2, 2] -= 0.5
    size = (int(whole[0] // binning[0]), int(whole[1] // binning[1]))
    return Camera(name, size, matrix, np.array(message.d))


def _stamp_ns(message: Any) -> int:
    stamp = message.header.stamp
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)
