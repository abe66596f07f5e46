"""`softarm excite --live`: excite the arm of a running graph."""

from __future__ import annotations

import signal
from collections.abc import Callable

from softarm_ros.cli.goto_command import goal_client, require_arm
from softarm_ros.cli.stop_request import stop_on_signals
from softarm_ros.control.excitation import Excitation
from softarm_ros.control.excited_rows import ExcitedRows
from softarm_ros.rigs.schema import Rig


def lead(
    rig: Rig, plan: Excitation, progress: Callable[[float], None]
) -> tuple[ExcitedRows | None, str]:
    """
    Run a plan on a running arm; return the rows, if any, and '' or why it ended early.

    Raises
    ------
    UsageError
        If no arm takes goals, or the arm may not move.

    """
    goal_client()  # raises UsageError without ROS 2
    from softarm_ros.nodes.excitation_client import ExcitationClient

    with stop_on_signals(signal.SIGTSTP) as stopped, ExcitationClient(rig) as client:
        require_arm(client, rig)
        why = client.run(plan, stopped, progress)
        return client.rows, why
