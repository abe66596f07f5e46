"""`softarm replay`: replay a bag over topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.node_processes import NodeProcesses
from softarm_ros.cli.own_node import run_own_node
from softarm_ros.cli.recorded_rig import recorded_rig, require_residual
from softarm_ros.cli.replay_direct import recorded_run
from softarm_ros.leftovers import temporary_folder
from softarm_ros.nodes.bag_repair import about_of
from softarm_ros.rigs.graph import NodeSpec, graph_plan

LIVE = ('tracker', 'inverse_kinematics', 'supervisor', 'markers')
_WITHIN = {'estimator': 'tracker'}  # runs in that node


def replay(bag: Path, rate: float, live: Sequence[str]) -> int:
    """
    Play a bag to its end or until Ctrl-C; end with the exit status, 130 after Ctrl-C.

    `live` nodes run beside it on its /clock, in place of their recorded messages; `estimator`
    stands for the node it is in.

    Raises
    ------
    BagError, UsageError
        If the bag cannot be read or lacks data, or a node cannot run beside it.

    """
    for name in live:
        if name not in (*LIVE, *_WITHIN):
            raise UsageError(f'--nodes {name!r}: expected some of {", ".join((*LIVE, *_WITHIN))}')
    live = list(dict.fromkeys(_WITHIN.get(name, name) for name in live))
    with temporary_folder() as temporary:
        folder = Path(temporary)
        about = about_of(bag)
        rig = recorded_rig(about, folder)
        # Markers need only the rig; the other nodes need the arguments of the run.
        arguments = recorded_run(about, folder) if set(live) - {'markers'} else {}
        if arguments:
            require_residual(rig, about)
        plan = [
            replace(
                spec,
                process=spec.name,
                parameters={
                    **spec.parameters,
                    'use_sim_time': True,
                    'time_scale': rate,
                    **(
                        {'real_time_priority': 0}
                        if 'real_time_priority' in spec.parameters
                        else {}
                    ),
                },
            )
            for spec in graph_plan(rig, 'sim' if rig.plant else 'hardware', **arguments)
            if spec.name in live
        ]
        player = NodeSpec(
            'player_node',
            'softarm_ros.nodes.player_node',
            'player',
            f'/{rig.name}',
            {
                'rig': str(rig.source),
                'settings': '; '.join(rig.settings),
                'bag': str(bag.resolve()),
                'rate': rate,
                'live': list(live) or [''],
            },
        )
        from softarm_ros.nodes import player_node  # needs ROS

        with NodeProcesses(plan) as nodes:

            def lost() -> str:
                return '; '.join(ended.describe() for ended in nodes.ended())

            return run_own_node(player, folder, partial(player_node.main, lost=lost))
