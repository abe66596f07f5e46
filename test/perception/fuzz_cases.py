"""Valid packets of each protocol, and functions that read corrupted ones as a sensor does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from softarm_ros.perception.captured import MAX_RANGE_M, CapturedFrame, CorruptFrameError

Case = tuple[Sequence[bytes], Callable[[bytes], str]]


def assert_sane(frame: CapturedFrame) -> None:
    """Check that a frame that was not refused has numbers that a device can measure."""
    assert math.isfinite(frame.exposed_s) and math.isfinite(frame.sent_s)
    for body in frame.bodies:
        assert all(abs(x) <= MAX_RANGE_M for x in body.position)
        assert abs(math.hypot(*body.quaternion) - 1.0) < 0.011
    for point in frame.points:
        assert all(abs(x) <= MAX_RANGE_M for x in point.position)


def natnet() -> Case:
    """Return NatNet packets of versions 3.1 and 4.1: server info, model, frames."""
    import natnet as library

    from softarm_ros.emulation import natnet_packets as packets
    from softarm_ros.perception.natnet.packets import (
        FRAME,
        MODEL,
        SERVER_INFO,
        Model,
        Server,
        kind_of,
        read_frame,
        read_model,
        read_server,
    )

    bodies = [(1, 'base'), (2, 'tip')]
    valid = []
    for version in ((3, 1), (4, 1)):
        sent = [packets.SentBody(k, (0.1 * k, 0.2, 1.0), (0.0, 0.6, 0.0, 0.8)) for k, _ in bodies]
        markers = [packets.SentMarker(1, k, (0.1, 0.2, 0.01 * k)) for k in (1, 2, 3)]
        frame = packets.frame(
            version,
            77,
            sent,
            markers,
            exposed_ticks=5_000_000,
            sent_ticks=5_060_000,
            time_s=0.5,
        )
        info = packets.server_info(version, 10_000_000, 1511, 'Motive')
        valid.append((library.Version(*version), frame, info, packets.model(version, bodies)))
    version = library.Version(4, 1)
    server, model = Server('Motive', version, 1e7), Model(dict(bodies), {})
    names = tuple(model.bodies.values())

    def read(data: bytes) -> str:
        try:
            kind = kind_of(data)
            if kind == SERVER_INFO:
                read_server(data)
            elif kind == MODEL:
                read_model(data, version)
            elif kind == FRAME:
                assert_sane(read_frame(data, server, model, names, 0.0, 1.0, 'y').frame)
                return 'frame'
        except CorruptFrameError:
            return 'refused'
        return 'no pose'

    return [p for _, *group in valid for p in (*group, group[0], group[0])], read


def qtm() -> Case:
    """Return packets of QTM: parameters, and frames with and without a hidden body."""
    import numpy as np

    from softarm_ros.emulation.qtm_server import frame, parameters
    from softarm_ros.emulation.tracked_scene import X_RB, Scene
    from softarm_ros.perception.qtm.packets import (
        DATA,
        HEADER,
        XML,
        Framing,
        read_frame,
        read_names,
    )

    names = ('base', 'tip')
    points = {'m1': X_RB[:3, 3], 'm2': np.zeros(3)}
    whole = Scene(7, 12.0, 12.01, dict.fromkeys(names, X_RB), points)
    hidden = Scene(8, 12.01, 12.02, {'base': X_RB, 'tip': None}, points)
    told = parameters(names, tuple(points))
    known = read_names(told + b'\0')
    contents = [(DATA, frame(whole)), (DATA, frame(hidden)), (XML, told + b'\0')]
    packets = [HEADER.pack(8 + len(c), kind) + c for kind, c in contents]

    def read(data: bytes) -> str:
        # A packet with too large a length, or one that is cut off, is never complete: refused.
        made = 'refused'
        try:
            for kind, content in Framing().feed(data):
                if kind == DATA:
                    assert_sane(read_frame(content, known, names, 0.0, 0.0))
                    made = 'frame'
                elif kind == XML:
                    read_names(content)
                    made = 'no pose'
        except CorruptFrameError:
            return 'refused'
        return made

    return packets, read


def vrpn() -> Case:
    """Return the greeting of a VRPN server with its names, and pose packets."""
    import numpy as np

    from softarm_ros.emulation.tracked_scene import X_RB
    from softarm_ros.emulation.vrpn_server import GREETING, names_of, poses_of
    from softarm_ros.perception.vrpn.packets import (
        POSE,
        SENDER,
        TYPE,
        Decoder,
        VersionError,
        read_name,
        read_pose,
    )
    from softarm_ros.perception.vrpn.sensor import body_of

    senders = {'base': 0, 'tip': 1}
    told = GREETING + names_of(senders)
    poses = [poses_of({'base': X_RB, 'tip': X_RB @ np.diag([1, -1, -1, 1])}, senders, 12.01)]

    def read(data: bytes) -> str:
        types: dict[int, str] = {}
        made = 'refused'
        decoder = Decoder()
        try:
            for message in decoder.feed(data if data.startswith(b'vrpn') else told + data):
                if message.type == TYPE:
                    types[message.sender] = read_name(message.content)
                elif message.type == SENDER:
                    read_name(message.content)
                elif types.get(message.type) == POSE:
                    body = body_of('tip', read_pose(message.content), 1.0)
                    frame = CapturedFrame(1, message.time_s, message.time_s, 0.0, (body,))
                    frame.check()
                    assert_sane(frame)
                    made = 'frame'
        except (CorruptFrameError, VersionError):
            return 'refused'
        return made

    return [told, *poses, *poses], read


def ndi() -> Case:
    """
    Return lines with frames from the process with NDI's library, as the sensor reads them.

    That library reads the replies on the serial line. It refuses most corrupted ones, and others
    (a byte beyond ASCII) end its process, which the sensor then restarts.
    """
    import json

    from softarm_ros.perception.em_tracker.config import EmTrackerConfig
    from softarm_ros.perception.em_tracker.sensor import EmTrackerSensor

    seen = [10, 0.2, 0.8, 0.0, 0.6, 0.0, 100.5, -20.25, 300.0]
    hidden = [11, *[None] * 8]
    lines = [
        json.dumps({'frame': 480 + k, 'time_s': 5.125, 'tools': tools}).encode()
        for k, tools in enumerate(([seen, [11, *seen[1:]]], [seen, hidden]))
    ]
    bodies = [{'name': '0A', 'section': 'base'}, {'name': '0B', 'section': 'tip'}]
    config = EmTrackerConfig.model_validate({'port': '-', 'rate_hz': 40.0, 'bodies': bodies})
    sensor = EmTrackerSensor(config, 'base')

    def read(data: bytes) -> str:
        try:
            made = sensor.frame_of(data)
            made.check()
        except CorruptFrameError:
            return 'refused'
        assert_sane(made)
        return 'frame'

    return lines, read


CASES: dict[str, Callable[[], Case]] = {
    'natnet': natnet,
    'qtm': qtm,
    'vrpn': vrpn,
    'ndi': ndi,
}
