"""
Launch an arm: `ros2 launch softarm_ros arm.launch.py rig:=cable_arm trajectory:=circle`.

The nodes come from `graph_plan`, which `softarm run` also uses; this file translates them into
launch actions. All requirements are checked first; then the kernels are compiled; then the nodes
start.
"""

import atexit
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ament_index_python.packages import (
    PackageNotFoundError,
    get_package_prefix,
)
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, Shutdown
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.substitutions import ExecutableInPackage

from softarm_ros.home_path import expand_home
from softarm_ros.nodes.bag_writer import check_bag_folder
from softarm_ros.nodes.process import node_environment
from softarm_ros.requirements import missing_package, require, ros_package_hint

try:
    from softarm_ros.rigs.arguments import number, settings_of, switch, whole
    from softarm_ros.rigs.errors import closest
    from softarm_ros.rigs.graph import (
        BACKENDS,
        PROCESSES,
        NodeSpec,
        graph_plan,
        parameter_file,
        processes_of,
    )
    from softarm_ros.rigs.loader import load_rig
    from softarm_ros.rigs.rviz import rviz_config
    from softarm_ros.rigs.schema import Rig
    from softarm_ros.rigs.urdf import build_urdf
    from softarm_ros.runtime.run_files import devices_folder
except ImportError as error:
    raise RuntimeError(missing_package(error)) from None

PACKAGE = 'softarm_ros'
STATE_PUBLISHER = 'robot_state_publisher'
# Name, default, description, choices (None: any). An empty value means the rig's own default.
ARGUMENTS = (
    ('rig', 'cable_arm', 'name of a built-in rig or path of a rig file', None),
    ('backend', 'sim', 'receiver of the actuator commands', list(BACKENDS)),
    ('trajectory', '', 'name in the rig file or path of a trajectory file', None),
    ('task', '', 'name or path of a task file to drive instead of a trajectory', None),
    ('goals', 'false', 'true: wait for goals over topics instead of driving a trajectory', None),
    ('set', '', 'field=value; field=value: override values of the rig file', None),
    ('model', '', 'model of the arm in tracker and inverse kinematics', None),
    ('controller', '', 'override controller.kind; shared fields keep their values', None),
    ('estimator', '', 'override estimator.kind', None),
    ('open_loop', 'false', 'true: do not use measured poses', None),
    ('laps', '', 'laps to drive; empty: those of the trajectory', None),
    ('rate', '1.0', 'simulated seconds per second; other than 1 uses /clock', None),
    ('seed', '0', 'seed of all random numbers of the simulation', None),
    ('machine', '', 'simulated machine: nominal or a number; empty: the seed', None),
    ('home', '', 'true: arm at rest, home at start; empty: emulated devices only', None),
    ('strict', 'false', 'true: end a simulated run when the computer is late', None),
    ('processes', 'one', 'one: one loop process; each: a process per node', list(PROCESSES)),
    ('bag', '', 'new folder for a rosbag2 recording (MCAP); empty: none', None),
    ('autostart', 'true', 'true: start once all nodes are ready; false: wait for ~/start', None),
    ('exit_on_done', 'false', 'true: exit with the run; exit status 0 if it was completed', None),
    ('rviz', 'false', 'true: show the arm in rviz2', None),
)


def installed(package: str) -> bool:
    """Return whether a ROS package is installed."""
    try:
        get_package_prefix(package)
    except PackageNotFoundError:
        return False
    return True


