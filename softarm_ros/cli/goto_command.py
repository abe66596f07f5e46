"""`softarm goto`: send one target for the tip to a running arm."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.run_command import EXIT_INCOMPLETE, EXIT_INTERRUPTED
from softarm_ros.cli.stop_request import stop_on_signals
from softarm_ros.rigs.rig_files import rig_arguments
from softarm_ros.rigs.schema import Rig

if TYPE_CHECKING:
    from softarm_ros.nodes.goal_client import GoalClient

_LOOK_S = 0.05
_ANSWER_S = 10.0  # time for the arm to acknowledge the goal
_CANCEL_S = 2.0
# Silence after which the arm counts as ended. A busy computer may delay this process by a second.
SILENT_S = 5.0
GONE = 'the graph is gone'
# For a final report on a goal the tracker has dropped: lost messages are sent again within 3 s.
_FORGOTTEN_S = 5.0


def goto(rig: Rig, position: Sequence[float], timeout_s: float, out: Callable[[str], None]) -> int:
    """
    Send the target (3,) [m], print the reports about it, and return the exit status.

    Raises
    ------
    UsageError
        If a number is not finite, or no arm takes goals.

    """
    if not np.all(np.isfinite(position)):
        raise UsageError(f'X Y Z = {list(position)}: expected finite numbers of metres')
    client_of = goal_client()
    with stop_on_signals(signal.SIGTSTP) as stopped, client_of(rig) as client:
        require_arm(client, rig)
        if stopped():
            return EXIT_INTERRUPTED
        stamp = client.send.pose(position)
        told, waited, known_at = 0, 0.0, 0.0
        while True:
            client.spin(_LOOK_S)
            waited += _LOOK_S
            reports = client.of_stamp(stamp)
            for report in reports[told:]:
                out(f'{report.values["state"].replace("_", " ")}: {report.message}')
            told = len(reports)
            if reports and reports[-1].values.get('final') == 'true':
                return 0 if reports[-1].values['state'] == 'reached' else EXIT_INCOMPLETE
            if stopped() or waited > timeout_s:
                _, answer = client.call('goal/cancel', _CANCEL_S)
                why = 'interrupted' if stopped() else f'not there after {timeout_s:g} s'
                out(f'{why}: {answer}')
                return EXIT_INTERRUPTED if stopped() else EXIT_INCOMPLETE
            if not client.fresh('tracker', SILENT_S):
                out(f'{rig.name}: {GONE}; the outcome of the goal is unknown')
                return EXIT_INCOMPLETE
            if not reports or str(stamp) in client.value('tracker', 'goal_stamps_ns').split():
                known_at = waited
            if waited - known_at > _FORGOTTEN_S:
                out('the tracker has dropped the goal; its outcome is unknown')
                return EXIT_INCOMPLETE
            if not reports and waited > _ANSWER_S:
                out(f'no answer within {_ANSWER_S:g} s')
                return EXIT_INCOMPLETE


def goal_client() -> type[GoalClient]:
    """Return the class `GoalClient`; UsageError if ROS 2 is not available."""
    try:
        from softarm_ros.nodes.goal_client import GoalClient
    except ImportError as error:
        raise UsageError(f'goals are sent over ROS 2, which is not available ({error})') from None
    return GoalClient


def require_arm(client: GoalClient, rig: Rig) -> None:
    """Raise UsageError, with advice, if no arm takes goals or the arm may not move."""
    missing = client.wait_until_heard()
    if missing is not None:
        arguments = rig_arguments(rig.name, rig.source, rig.settings)
        raise UsageError(f'{rig.name}: {missing}; start one: softarm run {arguments} --goals')
    held = why_held(client)
    if held:
        raise UsageError(f'{rig.name} may not move: {held}')


def why_held(client: GoalClient) -> str:
    """Return the supervisor's state and reason if the arm may not move; '' if it may."""
    state = client.value('supervisor', 'state')
    if state in ('running', ''):
        return ''
    return ': '.join(filter(None, [state, client.value('supervisor', 'reason')]))
