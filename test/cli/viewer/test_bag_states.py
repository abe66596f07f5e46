"""Bags, written here topic by topic, read back as states of the arm."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rosbags', reason='needs rosbags')

from rosbags.typesys import Stores, get_typestore
from typer.testing import CliRunner

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.main import app
from softarm_ros.cli.recorded_rig import rig_of_bag
from softarm_ros.cli.viewer.bag_states import BagStates
from softarm_ros.models.led_to_tip import configuration_at_tip
from softarm_ros.nodes.bag_about import about_run
from softarm_ros.nodes.bag_messages import BagMessage, messages_of
from softarm_ros.nodes.bag_repair import about_of
from softarm_ros.nodes.bag_writer import BagError, BagWriter
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.view_state import ViewState

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


def write(
    folder, rig, space='cable_arm', about=None, clock=lambda at: at, change=lambda topic, m: None
):
    bag = BagWriter(folder, about)
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
        change(topic, message)
        data = bytes(STORE.serialize_cdr(message, topics[topic]))
        bag.write(f'/{space}/{topic}', clock(received_ns), data)

    for i in range(20):
        stamp = T0 + i * 10 * MS
        put('tip/pose', stamp + 2 * MS, pose(stamp, [0.1, 0.0, 0.2 + 0.001 * i]))
        put('reference/pose', stamp + 3 * MS, pose(stamp, [0.1, 0.002, 0.2 + 0.001 * i]))
        put('configuration/command', stamp + 4 * MS, joints(stamp, names, [0.01 * i] * len(names)))
        put('actuators/command', stamp + 5 * MS, joints(stamp, actuators, [1e-3] * len(actuators)))
    put('heartbeat', T0 + 50 * MS, health('supervisor', 0, state='running', reason=''))
    put('heartbeat', T0 + 60 * MS, health('tracker', 1, phase='track', lap='2', progress='0.25'))
    waits = {'phase': 'wait', 'lap': '3', 'takes_goals': 'true', 'goal': ''}
    put('heartbeat', T0 + 155 * MS, health('tracker', 0, **waits))
    bag.close()
    return folder


def drawn(bag):
    """Read a bag as `softarm view` does without --rig."""
    return BagStates.read(bag, rig_of_bag(bag)[0])


def test_states_of_a_bag_contain_the_messages_received_until_then(tmp_path, rig):
    states = BagStates.read(write(tmp_path / 'bag', rig), rig)
    assert states.rig.name == 'cable_arm'
    assert states.duration_s == pytest.approx(0.193, abs=1e-6)
    early, late = states.at(0.001), states.at(0.1525)
    assert early.configuration is None
    assert early.state == 'recorded'  # no message of a supervisor yet
    assert late.tip == pytest.approx([0.1, 0.0, 0.215])
    assert late.error_m == pytest.approx(0.002)
    assert late.configuration == pytest.approx(0.15 * np.ones(4))
    assert not late.measured
    assert late.latency_ms == pytest.approx(5.0)
    assert (late.state, late.phase, late.lap, late.progress) == ('running', 'track', 2, 0.25)
    assert (late.goal, states.at(0.19).goal) == (None, '')
    assert [node.name for node in late.nodes] == ['supervisor', 'tracker']


def test_a_bag_without_tips_or_configurations_names_the_missing_topic(tmp_path, rig):
    from softarm_ros.cli.motion import film_of_bag

    def without(wanted):
        def change(topic, message):
            if topic == wanted == 'tip/pose':
                message.pose.position.x = np.nan
            elif topic == wanted:
                message.position[:] = np.nan

        return write(tmp_path / wanted.split('/')[0], rig, change=change)

    for topic, what in (('tip/pose', 'tips'), ('configuration/command', 'configurations')):
        with pytest.raises(UsageError, match=f'{what} on .*{topic} to draw'):
            film_of_bag(without(topic), rig)


@pytest.mark.parametrize('option', [('--seed', '0'), ('--trajectory', 'line')])
def test_render_refuses_options_of_a_simulated_run_for_a_bag(tmp_path, rig, option):
    bag = write(tmp_path / 'bag', rig)
    refused = CliRunner().invoke(
        app, ['render', str(bag), '--output', str(tmp_path / 'a.png'), *option]
    )
    assert refused.exit_code != 0
    assert f'{" ".join(option)}: a bag' in f'{refused.stderr}{refused.exception}'


def test_a_bag_is_read_as_a_motion_and_rendered(tmp_path, rig):
    from softarm_ros.cli.motion import film_of_bag
    from softarm_ros.cli.render import render

    motion = film_of_bag(write(tmp_path / 'bag', rig), rig)
    np.testing.assert_allclose(motion.times_s, [0.0, 0.04, 0.08], atol=1e-9)  # while it tracked
    # A tip was received at that very time: the newest may be the one before.
    np.testing.assert_allclose(motion.tips[:, 2], [0.208, 0.212, 0.216], atol=1.1e-3)
    np.testing.assert_allclose(motion.errors_m, 0.002)
    # The bag has no measured sections: the commanded shape is led to the measured tip.
    model, commanded, points = rig.model(), np.full(4, 0.07), motion.bodies.shape[1]
    led = configuration_at_tip(model, commanded, motion.tips[0])
    np.testing.assert_allclose(motion.bodies[0], model.shape_of(led).centerline(points))
    far = np.linalg.norm(model.shape_of(commanded).tip[:3, 3] - motion.tips[0])
    assert np.linalg.norm(motion.bodies[0][-1] - motion.tips[0]) < 0.5 * far
    assert motion.path.shape == (0, 3)
    assert render(rig, motion, tmp_path / 'run.gif', 0.3).stat().st_size > 1000


def test_writing_a_gif_keeps_at_most_two_rgb_images_in_memory(tmp_path, rig, monkeypatch):
    from PIL import Image

    from softarm_ros.cli import render
    from softarm_ros.cli.motion import film_of_bag

    drawn, alive = render.frames, []

    def watched(*arguments):
        for frame in drawn(*arguments):
            yield frame
            alive.append(sum(type(o) is Image.Image and o.mode == 'RGB' for o in gc.get_objects()))

    monkeypatch.setattr(render, 'frames', watched)
    motion = film_of_bag(write(tmp_path / 'bag', rig), rig)
    with Image.open(render.render(rig, motion, tmp_path / 'run.gif', 0.5)) as image:
        assert image.n_frames > 1
    assert len(alive) >= 4
    assert max(alive) <= 2, alive


def test_the_film_of_an_arm_that_takes_goals_has_no_gaps_between_goals(tmp_path, rig):
    from softarm_ros.cli.motion import film_of_bag

    motion = film_of_bag(write(tmp_path / 'bag', rig), rig)
    assert motion.times_s == pytest.approx([0.0, 0.04, 0.08])  # tracks, tracks, waits


def test_poses_in_another_frame_are_left_out_and_noted(tmp_path, rig):
    def room(topic, message):
        if topic == 'tip/pose':
            message.header.frame_id = 'world'

    states = BagStates.read(write(tmp_path / 'bag', rig, change=room), rig)
    assert states.at(0.1525).tip is None
    assert states.notes == [
        "left out: 20 messages on /cable_arm/tip/pose in frame 'world'; expected 'base' or "
        "'cable_arm/base'"
    ]


def test_nodes_without_recent_heartbeats_are_silent(tmp_path, rig):
    states = BagStates.read(write(tmp_path / 'bag', rig), rig)
    assert {node.message for node in states.at(5.0).nodes} == {'silent'}


def test_a_bag_of_an_unknown_rig_asks_for_the_rig_option(tmp_path, rig):
    folder = write(tmp_path / 'bag', rig, space='my_arm')
    with pytest.raises(UsageError, match=r'/my_arm/tip/pose.*--rig RIG'):
        drawn(folder)
    with pytest.raises(UsageError, match=r'no topics of cable_arm'):
        BagStates.read(folder, rig)


def to_sqlite(bag, folder, about):
    """Write a bag again as rosbag2 does in its SQLite form, with or without `custom_data`."""
    from rosbags.rosbag2 import StoragePlugin, Writer

    writer = Writer(folder, version=9, storage_plugin=StoragePlugin.SQLITE3)
    for name, value in about.items():
        writer.set_custom_data(name, value)
    with writer:
        topics = {}
        for message in messages_of(bag):
            topic, kind = message.topic, message.type_name
            if topic not in topics:
                topics[topic] = writer.add_connection(topic, kind, typestore=STORE)
            writer.write(topics[topic], message.received_ns, message.data)
    return folder


@pytest.fixture
def longer(tmp_path, rig):
    """Return an edited copy of a rig of the package that keeps its name."""
    text = rig.source.read_text(encoding='utf-8')
    path = tmp_path / 'my_arm.yaml'
    path.write_text(text.replace('length_m: 0.093 ', 'length_m: 0.123 '), encoding='utf-8')
    return load_rig(path, ['tip_load_kg=0.01'])


def test_a_bag_is_drawn_with_the_rig_file_it_was_recorded_with(tmp_path, rig, longer):
    bag = write(tmp_path / 'bag', rig, about=about_run(longer, {}))
    longer.source.unlink()
    found, which = rig_of_bag(bag)
    assert found.arm == longer.arm
    assert found.arm.sections[0].length_m == pytest.approx(rig.arm.sections[0].length_m + 0.03)
    assert found.tip_load_kg == 0.01
    assert which == 'cable_arm, the rig file that was recorded with tip_load_kg=0.01'
    assert drawn(bag).rig.arm == longer.arm
    assert rig_of_bag(bag, settings=['tip_load_kg=0.02'])[0].tip_load_kg == 0.02
    named, which = rig_of_bag(bag, 'cable_arm')
    assert (named, which) == (rig, 'cable_arm, as named')


@pytest.mark.parametrize('kept', [True, False])
def test_a_bag_in_sqlite_is_drawn_like_one_in_mcap(tmp_path, rig, longer, kept):
    whole = write(tmp_path / 'bag', rig, about=about_run(longer, {}))
    bag = to_sqlite(whole, tmp_path / 'sqlite', about_of(whole) if kept else {})
    found, which = rig_of_bag(bag / 'sqlite.db3')
    assert found == (longer if kept else rig)
    assert which.endswith('with tip_load_kg=0.01' if kept else 'the bag holds no rig file')
    assert drawn(bag).at(0.1525).tip == pytest.approx([0.1, 0.0, 0.215])
    (bag / 'sqlite.db3').write_bytes(b'no database')
    with pytest.raises(BagError, match=r'cannot be read: (?!.*--repair)'):  # only for MCAP
        drawn(bag)


def test_a_recorded_rig_file_that_is_no_longer_valid_is_refused(tmp_path, rig):
    about = {**about_run(rig, {}), 'rig_file': 'name: cable_arm\n'}
    with pytest.raises(UsageError, match=r'(?s)bag: the rig file in the bag.*arm.*--rig RIG'):
        rig_of_bag(write(tmp_path / 'bag', rig, about=about))


def test_a_missing_residual_of_a_recorded_rig_is_named_with_its_folder(tmp_path, rig):
    path = tmp_path / 'learned.yaml'
    text = rig.source.read_text(encoding='utf-8')
    path.write_text(f'{text}\nresidual: {{file: learned.json}}\n', encoding='utf-8')
    bag = write(tmp_path / 'bag', rig, about=about_run(load_rig(path), {}))
    with pytest.raises(UsageError, match=rf'{tmp_path}/learned.json.*\n.*--rig RIG'):
        rig_of_bag(bag)


def test_a_bag_with_other_joints_than_the_rig_is_refused(tmp_path, rig):
    with pytest.raises(UsageError, match=r'has proximal_bend_x.*expected .*, as cable_arm_single'):
        BagStates.read(
            write(tmp_path / 'bag', rig, space='cable_arm_single'), load_rig('cable_arm_single')
        )


def test_a_clock_jump_does_not_count_as_time_and_a_bag_without_messages_is_refused(tmp_path, rig):
    from softarm_ros.cli.motion import film_of_bag

    bag = write(tmp_path / 'bag', rig, clock=lambda at: at + 10**18 * (at >= T0 + 100 * MS))
    states = drawn(bag)
    assert states.duration_s == pytest.approx(0.193, abs=0.01)
    assert states.notes == ['nothing received for 1000000000 s, at 0.09 s']
    motion = film_of_bag(bag, rig)
    assert motion.notes == tuple(states.notes)
    assert motion.loop == ''  # the bag does not state it
    assert 'no messages on topics of cable_arm; it has /cable_arm/tip/pose' in refused(
        drawn, write_nothing(tmp_path / 'empty')
    )


def test_a_message_that_cannot_be_decoded_is_refused(tmp_path):
    bag = write_nothing(tmp_path / 'bag', b'no pose')
    assert 'bag: a message on /cable_arm/tip/pose cannot be decoded' in refused(drawn, bag)


def write_nothing(folder, *messages):
    bag = BagWriter(folder)
    bag.add_topic('/cable_arm/tip/pose', 'geometry_msgs/msg/PoseStamped')
    for data in messages:
        bag.write('/cable_arm/tip/pose', T0, data)
    bag.close()
    return folder


def refused(read, bag):
    with pytest.raises((UsageError, BagError)) as error:
        read(bag)
    return str(error.value)


def test_a_folder_without_metadata_is_refused(tmp_path):
    with pytest.raises(BagError, match=r'not a bag: no metadata\.yaml$'):
        drawn(tmp_path)


def test_a_bag_of_goals_has_the_path_of_each_goal(rig):
    from softarm_ros.cli.motion import _reference

    def path(at_s, *points):
        poses = [pose(T0, point) for point in points]
        kind = 'nav_msgs/msg/Path'
        whole = of(kind, header=header(T0), poses=poses)
        at_ns, topic = T0 + round(1e9 * at_s), '/cable_arm/reference/path'
        return BagMessage(Path('bag'), topic, kind, at_ns, b'', lambda: whole)

    states = BagStates(rig)
    assert states.path_at(0.0) is None
    states._fill([path(0.0, (0, 0, 0.2)), path(1.0, (0, 0, 0.2), (0.1, 0, 0.2))])
    assert [len(states.path_at(at)) for at in (-1.0, 0.5, 1.5)] == [1, 1, 2]
    moments = [ViewState(reference=np.array([0.01 * k, 0.0, 0.2])) for k in range(4)]
    assert len(_reference(states, [*moments, ViewState()])) == 4


def test_view_opens_a_bag_in_the_browser(tmp_path, rig):
    pytest.importorskip('viser', reason='needs viser')
    bag = write(tmp_path / 'bag', rig, about=about_run(rig, {}))
    with subprocess.Popen(
        [sys.executable, '-m', 'softarm_ros.cli', 'view', str(bag), '--open'],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, 'DISPLAY': ':9', 'BROWSER': 'echo opened %s'},
    ) as viewer:
        shown = next((line for line in viewer.stdout if ': http://127' in line), '')
        viewer.terminate()  # the viewer opens the page before it ends
        rest = viewer.stdout.read()
    address = shown.split(': ', 1)[1].split()[0]
    assert f'opened {address}\n' in rest


@pytest.mark.parametrize('option', ['--runs', '--no-runs'])
def test_view_refuses_controls_of_runs_for_a_bag(tmp_path, rig, option):
    bag = write(tmp_path / 'bag', rig, about=about_run(rig, {}))
    refused = CliRunner().invoke(app, ['view', str(bag), option])
    assert refused.exit_code != 0
    reason = f'{option}: a bag has no controls to start runs'
    assert reason in f'{refused.stderr}{refused.exception}'
