"""The goal handle in rviz on a running arm: the tip goes where the handle is released."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('interactive_markers', reason='needs the ROS package interactive_markers')

from node_bench import client_until, waiting

pytestmark = [pytest.mark.ros, pytest.mark.graphs, pytest.mark.timeout(300)]


@pytest.fixture(scope='module')
def client():
    from softarm_ros.nodes.goal_client import GoalClient
    from softarm_ros.rigs.loader import load_rig

    rig = load_rig('cable_arm')
    with waiting(rig), GoalClient(rig) as running:
        assert running.wait_until_heard(20.0) is None
        yield running


@pytest.fixture(scope='module')
def rviz(client):
    """Return a stand-in for rviz: its handles, the poses they moved to, and `let_go`."""
    from geometry_msgs.msg import Point
    from visualization_msgs.msg import InteractiveMarkerFeedback, InteractiveMarkerUpdate
    from visualization_msgs.srv import GetInteractiveMarkers

    class Rviz:
        def __init__(self):
            node, moved = client.node, []
            self.moved = moved
            self._updates = node.create_subscription(
                InteractiveMarkerUpdate, 'goal_handle/update', lambda m: moved.extend(m.poses), 100
            )
            self._let_go = node.create_publisher(
                InteractiveMarkerFeedback, 'goal_handle/feedback', 1
            )
            service = 'goal_handle/get_interactive_markers'
            asked = node.create_client(GetInteractiveMarkers, service)
            client_until(client, asked.service_is_ready, 20.0, 'the handle')
            answer = asked.call_async(GetInteractiveMarkers.Request())
            client_until(client, answer.done, 10.0, 'the handle')
            self.handles = answer.result().markers
            client_until(client, self._let_go.get_subscription_count, 10.0, 'a listener')

        def let_go(self, position, frame='cable_arm/base'):
            x, y, z = position
            feedback = InteractiveMarkerFeedback(client_id='rviz', marker_name='goal')
            feedback.event_type = InteractiveMarkerFeedback.MOUSE_UP
            feedback.header.frame_id = frame
            feedback.pose.position = Point(x=x, y=y, z=z)
            client.reports.clear()
            for _ in range(10):  # discovery of the other ends may not be complete
                self._let_go.publish(feedback)
                client.spin(1.0)
                if client.reports:
                    return

    return Rviz()


def last(client, *states):
    return client.reports and client.reports[-1].values['state'] in states


def test_one_handle_appears_at_the_tip(client, rviz):
    (handle,) = rviz.handles
    assert handle.header.frame_id == 'cable_arm/base'
    at = handle.pose.position
    assert np.linalg.norm([at.x, at.y, at.z] - client.reference) < 1e-3
    assert [control.name for control in handle.controls] == ['ball', 'x', 'y', 'z']


def test_tip_goes_where_the_handle_is_released(client, rviz):
    rviz.let_go((0.02, 0.0, 0.24))
    client_until(client, lambda: last(client, 'reached'), 30.0, 'reached')
    assert np.linalg.norm(client.reference - (0.02, 0.0, 0.24)) < 1e-4
    assert rviz.moved == []


def test_handle_released_out_of_reach_returns_to_the_reference(client, rviz):
    rviz.let_go((0.02, 0.0, 0.30))
    client_until(client, lambda: last(client, 'reached', 'out_of_reach'), 30.0, 'there')
    assert client.reports[-1].values['state'] == 'out_of_reach'
    client_until(client, lambda: rviz.moved, 5.0, 'the handle moved')
    at = rviz.moved[-1].pose.position
    assert np.linalg.norm([at.x, at.y, at.z] - client.reference) < 1e-4
    assert at.z < 0.26


def test_handle_in_an_unknown_frame_is_refused(client, rviz):
    rviz.let_go((0.0, 0.0, 0.24), 'kitchen')
    client_until(client, lambda: last(client, 'refused'), 10.0, 'refused')
    assert "header.frame_id = 'kitchen'" in client.reports[-1].message
