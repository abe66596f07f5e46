"""The viewer as a separate process, which may be late or crash without stopping the arm."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator

from softarm_ros.nodes.process import child_environment
from softarm_ros.own_module import own_module
from softarm_ros.rigs.arguments import setting_options
from softarm_ros.rigs.schema import Rig

_GRACE_S = 3.0
_NICE = 10  # the arm has priority


@contextlib.contextmanager
def viewer_process(rig: Rig, opened: bool = False) -> Iterator[None]:
    """
    Show a rig's arm in a browser while a `with` block lasts; the viewer prints its address.

    With `opened`, it also opens the page if there is a desktop.
    """
    source = str(rig.source) if rig.source else rig.name
    command = own_module('softarm_ros.cli', 'view', source, '--no-runs')
    command += setting_options(rig.settings)
    if opened:
        command.append('--open')
    # Ctrl-C in a terminal ends the run, and the run ends its viewer.
    viewer = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_politely,
        env=child_environment(os.environ),
    )
    try:
        yield
    finally:
        viewer.send_signal(signal.SIGINT)
        try:
            viewer.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            viewer.kill()
            viewer.wait()


def _politely() -> None:
    os.nice(_NICE)
