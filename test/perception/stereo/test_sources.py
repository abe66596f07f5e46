"""Sources of images that OpenCV reads."""

import cv2
import pytest

from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.sources import open_source


def test_a_pipeline_is_read_or_refused_because_this_opencv_has_no_gstreamer():
    """The message was "no permission (group video)", after ten seconds; pip's OpenCV has none."""
    source = open_source('videotestsrc num-buffers=5 ! videoconvert ! appsink')
    try:
        if cv2.videoio_registry.hasBackend(cv2.CAP_GSTREAMER):
            source.open()
            frame = source.read(30.0)
            assert frame is not None, source.problem()
            assert frame.image.ndim in (2, 3)
        else:
            with pytest.raises(CameraError, match='has no GStreamer'):
                source.open()
    finally:
        source.close()
