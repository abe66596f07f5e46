"""A node in the process of the command itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from softarm_ros.nodes.process import EXIT_INTERRUPTED
from softarm_ros.rigs.graph import NodeSpec, parameter_file, process_command
from softarm_ros.whole_file import write_text


def run_own_node(spec: NodeSpec, folder: Path, main: Callable[[list[str]], int]) -> int:
    """
    Run a node's `main` with its parameters in a file in a folder; it ends this process.

    It returns, with the exit status 130, only if a signal came while the node was being built.
    """
    parameters = folder / f'{spec.name}.yaml'
    write_text(parameters, parameter_file([spec]))
    try:
        return main(process_command([spec], parameters)[1:])
    except SystemExit as end:
        if end.code != 0:
            raise
        return EXIT_INTERRUPTED
