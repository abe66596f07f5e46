"""A run over topics: starts the nodes, watches them, collects the record and ends them."""

from __future__ import annotations

import contextlib
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.graph_load import LoadMeter, age_s
from softarm_ros.cli.instance_lock import AlreadyRunningError, instance_lock
from softarm_ros.cli.node_processes import STOP_ORDER_LAST, NodeProcesses
from softarm_ros.cli.run_view import RunView
from softarm_ros.cli.viewer.process import viewer_process
from softarm_ros.nodes.bag_writer import check_bag_folder
from softarm_ros.nodes.discovery import Discovery
from softarm_ros.rigs.graph import NodeSpec, graph_plan
from softarm_ros.runtime.arm_assembly import machine_facts
from softarm_ros.runtime.assembly import build_goal_loop, build_task_loop, plan_trajectory
from softarm_ros.runtime.events import Event
from softarm_ros.runtime.loop import Loop, Phase
from softarm_ros.runtime.run_files import devices_folder
from softarm_ros.runtime.run_record import RunInfo, RunRecord

if TYPE_CHECKING:
    from rich.console import Console

    from softarm_ros.cli.run_command import RunOptions
    from softarm_ros.control.tracker import Tracker
    from softarm_ros.nodes.conversions import Health
    from softarm_ros.nodes.run_monitor import RunMonitor
    from softarm_ros.rigs.schema import Rig

LOOK_S = 0.05
# Time after the last cycle, or after a node has died, for messages still under way.
AFTERMATH_S = 0.4
SILENCE_S = 10.0
FIRST_WORD_S = 300.0  # nodes may have to compile, on a busy machine
PATH_POINTS = 400
GOALS_KEPT_S = 600.0  # of the cycles of a run with goals, which has no end of its own
PLAYER = 'player'  # it publishes recorded commands, which a running arm would follow
DEVICE_EXECUTABLES = ('device_node', 'emulator_node')


@dataclass
class _Outcome:
    """End of a run; events have ROS time [s]."""

    completed: bool = False
    motion_interrupted: bool = False
    events: list[Event] = field(default_factory=list)
    first_motion_s: float | None = None  # since the command was started
    meter: LoadMeter | None = None  # since the first motion


def run_topics(
    rig: Rig, options: RunOptions, console: Console, stopped: Callable[[], bool]
) -> RunRecord:
    """
    Run a trajectory through the node graph, with the nodes in separate processes.

    The run ends when the trajectory is done, when the supervisor stops the arm for a fault, when a
    required node dies, or when `stopped` returns true (Ctrl-C). No node is left running.

    Raises
    ------
    ValueError
        If the input is invalid or the rig is already running; no motion has started.

    """
    # Imported here because it needs ROS.
    from softarm_ros.nodes.run_monitor import KEPT_S, RunMonitor

    plan = _plan(rig, options)
    simulated = options.rate != 1.0
    kept_s = GOALS_KEPT_S if options.goals else KEPT_S
    with (
        instance_lock(rig.name),
        # Held: nodes import their modules while this process looks for others in the graph.
        NodeProcesses(plan, held=True) as nodes,
        RunMonitor(
            f'/{rig.name}',
            rig.model(options.model).configuration_names,
            rig.actuator_names,
            pose_topic=rig.feedback.pose_topic,
            simulated_time=simulated,
            kept_s=kept_s,
        ) as monitor,
    ):
        discovery = Discovery()
        info, path, rate_hz = _describe(rig, options)
        _refuse_second(monitor, rig.name, plan, discovery, stopped)
        # Drivers must not find addresses left behind by an emulation that crashed.
        shutil.rmtree(devices_folder(rig.name), ignore_errors=True)
        held = stopped()
        if not held:
            nodes.release()
        with (
            viewer_process(rig, options.open_viewer) if options.view else contextlib.nullcontext(),
            RunView(console, rig.name) as view,
        ):
            outcome = _follow(monitor, nodes, view, stopped, starter(monitor, plan))
            if options.goals and outcome.motion_interrupted:
                outcome.completed = True  # a run with goals lasts until it is interrupted
            load = outcome.meter.result() if outcome.meter else None
            devices = {
                spec.name: monitor.health[spec.name].values
                for spec in plan
                if spec.executable in DEVICE_EXECUTABLES and spec.name in monitor.health
            }
            origin, now = monitor.origin_s(), monitor.now_s()
            # Before the nodes end: Fast DDS may deadlock while it removes nodes that leave.
            monitor.close()
        nodes.stop()
        for node in nodes.ended():
            # Its bag is not complete; one that SIGINT has ended by default had not begun any, nor
            # one that was still held.
            failed = not held and node.exit_code not in (0, -signal.SIGINT)
            if failed and STOP_ORDER_LAST in node.nodes:
                outcome.events.append(Event(now, 'warning', 'run', node.describe()))
        reported = [
            Event(max(e.time_s - origin, 0.0), e.level, e.source, e.message)
            for e in outcome.events
        ]
        samples = monitor.samples()
        if monitor.forgets:
            note = f'the record has the cycles of the last {kept_s:g} s; a bag has all of them'
            reported.append(Event(max(now - origin, 0.0), 'info', 'run', note))
        return RunRecord(
            info,
            samples,
            replace(
                monitor.timing(rate_hz),
                first_motion_s=outcome.first_motion_s,
                cpu_percent=load.cpu_percent if load else None,
                memory_mb=load.memory_mb if load else None,
            ),
            tuple(sorted([*monitor.events(), *reported], key=lambda e: e.time_s)),
            float(samples.time_s[-1]) if len(samples.time_s) else max(now - origin, 0.0),
            outcome.completed,
            path,
            devices,
        )


