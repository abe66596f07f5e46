"""
An arm as a ROS graph: `ros2 launch softarm_ros arm.launch.py rig:=cable_arm trajectory:=circle`.

The nodes come from `graph_plan`, which `softarm run` uses as well; this file only translates.
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from softarm_ros.rigs.graph import BACKENDS, NodeSpec, graph_plan
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.urdf import build_urdf

BOOLEAN = ['true', 'false']
# Name, default, description, choices (None: any). An empty value means the rig's own default.
ARGUMENTS = (
    ('rig', 'cable_arm', 'name of a built-in rig or path of a rig file', None),
    ('backend', 'sim', 'what stands behind the actuator command', list(BACKENDS)),
    ('trajectory', '', 'name in the rig file or path of a trajectory file', None),
    ('task', '', 'name or path of a task file, driven in place of a trajectory', None),
    ('set', '', 'field=value; field=value: over the values of the rig file', None),
    ('model', '', 'model of the arm in tracker and inverse kinematics', None),
    ('open_loop', 'false', 'do not use measured poses', BOOLEAN),
    ('laps', '', 'laps to drive; empty: as the trajectory says', None),
    ('rate', '1.0', 'simulated seconds per second; other than 1 uses /clock', None),
    ('seed', '0', 'of every random number of the simulation', None),
    ('home', '', 'drivers: the arm is at rest when they start; empty: emulated ones only', None),
    ('strict', 'false', 'end a simulated run when the computer is late', BOOLEAN),
    ('bag', '', 'new folder for a rosbag2 recording (MCAP); empty: none', None),
    ('autostart', 'true', 'start the motion once all is ready; false: call ~/start', BOOLEAN),
    ('rviz', 'false', 'show the arm in rviz2', BOOLEAN),
)


def translate(spec: NodeSpec) -> Node:
    """Return the launch action for one node of the plan."""
    reason = f'{spec.name} has ended'
    return Node(
        package='softarm_ros',
        executable=spec.executable,
        name=spec.name,
        namespace=spec.namespace,
        parameters=[dict(spec.parameters)],
        output='screen',
        on_exit=[Shutdown(reason=reason)] if spec.required else None,
    )


def viewer_nodes(rig: Rig, namespace: str, simulated_time: bool) -> list[Node]:
    """Return what shows the arm: transforms of its links, and rviz2."""
    config = Path(get_package_share_directory('softarm_ros')) / 'config' / 'rviz' / 'arm.rviz'
    time = {'use_sim_time': simulated_time}
    return [
        Node(
            package='robot_state_publisher',
            executable='robot_state_publisher',
            namespace=namespace,
            parameters=[{'robot_description': build_urdf(rig)}, time],
        ),
        Node(
            package='rviz2',
            executable='rviz2',
            namespace=namespace,
            arguments=['-d', str(config)],
            parameters=[time],
        ),
    ]


def launch_nodes(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return all nodes for the arguments; a wrong argument ends the launch with its message."""
    text = {name: LaunchConfiguration(name).perform(context) for name, *_ in ARGUMENTS}
    rig = load_rig(text['rig'], [part for part in text['set'].split(';') if part.strip()])
    rate = float(text['rate'])
    plan = graph_plan(
        rig,
        text['backend'],
        trajectory=text['trajectory'] or None,
        task=text['task'] or None,
        model=text['model'] or None,
        open_loop=text['open_loop'] == 'true',
        laps=int(text['laps']) if text['laps'] else None,
        rate=rate,
        seed=int(text['seed']),
        home=text['home'] == 'true' if text['home'] else None,
        strict=text['strict'] == 'true',
        bag=text['bag'] or None,
        autostart=text['autostart'] == 'true',
    )
    nodes = [translate(spec) for spec in plan]
    if text['rviz'] == 'true':
        nodes += viewer_nodes(rig, plan[0].namespace, rate != 1.0)
    return nodes


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; the nodes follow when their values are known."""
    arguments = [
        DeclareLaunchArgument(
            name, default_value=default, description=description, choices=choices
        )
        for name, default, description, choices in ARGUMENTS
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=launch_nodes)])
