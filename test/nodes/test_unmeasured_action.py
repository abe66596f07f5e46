"""The action on an arm whose configuration poses cannot show: tensions of opposed cables."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('control_msgs', reason='needs the ROS package control_msgs')

from node_bench import waiting
from trajectory_client import ABORTED, SUCCEEDED, Trajectories, tolerance

pytestmark = [pytest.mark.ros, pytest.mark.graphs, pytest.mark.timeout(300)]


def test_arm_without_measured_configuration_follows_goals_but_refuses_tolerances():
    from softarm_ros.nodes.goal_client import GoalClient
    from softarm_ros.rigs.loader import load_rig

    rig = load_rig('fishbone_arm')
    model = rig.model()
    rest = [float(value) for value in model.rest_configuration]
    with waiting(rig), GoalClient(rig) as client:
        assert client.wait_until_heard(20.0) is None
        arm = Trajectories(client, rig)
        asked = arm.goal((2.0, rest), path_tolerance=[tolerance(arm.names[0], 0.1)])
        status, code, text = arm.end(arm.send(asked)[1])
        assert (status, code) == (ABORTED, -1)
        assert 'path_tolerance: the configuration of this arm is not measured' in text
        _, future, heard = arm.send(arm.goal((2.0, rest)))
        assert arm.end(future)[:2] == (SUCCEEDED, 0)
        feedback = heard[-1].feedback
        assert len(feedback.desired.positions) == len(model.configuration_names)
        assert len(feedback.actual.positions) == len(feedback.error.positions) == 0
        arm.action.destroy()