def _plan(rig: Rig, options: RunOptions) -> list[NodeSpec]:
    plan = graph_plan(
        rig,
        options.backend,
        trajectory=options.trajectory,
        task=options.task,
        goals=options.goals,
        model=options.model,
        open_loop=options.open_loop,
        laps=options.laps,
        rate=options.rate,
        seed=options.seed,
        home=options.home,
        strict=options.strict,
        bag=options.bag,
        processes=options.processes,
        devices_folder=devices_folder(rig.name),
        autostart=False,  # this process starts it once it receives all topics
    )
    if options.bag is not None:
        check_bag_folder(options.bag)
    # This process has already looked for nodes of the same name.
    return [replace(s, parameters={**s.parameters, 'twin_check_s': 0.0}) for s in plan]


def _describe(rig: Rig, options: RunOptions) -> tuple[RunInfo, NDArray[np.float64], float]:
    """Check the run; return its description, the reference path (n, 3) [m] and the rate [Hz]."""
    tracker, path = _checked(rig, options)
    info = RunInfo(
        rig=rig.name,
        backend=options.backend,
        model=tracker.model.name,
        controller=rig.tracker.kind,
        trajectory='live goals'
        if options.goals
        else ''
        if options.task
        else options.trajectory or rig.default_trajectory,
        open_loop=options.open_loop,
        seed=options.seed,
        rate=options.rate,
        direct=False,
        arm_length_m=tracker.model.rest_length_m,
        actuator_names=tracker.limits.names,
        actuator_unit=tracker.limits.unit,
        configuration_names=tracker.model.configuration_names,
        effort_unit=tracker.limits.effort_unit,
        task=options.task,
        **({} if options.backend == 'hardware' else machine_facts(rig, options.seed)),
    )
    return info, path, rig.tracker.rate_hz


def _checked(rig: Rig, options: RunOptions) -> tuple[Tracker, NDArray[np.float64]]:
    """
    Return the tracker and the reference path (n, 3) [m] for the motion of the tracker's node.

    Raises for motions that are impossible altogether; the node checks the reach along a path.
    """
    loop: Loop
    if options.goals:
        loop = build_goal_loop(rig, model=options.model, open_loop=options.open_loop)
    elif options.task:
        loop = build_task_loop(rig, options.task, model=options.model, open_loop=options.open_loop)
    else:
        tracker, trajectory = plan_trajectory(
            rig,
            options.trajectory,
            model=options.model,
            open_loop=options.open_loop,
            laps=options.laps,
        )
        return tracker, trajectory.path.sample(PATH_POINTS)
    return loop.tracker, loop.path(PATH_POINTS)


