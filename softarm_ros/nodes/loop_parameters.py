"""Builds the control loop that a node's parameters describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rclpy.node import Node

from softarm_ros.control.trajectory_config import MAX_LAPS
from softarm_ros.nodes.node_errors import RefusedError
from softarm_ros.nodes.node_parameters import declare
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_goal_loop, build_loop
from softarm_ros.runtime.cycle_source import load_code
from softarm_ros.runtime.loop import Loop

if TYPE_CHECKING:
    from softarm_ros.runtime.planner_process import PlannerProcess


def declared_loop(node: Node, rig: Rig) -> tuple[Loop, PlannerProcess | None]:
    """
    Declare the parameters of a loop; return the loop, with its compiled code loaded.

    If the loop takes goals, also return its planner process, which the caller must close.
    """
    trajectory = declare(
        node, 'trajectory', '', 'name in the rig or path of a file; empty: the default'
    )
    task = declare(
        node, 'task', '', 'name or path of a task file, driven in place of a trajectory'
    )
    model = declare(node, 'model', '', "model of the arm; empty: the rig's default")
    open_loop = declare(node, 'open_loop', False, 'do not use measured poses')
    laps = declare(
        node, 'laps', 0, 'laps to drive; 0: as the trajectory says', low=0, high=MAX_LAPS
    )
    goals = declare(node, 'goals', False, 'wait for goals over topics, in place of a trajectory')
    if goals:
        if task:
            raise RefusedError(f'task = {task!r}: expected none with goals = true')
        from softarm_ros.runtime.planner_process import PlannerProcess

        planner = PlannerProcess(rig, model or None, open_loop=open_loop)
        waiting = build_goal_loop(rig, model=model or None, open_loop=open_loop, planner=planner)
        load_code(waiting)
        return waiting, planner
    loop = build_loop(
        rig,
        trajectory or None,
        task=task or None,
        model=model or None,
        open_loop=open_loop,
        laps=laps or None,
    )
    load_code(loop)  # now, not in the first cycle
    return loop, None
