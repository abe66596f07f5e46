"""Errors with which a node ends, in one line without a traceback."""

from __future__ import annotations

from softarm_ros.nodes.process import EXIT_FAILED, EXIT_INTERRUPTED


class NodeFailedError(RuntimeError):
    """The node cannot go on; the message explains it, so no traceback is printed."""

    status = EXIT_FAILED


class NodeInterruptedError(NodeFailedError):
    """A signal ended the node before its work was done; raised by its `close`."""

    status = EXIT_INTERRUPTED


class RefusedError(ValueError):
    """A node refuses to start with its parameters; `node` names it if a process has several."""

    def __init__(self, what: str, node: str = '') -> None:
        super().__init__(what)
        self.node = node
