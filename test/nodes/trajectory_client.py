"""A client of the action FollowJointTrajectory, like that of any other program."""

from node_bench import client_until

SUCCEEDED, CANCELED, ABORTED = 4, 5, 6  # action_msgs/GoalStatus


class Trajectories:
    """Sends trajectories to the action, from the node of a goal client."""

    def __init__(self, client, rig):
        from control_msgs.action import FollowJointTrajectory
        from rclpy.action import ActionClient

        self.client, self.names = client, list(rig.model().configuration_names)
        self.kind = FollowJointTrajectory
        name = 'configuration/follow_joint_trajectory'
        self.action = ActionClient(client.node, FollowJointTrajectory, name)
        client_until(client, self.action.server_is_ready, 20.0, 'the action')

    def goal(self, *points, stamp_s=None, **fields):
        """Return a goal through points (time [s], configuration); `fields` of the message."""
        from builtin_interfaces.msg import Duration
        from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

        trajectory = JointTrajectory(joint_names=self.names)
        for time_s, values in points:
            whole, part = divmod(round(1e9 * time_s), 10**9)
            at = Duration(sec=whole, nanosec=part)
            trajectory.points.append(JointTrajectoryPoint(positions=values, time_from_start=at))
        if stamp_s is not None:
            now = self.client.node.get_clock().now().nanoseconds + round(1e9 * stamp_s)
            trajectory.header.stamp.sec, trajectory.header.stamp.nanosec = divmod(now, 10**9)
        return self.kind.Goal(trajectory=trajectory, **fields)

    def send(self, goal):
        """Send a goal; return its handle, the future of its result and its feedback."""
        heard = []
        sent = self.action.send_goal_async(goal, feedback_callback=heard.append)
        client_until(self.client, sent.done, 10.0, 'accepted')
        handle = sent.result()
        assert handle.accepted
        return handle, handle.get_result_async(), heard

    def end(self, future, timeout=40.0):
        """Wait for a result; return status, code and text."""
        client_until(self.client, future.done, timeout, 'a result')
        ended = future.result()
        return ended.status, ended.result.error_code, ended.result.error_string

    def states(self):
        """Return the states of the newest goal that were reported on `goal/status`."""
        newest = self.client.reports[-1].values['number']
        reports = [r for r in self.client.reports if r.values['number'] == newest]
        return [report.values['state'] for report in reports]

    def until(self, state):
        reports = self.client.reports
        client_until(
            self.client, lambda: reports and reports[-1].values['state'] == state, 30.0, state
        )


def tolerance(name, position, **fields):
    from control_msgs.msg import JointTolerance

    return JointTolerance(name=name, position=position, **fields)
