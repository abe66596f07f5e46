"""The node graph of a rig as data, which the launch file and the command line both use."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from softarm_ros.control.trajectory_config import MAX_LAPS
from softarm_ros.perception.config import PoseSensorConfig
from softarm_ros.rigs.errors import RigError, did_you_mean, listed
from softarm_ros.rigs.part_registry import find_part
from softarm_ros.rigs.rig_files import expand_path, is_path
from softarm_ros.rigs.rig_parts import arm_part, role_of
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.task_file import locate_task
from softarm_ros.rigs.trajectory_file import load_trajectory_file, locate_trajectory

BACKENDS = ('sim', 'emulated', 'hardware')
# Priority of the loop's nodes, below that of kernel threads and audio servers.
REAL_TIME_PRIORITY = 20
# Nodes without which the arm must not move, in addition to those of the arm itself.
SUPERVISED_NODES = ('tracker', 'inverse_kinematics')
# How nodes are assigned to processes: the loop's nodes share one, or each has its own.
PROCESSES = ('one', 'each')
# Process of the loop's nodes. It includes the simulated arm, but never a device driver.
CONTROL_PROCESS = 'control'
_CONTROL_NODES = (*SUPERVISED_NODES, 'supervisor', 'plant')

_SURROGATE = re.compile('[\ud800-\udfff]')  # Python's stand-in for bytes that are not UTF-8
_NOT_ASCII = re.compile('[^ -~]')

ParameterValue = bool | int | float | str | list[str]


@dataclass(frozen=True)
class NodeSpec:
    """
    One node to start.

    Attributes
    ----------
    executable, module : str
        Installed executable, and the Python module that runs it with `python -m`.
    name, namespace : str
        Name and namespace of the node in the ROS graph.
    parameters : dict
        Parameters by name; every value has a ROS parameter type.
    required : bool
        Whether the run ends when this node does.
    process : str
        Name of the process that runs the node; others may share it.

    """

    executable: str
    module: str
    name: str
    namespace: str
    parameters: dict[str, ParameterValue] = field(default_factory=dict)
    required: bool = True
    process: str = ''

    def __post_init__(self) -> None:
        if not self.process:
            object.__setattr__(self, 'process', self.name)


def graph_plan(
    rig: Rig,
    backend: str = 'sim',
    *,
    trajectory: str | None = None,
    task: str | None = None,
    goals: bool = False,
    model: str | None = None,
    open_loop: bool = False,
    laps: int | None = None,
    rate: float = 1.0,
    seed: int = 0,
    bag: str | Path | None = None,
    autostart: bool = True,
    home: bool | None = None,
    strict: bool = False,
    exit_on_done: bool = False,
    state_publisher: bool = False,
    processes: str = 'one',
    rig_source: str | Path | None = None,
    devices_folder: str | Path | None = None,
) -> list[NodeSpec]:
    """
    Return the nodes that drive a rig, in the order to start them.

    Parameters
    ----------
    rig : Rig
        Rig to drive.
    backend : {'sim', 'emulated', 'hardware'}
        What executes the actuator command.
    trajectory, model : str, optional
        Names (or a trajectory file); the rig's defaults for None.
    task : str, optional
        Name or file of a task, driven instead of a trajectory.
    goals : bool
        Wait for goals over topics, instead of driving a trajectory or task.
    open_loop : bool
        Measured poses are recorded but not used.
    laps : int, optional
        Number of laps, instead of the trajectory's own.
    rate : float
        Speed of the simulation; 1 is real time.
    seed : int
        Seed of every random number of the simulation.
    bag : str or Path, optional
        Folder for a recording; None: no recording.
    autostart : bool
        Whether the supervisor starts the motion itself once everything is ready.
    home : bool, optional
        Whether the drivers assume once, when they start, that the arm is at rest. None: drivers of
        emulated devices do; for real devices, a person has to confirm it.
    strict : bool
        Whether lateness ends a simulated run, as it ends one with devices; otherwise the simulated
        arm is held and then continues.
    exit_on_done : bool
        Whether an additional node ends with the run and returns its result.
    state_publisher : bool
        Whether robot_state_publisher runs beside these nodes, and publishes the description and
        transforms of the links instead of them.
    processes : {'one', 'each'}
        Whether the nodes of the loop share a process, or each node has its own.
    rig_source : str or Path, optional
        Rig that nodes pass to `load_rig`; None: the rig's own file.
    devices_folder : str or Path, optional
        Folder of the emulated devices' addresses; only for backend 'emulated'.

    Raises
    ------
    RigError
        If an argument does not suit this rig.

    """
    _check_choice('backend', backend, BACKENDS)
    _check_choice('processes', processes, PROCESSES)
    _check_numbers(laps, rate, seed)
    if goals and (trajectory, task, laps) != (None, None, None):
        raise RigError('', 'goals: the arm waits for goals; leave out trajectory, task and laps')
    if task is not None and (trajectory, laps) != (None, None):
        raise RigError(
            '', 'task: it runs once through its own motions; leave out trajectory and laps'
        )
    _check_devices(rig, backend, rate, home, devices_folder)
    located = locate_trajectory(rig, trajectory)
    config = (
        load_trajectory_file(located) if isinstance(located, Path) else rig.trajectories[located]
    )
    model_name = rig.model_name(model)
    common: dict[str, ParameterValue] = {
        'rig': _source_of(rig, rig_source),
        'settings': '; '.join(rig.settings),
        'use_sim_time': rate != 1.0,
        'time_scale': float(rate),
    }

    def node(
        name: str, required: bool = True, executable: str = '', **parameters: ParameterValue
    ) -> NodeSpec:
        executable = executable or f'{name}_node'
        module = f'softarm_ros.nodes.{executable}'
        shared = processes == 'one' and name in _CONTROL_NODES
        return NodeSpec(
            executable,
            module,
            name,
            f'/{rig.name}',
            {**common, **parameters},
            required,
            CONTROL_PROCESS if shared else name,
        )

    # A simulation at full speed must not starve other processes.
    priority = REAL_TIME_PRIORITY if rate == 1.0 else 0
    arm: list[NodeSpec] = []
    if backend == 'sim':
        arm = [node('plant', seed=seed, real_time_priority=priority)]
    else:
        folder = str(devices_folder) if backend == 'emulated' else ''
        if folder:
            arm = [node('emulator', seed=seed, devices_folder=folder, real_time_priority=priority)]
        devices = rig.required_devices(backend)
        homing = {'home': backend == 'emulated' if home is None else home}
        arm += [
            node(
                name,
                executable='device_node',
                device=name,
                devices_folder=folder,
                real_time_priority=priority,
                **(homing if name == devices.DRIVING else {}),  # others only measure
            )
            for name in devices.names
        ]
    sensors = [
        node(
            sensor,
            executable='sensor_node',
            sensor=sensor,
            devices_folder=str(devices_folder) if backend == 'emulated' else '',
            real_time_priority=priority,
        )
        for sensor in (rig.sensors.devices() if backend != 'sim' else ())
    ]
    watched = [*arm, *sensors] if not open_loop else arm
    plan = [
        *arm,
        *sensors,
        node(
            'inverse_kinematics',
            model=model_name,
            pretension=not open_loop,
            real_time_priority=priority,
        ),
        node(
            'tracker',
            trajectory=str(located),
            task='' if task is None else str(locate_task(task)),
            goals=goals,
            model=model_name,
            open_loop=open_loop,
            laps=config.laps if laps is None else laps,
            real_time_priority=priority,
        ),
        # Nodes that only display may be late or end without stopping the arm.
        node('markers', required=False, transforms=not state_publisher, goals=goals),
        node(
            'supervisor',
            required_nodes=[*SUPERVISED_NODES, *(spec.name for spec in watched)],
            strict=strict or backend != 'sim',
            model=model_name,
            autostart=autostart,
            feedback_required=not open_loop,
            real_time_priority=priority,
        ),
    ]
    if exit_on_done:
        plan.append(node('outcome'))
    if bag is not None:
        run = {
            'backend': backend,
            'trajectory': str(located),
            'trajectory_file': located.read_text(encoding='utf-8')
            if isinstance(located, Path)
            else '',
            'task': task or '',
            'goals': str(goals).lower(),
            'task_file': '' if task is None else locate_task(task).read_text(encoding='utf-8'),
            'model': model_name,
            'open_loop': str(open_loop).lower(),
            'laps': str(config.laps if laps is None else laps),
            'rate': f'{rate:g}',
            'seed': str(seed),
            'processes': processes,
        }
        # One word: launch would parse text that looks like YAML.
        folder = str(expand_path(bag, 'bag').resolve())
        plan.insert(0, node('recorder', required=False, bag=folder, about=urlencode(run)))
    return plan


def processes_of(plan: Sequence[NodeSpec]) -> dict[str, tuple[NodeSpec, ...]]:
    """Return the nodes of each process by its name, in the order to start them."""
    grouped: dict[str, tuple[NodeSpec, ...]] = {}
    for spec in plan:
        grouped[spec.process] = (*grouped.get(spec.process, ()), spec)
    return grouped


def parameter_file(nodes: Sequence[NodeSpec]) -> str:
    """
    Return the text of a ROS parameter file for the nodes of one process.

    Raises
    ------
    RigError
        If a text, as the name of a file, is not UTF-8.

    """
    for spec in nodes:
        for name, value in spec.parameters.items():
            if isinstance(value, str) and _SURROGATE.search(value):
                shown = value.encode(errors='replace').decode()
                problem = f'{name} of node {spec.name}: {shown!r} is not UTF-8; ROS takes no other'
                raise RigError('', problem)
    # JSON is YAML that keeps text as text, even if it looks like a number.
    text = json.dumps(
        {
            f'{spec.namespace}/{spec.name}': {'ros__parameters': dict(spec.parameters)}
            for spec in nodes
        },
        ensure_ascii=False,
    )
    # JSON escapes an emoji as two characters, which the YAML parser of ROS refuses.
    return _NOT_ASCII.sub(lambda found: f'\\U{ord(found[0]):08x}', text)


def process_command(nodes: Sequence[NodeSpec], parameters: Path) -> list[str]:
    """Return module and arguments that run the nodes of one process with a parameter file."""
    first = nodes[0]
    ros = ['--ros-args', '-r', f'__ns:={first.namespace}', '--params-file', str(parameters)]
    if len(nodes) == 1:
        return [first.module, *ros, '-r', f'__node:={first.name}']
    return ['softarm_ros.nodes.node_group', *(spec.executable for spec in nodes), *ros]


def _check_choice(what: str, choice: str, known: tuple[str, ...]) -> None:
    if choice not in known:
        hint = did_you_mean(choice, known)
        raise RigError('', f'unknown {what} {choice!r}{hint}; known: {listed(known)}')


def check_backend(rig: Rig, backend: str) -> None:
    """Raise RigError, saying what to add, if a rig lacks what a backend needs."""
    if backend != 'hardware' and (backend == 'sim' or rig.devices is not None):
        rig.plant_for(backend)
    if backend == 'sim':
        return
    driving = rig.required_devices(backend).DRIVING
    if backend == 'emulated':
        part = find_part('drives', driving)
        role = f'{role_of(part, arm_part(rig.kind))}, emulated'
        if role not in part.builders:
            raise RigError(
                '',
                f'device {driving!r} is not emulated: part {part.name} has no role {role!r}; it '
                f'has: {listed(part.builders)}',
            )
        for name in rig.sensors.devices():
            check_emulated_sensor(rig, name)


def check_emulated_sensor(rig: Rig, name: str) -> None:
    """Raise RigError, naming field, value and limit, if a sensor of a rig is not emulated."""
    sensor, part = rig.sensors.devices()[name], find_part('sensors', name)
    if 'emulated' not in part.builders:
        raise RigError(
            '', f'sensor {name!r} is not emulated: part {part.name} has no role {"emulated"!r}'
        )
    lacking = (
        sensor.not_emulated(rig.section_names) if isinstance(sensor, PoseSensorConfig) else ''
    )
    if lacking:
        raise RigError('', f"backend 'emulated': sensors.{name}.{lacking}")


def _check_devices(
    rig: Rig, backend: str, rate: float, home: bool | None, devices_folder: str | Path | None
) -> None:
    check_backend(rig, backend)
    if backend == 'sim':
        if home is not None:
            raise RigError('', "home: the simulated arm of backend 'sim' starts at rest")
        return
    if rate != 1.0:
        raise RigError('', f'rate = {rate:g}: devices of backend {backend!r} run in real time')
    if backend == 'emulated' and devices_folder is None:
        raise RigError('', "backend 'emulated': devices_folder: expected a folder")


def _check_numbers(laps: int | None, rate: float, seed: int) -> None:
    if laps is not None and not 1 <= laps <= MAX_LAPS:
        raise RigError('', f'laps = {laps}: expected 1 to {MAX_LAPS}')
    if not (math.isfinite(rate) and rate > 0.0):
        raise RigError('', f'rate = {rate:g}: expected a number > 0')
    if seed < 0:
        raise RigError('', f'seed = {seed}: expected a whole number >= 0')


def _source_of(rig: Rig, rig_source: str | Path | None) -> str:
    source = rig.source if rig_source is None else rig_source
    if source is None:
        raise RigError('', f'rig {rig.name!r} was not loaded from a file: pass rig_source')
    if isinstance(source, Path) or is_path(source):
        return str(expand_path(source, 'rig').resolve())
    return source