def ends_launch(name: str, required: bool):
    """Return an exit handler: a required node ends the launch, with an error if it failed."""

    def react(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
        if context.is_shutdown or not required:
            return []
        if event.returncode != 0:
            raise RuntimeError(f'{name} has ended with exit status {event.returncode}')
        return [Shutdown(reason=f'{name} has ended')]

    return react


def translate(name: str, nodes: tuple[NodeSpec, ...]) -> Node:
    """Return the launch action for one process of the plan."""
    required = any(spec.required for spec in nodes)
    common = {
        'package': PACKAGE,
        'namespace': nodes[0].namespace,
        'output': 'screen',
        'additional_env': node_environment({}),
        'on_exit': ends_launch(name, required),
    }
    if len(nodes) == 1:
        (spec,) = nodes
        return Node(
            executable=spec.executable,
            name=spec.name,
            parameters=[dict(spec.parameters)],
            **common,
        )
    file = temporary_folder('parameters') / f'{name}.yaml'
    file.write_text(parameter_file(nodes), encoding='utf-8')
    return Node(
        executable='node_group',
        arguments=[spec.executable for spec in nodes],
        parameters=[str(file)],
        **common,
    )


def temporary_folder(content: str) -> Path:
    """Return a new folder, which is removed when the launch has ended."""
    folder = Path(tempfile.mkdtemp(prefix=f'softarm-{content}-'))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def state_publisher(rig: Rig, namespace: str, simulated_time: bool) -> Node:
    """Return the node that publishes the arm's description and the transforms of its links."""
    return Node(
        package=STATE_PUBLISHER,
        executable=STATE_PUBLISHER,
        namespace=namespace,
        parameters=[
            {
                'robot_description': build_urdf(rig),
                'frame_prefix': rig.frame_prefix,
                'use_sim_time': simulated_time,
            }
        ],
    )


def rviz(rig: Rig, namespace: str, simulated_time: bool) -> Node:
    """Return the rviz2 node, configured with the topics, frames and size of the rig."""
    config = temporary_folder('rviz') / f'{rig.name}.rviz'
    config.write_text(rviz_config(rig), encoding='utf-8')
    return Node(
        package='rviz2',
        executable='rviz2',
        namespace=namespace,
        arguments=['-d', str(config)],
        parameters=[{'use_sim_time': simulated_time}],
    )


def check_names(given: Iterable[str]) -> None:
    """
    Raise RuntimeError if a name is unknown but similar to one of the arguments.

    ros2 launch ignores unknown names, so a misspelled argument would make the arm do something
    else. Dissimilar names are accepted: they belong to a launch file that includes this one.
    """
    known = [name for name, *_ in ARGUMENTS]
    for name in given:
        meant = closest(name, known, likeness=0.8)
        if name not in known and meant is not None:
            raise RuntimeError(f'{name}:= is unknown (did you mean {meant}:=?)')


def launch_nodes(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the actions that start the arm; an invalid argument ends the launch with an error."""
    check_names(context.launch_configurations)
    text = {name: LaunchConfiguration(name).perform(context) for name, *_ in ARGUMENTS}
    rig = load_rig(
        text['rig'],
        settings_of(
            [text['set']],
            controller=text['controller'],
            estimator=text['estimator'],
            machine=text['machine'],
        ),
    )
    rate = number('rate', text['rate'])
    with_rviz = switch('rviz', text['rviz'])
    with_state_publisher = installed(STATE_PUBLISHER)
    plan = graph_plan(
        rig,
        text['backend'],
        trajectory=text['trajectory'] or None,
        task=text['task'] or None,
        goals=switch('goals', text['goals']),
        model=text['model'] or None,
        open_loop=switch('open_loop', text['open_loop']),
        laps=whole('laps', text['laps']) if text['laps'] else None,
        rate=rate,
        seed=whole('seed', text['seed']),
        home=switch('home', text['home']) if text['home'] else None,
        strict=switch('strict', text['strict']),
        bag=text['bag'] or None,
        processes=text['processes'],
        autostart=switch('autostart', text['autostart']),
        exit_on_done=switch('exit_on_done', text['exit_on_done']),
        state_publisher=with_state_publisher,
        devices_folder=devices_folder(rig.name),
    )
    require(devices=text['backend'] != 'sim', bag=bool(text['bag']))
    if text['bag']:
        check_bag_folder(expand_home(text['bag'], 'bag:=').resolve())
    if with_rviz and not installed('rviz2'):
        raise RuntimeError(f'rviz:=true: {ros_package_hint("rviz2")}')
    namespace, simulated = plan[0].namespace, rate != 1.0
    nodes = [translate(*process) for process in processes_of(plan).items()]
    if with_state_publisher:
        nodes.append(state_publisher(rig, namespace, simulated))
    if with_rviz:
        nodes.append(rviz(rig, namespace, simulated))

    def start(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity]:
        if event.returncode == 0 and not context.is_shutdown:
            return nodes
        return ends_launch('prepare_kernels', required=True)(event, context)

    settings = [word for setting in rig.settings for word in ('--set', setting)]
    return [
        ExecuteProcess(
            cmd=[
                ExecutableInPackage('prepare_kernels', PACKAGE),
                *(str(plan[0].parameters['rig']), '--backend', text['backend'], *settings),
            ],
            name='prepare_kernels',
            output='screen',
            additional_env=node_environment({}),
            on_exit=start,
        )
    ]


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments; the nodes are created once their values are known."""
    arguments = [
        DeclareLaunchArgument(
            name, default_value=default, description=description, choices=choices
        )
        for name, default, description, choices in ARGUMENTS
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=launch_nodes)])
