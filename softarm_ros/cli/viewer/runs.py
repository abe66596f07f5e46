"""Controls that start and end simulated runs from the browser, each by `softarm run`."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

from softarm_ros.nodes.process import child_environment
from softarm_ros.own_module import own_module
from softarm_ros.rigs.arguments import setting_options
from softarm_ros.rigs.part_registry import kinds_of
from softarm_ros.rigs.schema import Rig

GOALS = 'wait for goals'
_OWN = "the rig's"
_GRACE_S = 15.0  # a run stops the arm and its nodes before it ends


def run_command(rig: Rig, trajectory: str, controller: str, model: str) -> list[str]:
    """Return the command of a simulated run; `GOALS` and `_OWN` become other options or none."""
    words = own_module('softarm_ros.cli', 'run', str(rig.source or rig.name))
    words += ['--backend', 'sim']
    words += ['--goals'] if trajectory == GOALS else ['--trajectory', trajectory]
    words += [] if controller == _OWN else ['--controller', controller]
    words += [] if model == _OWN else ['--model', model]
    return words + setting_options(rig.settings)


class RunControls:
    """
    Menus of trajectory, controller and model, and buttons that start and end a simulated run.

    Shown while no graph of the rig is heard, or the running one was started here. `close` ends a
    run started here. Hardware is started in a terminal, where somebody watches the arm.
    """

    def __init__(self, gui: Any, rig: Rig, say: Callable[[str], None]) -> None:
        self._rig, self._say = rig, say
        self._asked: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        # A file, closed by `close`: a pipe would fill up, as nobody reads it.
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115
        self._ending = False
        self._folder = gui.add_folder('simulated run', expand_by_default=True, order=-0.5)
        with self._folder:
            self._trajectory = gui.add_dropdown('trajectory', (*rig.trajectories, GOALS))
            self._controller = gui.add_dropdown('controller', (_OWN, *kinds_of('controller')))
            self._model = gui.add_dropdown('model', (_OWN, *rig.model_names))
            gui.add_button('Run', color='green').on_click(lambda _: self._asked.put('run'))
            gui.add_button('End run').on_click(lambda _: self._asked.put('end'))
        self._shown = True

    def update(self, heard: bool) -> None:
        """Handle pressed buttons; `heard` tells whether nodes of a graph report that they run."""
        self._watch()
        shown = self._process is not None or not heard
        if shown != self._shown:
            self._folder.visible = self._shown = shown
        while not self._asked.empty():
            if self._asked.get() == 'end':
                self._end()
            elif self._process is not None or heard:
                self._say('a run is under way; end it first')
            else:
                self._begin()

    def close(self) -> None:
        """End the run started here and wait for it."""
        process = self._process
        if process is not None:
            self._end()
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            self._process = None
        self._complaints.close()

    def _begin(self) -> None:
        chosen = self._trajectory.value, self._controller.value, self._model.value
        command = run_command(self._rig, *chosen)
        self._complaints.seek(0)
        self._complaints.truncate()
        # Its own session: Ctrl-C in the terminal reaches only the viewer, which then ends the run.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._complaints,
            start_new_session=True,
            env=child_environment(os.environ),
        )
        self._ending = False
        self._say(f'begun: softarm {" ".join(command[3:])}')

    def _end(self) -> None:
        if self._process is None:
            self._say('no run that was started here is under way')
        elif not self._ending:
            self._ending = True
            self._process.send_signal(signal.SIGINT)

    def _watch(self) -> None:
        process = self._process
        if process is None or process.poll() is None:
            return
        self._process = None
        self._complaints.seek(0)
        why = self._complaints.read()
        last = why.decode(errors='replace').strip().splitlines()[-1:]
        said = '' if self._ending or not last else f': {last[0]}'
        self._say(f'the run has ended (exit status {process.returncode}){said}')
