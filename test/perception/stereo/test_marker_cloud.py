"""Markers as a PointCloud2 and back."""

import numpy as np
import pytest

pytest.importorskip('sensor_msgs', reason='needs ROS 2 (sensor_msgs)')

from softarm_ros.geometry.sightings import PointSighting, Sighting
from softarm_ros.nodes.marker_cloud import marker_cloud, sighting_of_cloud

NAMES = ('middle:1', 'middle:2', 'tip:1')
SPREAD = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 2.0]]) * 1e-7


def test_marker_cloud_round_trip_keeps_names_positions_and_covariances():
    points = (
        PointSighting('tip:1', np.array([0.1, -0.2, 0.3]), SPREAD),
        PointSighting('middle:1', np.array([0.0, 0.01, 0.15])),
        PointSighting('stranger', np.zeros(3)),
    )
    message = marker_cloud(Sighting(1_700_000_000_123_456_789, 'arm/base', points=points), NAMES)
    assert (message.width, message.point_step) == (2, 40)
    assert [field.name for field in message.fields[:4]] == ['x', 'y', 'z', 'marker']
    back = sighting_of_cloud(message, NAMES)
    assert (back.stamp_ns, back.frame_id) == (1_700_000_000_123_456_789, 'arm/base')
    assert [point.name for point in back.points] == ['tip:1', 'middle:1']
    assert back.points[0].position == pytest.approx([0.1, -0.2, 0.3], abs=1e-7)
    assert back.points[0].covariance == pytest.approx(SPREAD, rel=1e-6)
    assert back.points[1].covariance is None


def test_invalid_marker_cloud_is_refused():
    point = PointSighting('tip:1', np.zeros(3))
    message = marker_cloud(Sighting(0, 'base', points=(point,)), NAMES)
    with pytest.raises(ValueError, match='marker = 2: expected less than 2'):
        sighting_of_cloud(message, NAMES[:2])
    message.data = message.data[:-4]
    with pytest.raises(ValueError, match='36 bytes: expected'):
        sighting_of_cloud(message, NAMES)
