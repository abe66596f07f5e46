"""A bag, written here topic by topic, read back as states of the arm."""

import numpy as np
import pytest

pytest.importorskip('rosbags', reason='needs rosbags')

from rosbags.typesys import Stores, get_typestore

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.viewer.bag_states import BagStates
from softarm_ros.models.led_to_tip import configuration_at_tip
from softarm_ros.nodes.bag_writer import BagError, BagWriter
from softarm_ros.rigs.loader import load_rig

STORE = get_typestore(Stores.LATEST)
T0 = 1_700_000_000_000_000_000
MS = 1_000_000


def of(kind, **fields):
    return STORE.types[kind](**fields)


def header(stamp_ns):
    time = of('builtin_interfaces/msg/Time', sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
    return of('std_msgs/msg/Header', stamp=time, frame_id='base')


def pose(stamp_ns, position):
    point = of('geometry_msgs/msg/Point', **dict(zip('xyz', map(float, position))))
    turn = of('geometry_msgs/msg/Quaternion', x=0.0, y=0.0, z=0.0, w=1.0)
    whole = of('geometry_msgs/msg/Pose', position=point, orientation=turn)
    return of('geometry_msgs/msg/PoseStamped', header=header(stamp_ns), pose=whole)


def joints(stamp_ns, names, position, effort=()):
    return of(
        'sensor_msgs/msg/JointState',
        header=header(stamp_ns),
        name=list(names),
        position=np.asarray(position, dtype=float),
        velocity=np.array([]),
        effort=np.asarray(effort, dtype=float),
    )


def health(name, level, **values):
    pairs = [of('diagnostic_msgs/msg/KeyValue', key=k, value=v) for k, v in values.items()]
    return of(
        'diagnostic_msgs/msg/DiagnosticStatus',
        level=level,
        name=name,
        message=f'{name} speaks',
        hardware_id='cable_arm',
        values=pairs,
    )


@pytest.fixture
def rig():
    return load_rig('cable_arm')


def write(folder, rig, space='cable_arm'):
    bag = BagWriter(folder)
    names, actuators = rig.model().configuration_names, rig.actuator_names
    topics = {
        'tip/pose': 'geometry_msgs/msg/PoseStamped',
        'reference/pose': 'geometry_msgs/msg/PoseStamped',
        'configuration/command': 'sensor_msgs/msg/JointState',
        'actuators/command': 'sensor_msgs/msg/JointState',
        'heartbeat': 'diagnostic_msgs/msg/DiagnosticStatus',
    }
    for topic, kind in topics.items():
        assert bag.add_topic(f'/{space}/{topic}', kind)

    def put(topic, received_ns, message):
        data = bytes(STORE.serialize_cdr(message, topics[topic]))
        bag.write(f'/{space}/{topic}', received_ns, data)

    for i in range(20):
        stamp = T0 + i * 10 * MS
        put('tip/pose', stamp + 2 * MS, pose(stamp, [0.1, 0.0, 0.2 + 0.001 * i]))
        put('reference/pose', stamp + 3 * MS, pose(stamp, [0.1, 0.002, 0.2 + 0.001 * i]))
        put('configuration/command', stamp + 4 * MS, joints(stamp, names, [0.01 * i] * len(names)))
        put('actuators/command', stamp + 5 * MS, joints(stamp, actuators, [1e-3] * len(actuators)))
    put('heartbeat', T0 + 50 * MS, health('supervisor', 0, state='running', reason=''))
    put('heartbeat', T0 + 60 * MS, health('tracker', 1, phase='track', lap='2', progress='0.25'))
    bag.close()
    return folder


def test_states_over_time(tmp_path, rig):
    states = BagStates.read(write(tmp_path / 'bag', rig))
    assert states.rig.name == 'cable_arm'
    assert states.duration_s == pytest.approx(0.193, abs=1e-6)
    early, late = states.at(0.001), states.at(0.1525)
    assert early.configuration is None
    assert early.state == 'recorded'  # nothing was heard of a supervisor yet
    assert late.tip == pytest.approx([0.1, 0.0, 0.215])
    assert late.error_m == pytest.approx(0.002)
    assert late.configuration == pytest.approx(0.15 * np.ones(4))
    assert not late.measured
    assert late.latency_ms == pytest.approx(5.0)
    assert (late.state, late.phase, late.lap, late.progress) == ('running', 'track', 2, 0.25)
    assert [node.name for node in late.nodes] == ['supervisor', 'tracker']


def test_a_bag_is_a_motion_to_draw(tmp_path, rig):
    from softarm_ros.cli.motion import film_of_bag
    from softarm_ros.cli.render import render

    arm, motion = film_of_bag(write(tmp_path / 'bag', rig), None)
    assert arm.name == 'cable_arm'
    np.testing.assert_allclose(motion.times_s, [0.0, 0.04, 0.08], atol=1e-9)  # while it tracked
    # A tip came in that very moment: the one before may be the newest.
    np.testing.assert_allclose(motion.tips[:, 2], [0.208, 0.212, 0.216], atol=1.1e-3)
    np.testing.assert_allclose(motion.errors_m, 0.002)
    # Sections are not measured in it: the commanded shape, led to the measured tip.
    model, commanded, points = rig.model(), np.full(4, 0.07), motion.bodies.shape[1]
    led = configuration_at_tip(model, commanded, motion.tips[0])
    np.testing.assert_allclose(motion.bodies[0], model.shape_of(led).centerline(points))
    far = np.linalg.norm(model.shape_of(commanded).tip[:3, 3] - motion.tips[0])
    assert np.linalg.norm(motion.bodies[0][-1] - motion.tips[0]) < 0.5 * far
    assert motion.path.shape == (0, 3)
    assert render(arm, motion, tmp_path / 'run.gif', 0.3).stat().st_size > 1000


def test_a_node_that_is_heard_no_more_is_silent(tmp_path, rig):
    states = BagStates.read(write(tmp_path / 'bag', rig))
    assert {node.message for node in states.at(5.0).nodes} == {'silent'}


def test_a_bag_of_an_unknown_rig_asks_for_it(tmp_path, rig):
    folder = write(tmp_path / 'bag', rig, space='my_arm')
    with pytest.raises(UsageError, match=r'/my_arm/tip/pose.*--rig FILE'):
        BagStates.read(folder)
    with pytest.raises(UsageError, match=r'no topics of cable_arm'):
        BagStates.read(folder, rig)


def test_no_bag(tmp_path):
    with pytest.raises(BagError, match=r'not a bag: no metadata\.yaml$'):
        BagStates.read(tmp_path)
