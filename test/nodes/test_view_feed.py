"""The viewer's state of a graph that has ended and of the one that follows it."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

from softarm_ros.cli.cli_errors import is_user_error
from softarm_ros.nodes.conversions import Health
from softarm_ros.nodes.node_errors import RefusedError
from softarm_ros.nodes.view_feed import ViewFeed
from softarm_ros.nodes.wire import JointValues, StampedPoses
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.view_state import NO_SUPERVISOR

pytestmark = pytest.mark.ros
NONE = np.zeros(0)


def test_restarted_graph_is_not_shown_with_values_of_the_previous_one():
    rig = load_rig('cable_arm')
    names = rig.model().configuration_names

    def hear(*nodes):
        for node in nodes:
            feed._on_heartbeat(Health(node, 0, 'well', {'state': 'running'}))

    with ViewFeed(rig) as feed:
        hear('supervisor', 'steppers')
        feed.state()
        feed._on_configuration(JointValues(5, names, np.full(4, 0.3), NONE, NONE), 5)
        feed._on_tip(StampedPoses(5, 'base', np.ones((1, 7))), 5)
        feed._on_reference(StampedPoses(5, 'base', np.zeros((1, 7))), 5)
        before = feed.state()
        assert before.measured and before.error_m is not None
        feed._listened_s += 2.0  # of silence
        ended = feed.state()
        assert ended.state == '' and ended.measured  # the end of a run stays visible
        assert {node.message for node in ended.nodes} == {'silent'}
        hear('supervisor')
        feed.state()
        feed._on_configuration_command(JointValues(1, names, np.zeros(4), NONE, NONE), 1)
        again = feed.state()
        assert again.state == 'running' and not again.measured
        assert again.tip is None and again.error_m is None
        assert [node.name for node in again.nodes] == ['supervisor']


def test_graph_without_its_supervisor_is_reported_as_such_and_takes_no_goals():
    def hear(**states):
        for node, state in states.items():
            values = {'state': state, 'takes_goals': 'true'}
            feed._on_heartbeat(Health(node, 0, 'well', values))

    with ViewFeed(load_rig('cable_arm')) as feed:
        hear(recorder='', markers='')  # these also run without an arm
        assert feed.state().state == ''
        hear(supervisor='running', tracker='')
        assert feed.state().state == 'running' and feed.takes_goals
        feed._listened_s += 2.0
        hear(tracker='', plant='')
        assert feed.state().state == NO_SUPERVISOR and not feed.takes_goals
        hear(supervisor='ready')
        assert feed.state().state == 'ready'


def test_poses_in_a_foreign_frame_are_not_shown():
    with ViewFeed(load_rig('cable_arm')) as feed:
        for frame in ('base', 'cable_arm/base', 'room'):
            feed._on_tip(StampedPoses(len(frame), frame, np.full((1, 7), len(frame))), 5)
            feed._on_sections(StampedPoses(5, frame, np.full((2, 7), len(frame))), 5)
            state = feed.state()
            assert state.tip[0] == (4 if frame == 'base' else 14)
            assert (state.sections is None) == (frame == 'room')


def test_commands_advance_the_time_if_no_tip_is_measured():
    rig = load_rig('cable_arm')
    with ViewFeed(rig) as feed:
        for second in (5, 6):
            zeros = np.zeros(len(rig.actuator_names))
            feed._on_command(JointValues(second * 10**9, rig.actuator_names, zeros, NONE, NONE), 0)
            assert feed.state().time_s == pytest.approx(second)


def test_listener_offers_no_services_that_it_never_answers():
    """`ros2 param list` asks every node that offers parameters, and waits for the answer."""
    with ViewFeed(load_rig('cable_arm')) as feed:
        offered = feed.node.get_service_names_and_types_by_node('viewer_taps', '/cable_arm')
        assert offered == []


@pytest.mark.parametrize('domain', ['arm', '233', '-1'])
def test_a_domain_that_does_not_exist_is_refused_in_one_line(monkeypatch, domain):
    said = f'ROS_DOMAIN_ID = {domain!r}: expected 0 to 232'
    monkeypatch.setenv('ROS_DOMAIN_ID', domain)
    with pytest.raises(RefusedError, match=said) as refused, ViewFeed(load_rig('cable_arm')):
        pass
    assert is_user_error(refused.value)
    ended = subprocess.run(
        [sys.executable, '-m', 'softarm_ros.nodes.markers_node'],
        capture_output=True,
        text=True,
        timeout=60.0,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr == f'markers: ROS 2 does not start with these arguments: {said}\n'
