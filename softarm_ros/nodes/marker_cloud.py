"""Labelled markers as a PointCloud2, which rviz shows and an estimator reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sensor_msgs.msg import PointCloud2, PointField

from softarm_ros.geometry.sightings import PointSighting, Sighting
from softarm_ros.nodes.conversions import time_message

# One point: position [m], number of the marker, and upper triangle of the covariance [m2].
_SPREAD = ('xx', 'xy', 'xz', 'yy', 'yz', 'zz')
_NAMES = ('x', 'y', 'z', 'marker', *_SPREAD)
_SIZE = 4  # bytes of each field
_ROW = np.dtype([(name, '<u4' if name == 'marker' else '<f4') for name in _NAMES])
_FIELDS = tuple(
    (name, _SIZE * k, PointField.UINT32 if name == 'marker' else PointField.FLOAT32)
    for k, name in enumerate(_NAMES)
)
_UPPER = np.triu_indices(3)


def marker_cloud(sighting: Sighting, names: Sequence[str]) -> PointCloud2:
    """
    Return the points of a sighting; the field `marker` is the marker's index in `names`.

    Points with other names are left out; an unknown covariance is NaN.
    """
    known = [point for point in sighting.points if point.name in names]
    rows = np.zeros(len(known), dtype=_ROW)
    for row, point in zip(rows, known):
        row['x'], row['y'], row['z'] = point.position
        row['marker'] = names.index(point.name)
        spread = np.full((3, 3), np.nan) if point.covariance is None else point.covariance
        for name, value in zip(_SPREAD, spread[_UPPER]):
            row[name] = value
    message = PointCloud2()
    message.header.stamp = time_message(sighting.stamp_ns)
    message.header.frame_id = sighting.frame_id
    message.height, message.width = 1, len(rows)
    message.fields = [
        PointField(name=name, offset=offset, datatype=kind, count=1)
        for name, offset, kind in _FIELDS
    ]
    message.point_step = _ROW.itemsize
    message.row_step = _ROW.itemsize * len(rows)
    message.is_dense = True
    message.data = rows.tobytes()
    return message


def sighting_of_cloud(message: Any, names: Sequence[str]) -> Sighting:
    """
    Return the sighting in a message that `marker_cloud` made.

    Raises
    ------
    ValueError
        If the message has other fields, is cut off, or has a marker number beyond `names`.

    """
    fields = [(field.name, field.offset, field.datatype) for field in message.fields]
    count = int(message.width) * int(message.height)
    data = bytes(message.data)
    if fields != list(_FIELDS) or message.is_bigendian or len(data) != count * _ROW.itemsize:
        raise ValueError(
            f'points with fields {[field[0] for field in fields]}, {len(data)} bytes: expected '
            f'{list(_NAMES)}, {count * _ROW.itemsize} bytes'
        )
    points = []
    for row in np.frombuffer(data, dtype=_ROW):
        if row['marker'] >= len(names):
            raise ValueError(f'marker = {row["marker"]}: expected less than {len(names)}')
        spread = np.zeros((3, 3))
        spread[_UPPER] = [row[name] for name in _SPREAD]
        spread = spread + np.triu(spread, 1).T
        position = np.array([row['x'], row['y'], row['z']], dtype=np.float64)
        covariance = spread if np.isfinite(spread).all() else None
        points.append(PointSighting(names[int(row['marker'])], position, covariance))
    stamp = message.header.stamp
    stamp_ns = int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)
    return Sighting(stamp_ns, message.header.frame_id, points=tuple(points))