def _refuse_second(
    monitor: RunMonitor,
    rig: str,
    plan: list[NodeSpec],
    discovery: Discovery,
    stopped: Callable[[], bool],
) -> None:
    names = [spec.name for spec in plan]
    looking = True
    while looking and not stopped():
        looking = not discovery.over()
        monitor.spin(LOOK_S)
        others = monitor.others([*names, PLAYER])
        if PLAYER in others:
            raise AlreadyRunningError(rig, f'node {PLAYER}', 'being replayed')
        if others == [STOP_ORDER_LAST]:
            how = f'node {STOP_ORDER_LAST}; run without --bag, or end softarm record'
            raise AlreadyRunningError(rig, how, 'being recorded')
        if others:
            how = 'nodes ' + ', '.join(others)
            raise AlreadyRunningError(rig, f'{how}, perhaps of another computer')


def starter(monitor: RunMonitor, plan: list[NodeSpec]) -> Callable[[], None]:
    """
    Return a function that starts the motion once the arm is ready and all topics arrive.

    It starts only an untouched arm: one that somebody has stopped may be ready again, and waits.
    """
    # Optional nodes may be late, but a bag must be complete.
    names = [spec.name for spec in plan if spec.required or spec.name == STOP_ORDER_LAST]

    def start_when_ready() -> None:
        state, untouched = (monitor.value('supervisor', key) for key in ('state', 'untouched'))
        if (state, untouched) == ('ready', 'true') and monitor.hears_all(names):
            monitor.call('supervisor/start')

    return start_when_ready


def _follow(
    monitor: RunMonitor,
    nodes: NodeProcesses,
    view: RunView,
    stopped: Callable[[], bool],
    start_when_ready: Callable[[], None],
) -> _Outcome:
    """Watch a run until it ends for any reason."""
    outcome = _Outcome()

    def tell(level: str, source: str, message: str) -> None:
        outcome.events.append(Event(monitor.now_s(), level, source, message))  # type: ignore[arg-type]

    begun = time.monotonic()
    while True:
        monitor.spin(LOOK_S)
        view.update(monitor)
        start_when_ready()
        state = monitor.value('supervisor', 'state')
        phase = monitor.value('tracker', 'phase')
        if outcome.meter is None and phase not in ('', Phase.IDLE.value):
            outcome.first_motion_s, outcome.meter = age_s(), LoadMeter()
        ended = nodes.ended()
        # The motion does not start without the recorder, but goes on without it.
        begins = outcome.meter is None
        lost = [e for e in ended if e.required or (begins and STOP_ORDER_LAST in e.nodes)]
        for node in ended:
            tell('error' if node in lost else 'warning', 'run', node.describe())
        if phase == 'done':
            monitor.spin(AFTERMATH_S)
            outcome.completed = True
            return outcome
        if lost:
            monitor.spin(AFTERMATH_S)
            tell_fault(monitor.health, tell)
            return outcome
        if state == 'fault':
            at_s, said = monitor.now_s(), monitor.health['supervisor'].message
            monitor.spin(AFTERMATH_S)  # a sensor reports the loss of its device a little later
            if monitor.value('supervisor', 'state') == 'fault':
                said = monitor.health['supervisor'].message
            outcome.events.append(Event(at_s, 'error', 'supervisor', f'the arm was held: {said}'))
            for node in nodes.ended():
                tell('error', 'run', node.describe())
            return outcome
        if stopped():
            answer = 'not started yet'
            if 'supervisor' in monitor.health:
                _, answer = monitor.call('supervisor/stop')
            tell('warning', 'run', f'interrupted; supervisor: {answer}')
            outcome.motion_interrupted = state not in ('', 'waiting', 'ready')
            return outcome
        silent_s, patience_s = monitor.silent_s('supervisor'), SILENCE_S
        if not np.isfinite(silent_s):
            silent_s, patience_s = time.monotonic() - begun, FIRST_WORD_S
        if silent_s > patience_s:
            tell('error', 'run', f'nothing received from the supervisor for {patience_s:g} s')
            return outcome


def tell_fault(health: Mapping[str, Health], tell: Callable[[str, str, str], None]) -> None:
    """Tell what a process that has ended made the supervisor notice, without its guesses why."""
    supervisor = health.get('supervisor')
    if supervisor is not None and supervisor.values.get('state') == 'fault':
        reason = supervisor.values.get('reason') or supervisor.message
        tell('error', 'supervisor', f'the arm was held: {reason}')
