"""`softarm view`: shows a running arm or a recorded run in a browser."""

from __future__ import annotations

import contextlib
import io
import queue
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.viewer.desktop import open_page
from softarm_ros.cli.viewer.goals import GoalControls
from softarm_ros.cli.viewer.guard import ALL, HOST, Guard, OpenDoorError
from softarm_ros.cli.viewer.history import History
from softarm_ros.cli.viewer.panel import Panel
from softarm_ros.cli.viewer.runs import RunControls
from softarm_ros.cli.viewer.scene import ArmScene
from softarm_ros.cli.viewer.standpoint import Standpoint, standpoint
from softarm_ros.rigs.rig_files import rig_arguments
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.part_failure import FailureWords
from softarm_ros.runtime.view_state import ViewState

PORT = 8080
FRAME_S = 1.0 / 30.0
_PLOT_S = 0.25
_LAST_S = 0.1  # in which the server's thread sends the last messages to the browsers


class Viewer:
    """
    A server that shows one arm; a context manager that stops the server at its end.

    The server answers only requests with the token in the address, and only from this computer
    unless `host` is another of its addresses: whoever reaches it can stop, start and move the arm.

    Raises
    ------
    UsageError
        If viser is not installed, answers requests without the token, or cannot listen at `host`.

    """

    def __init__(
        self, rig: Rig, port: int, act: Callable[[str], None] | None, *, host: str = HOST
    ) -> None:
        check_host(host)
        try:
            import viser
        except ImportError as error:
            raise UsageError(
                f"the viewer needs viser ({error}): pip install 'softarm_ros[view]'"
            ) from None
        self._guard, self._host = Guard(host), host
        # viser prints its address without the token, which is refused.
        with self._guard.installed(), contextlib.redirect_stdout(io.StringIO()):
            self._server: Any = viser.ViserServer(host=host, port=port, verbose=False)
        try:
            self._guard.check_closed(self._server.get_port())
        except OpenDoorError as error:
            self._server.stop()
            raise UsageError(f'access to the viewer cannot be restricted: {error}') from None
        self._server.gui.configure_theme(
            control_width='large', show_logo=False, show_share_button=False
        )
        self._server.gui.main_panel.dock_right()
        self._server.gui.set_panel_label(rig.name)
        self.scene = ArmScene(self._server.scene, rig)
        limits, names = rig.actuator_limits(), rig.model().configuration_names
        self._chosen: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
        self.panel = Panel(
            self._server.gui,
            rig.name,
            rig_arguments(rig.name, rig.source, rig.settings),
            limits,
            names,
            rig.model_names,
            act,
            self._chosen.put,
        )
        self.history = History(len(limits.names), len(names))
        self._failures = FailureWords()
        self._plot_s = 0.0
        self.look_from(standpoint(rig.gravity_m_s2, self.scene.length_m))

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *reason: object) -> None:
        self.panel.end()
        self._server.flush()
        time.sleep(_LAST_S)
        self._server.stop()

    def look_from(self, where: Standpoint) -> None:
        """Set the initial camera of browsers that connect from now on."""
        self._server.initial_camera.position = where.eye
        self._server.initial_camera.look_at = where.looks_at

    @property
    def address(self) -> str:
        """URL of the viewer; on another port than requested if that was taken."""
        name = socket.gethostname() if self._host == ALL else self._host
        return f'http://{name}:{self._server.get_port()}/{self._guard.token}'

    @property
    def server(self) -> Any:
        """The viser server, to add controls to."""
        return self._server

    def show(self, state: ViewState, now_s: float) -> None:
        """Draw a state; redraw the plots a few times a second."""
        while not self._chosen.empty():
            undrawn = self._try(self.scene.overlay, self._chosen.get())
            if undrawn:
                self.panel.say(undrawn)
        with self._server.atomic():
            self.panel.show(state, self._try(self.scene.show, state))
            if state.tip is not None or state.command is not None:
                self.history.add(now_s, state)
            now = time.monotonic()
            if now >= self._plot_s:
                self._plot_s = now + _PLOT_S
                self.panel.plot(self.history)

    def _try(self, draw: Callable[[Any], None], what: Any) -> str:
        """Draw something; return what failed, or ''. The buttons of a running arm must stay."""
        try:
            draw(what)
        except Exception as error:  # a model of another package may raise anything
            return f'not drawn: {self._failures.of(error)}'
        return ''


def check_host(host: str) -> None:
    """
    Check that the viewer can listen at an address.

    Raises
    ------
    UsageError
        If this computer has no such address.

    """
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
            trial.bind((host, 0))
    except OSError as error:
        raise UsageError(
            f'--host {host}: expected an IPv4 address or a name of this computer, or {ALL} for '
            f'all of its addresses ({error.strerror})'
        ) from None


def view_graph(
    rig: Rig,
    port: int,
    console: Console,
    stopped: Callable[[], bool],
    *,
    host: str = HOST,
    opened: bool = False,
    runs: bool = True,
) -> None:
    """
    Show the graph of a rig until `stopped`, whether it runs yet or not.

    With `opened`, open the page in a browser if there is a desktop. With `runs`, offer controls to
    start a simulated run.
    """
    try:
        from softarm_ros.nodes.goal_client import GoalSender
        from softarm_ros.nodes.view_feed import ViewFeed
    except ImportError as error:
        raise UsageError(
            f'a running arm is shown over ROS 2, which is not available ({error}); a bag can be '
            'viewed without it'
        ) from None

    asked: queue.SimpleQueue[str] = queue.SimpleQueue()
    with (
        ViewFeed(rig) as feed,
        Viewer(rig, port, asked.put, host=host) as viewer,
        contextlib.ExitStack() as ends,
    ):
        console.print(f'{rig.name}: {viewer.address}  (Ctrl-C ends the viewer, not the arm)')
        goals = GoalControls(viewer.server, rig, GoalSender(feed, rig), viewer.panel.say)
        begun = RunControls(viewer.server.gui, rig, viewer.panel.say) if runs else None
        if begun is not None:
            ends.callback(begun.close)
        if opened:
            open_page(viewer.address)
        path = None
        while not stopped():
            feed.spin(FRAME_S)
            due: list[str] = []
            while due := in_order([*due, *_taken(asked)]):
                name = due.pop(0)
                _, answer = feed.call(f'supervisor/{name}')
                viewer.panel.say(f'{name}: {answer}')
            for report in feed.take_reports():
                viewer.panel.say(f'goal: {report}')
            goals.send()
            if feed.path is not path:
                path = feed.path
                viewer.scene.show_path(path)
                viewer.scene.forget_trail()
            state = feed.state()
            if begun is not None:
                begun.update(bool(state.state))
            viewer.show(state, state.time_s)
            goals.show(feed.takes_goals, feed.goal, state.reference, feed.commanded)
        feed.spin(FRAME_S)  # the page that stays must not show a state before a stop
        state = feed.state()
        viewer.show(state, state.time_s)


def in_order(asked: list[str]) -> list[str]:
    """Return the requests to the supervisor that count: an emergency stop cancels earlier ones."""
    stops = [place for place, name in enumerate(asked) if name == 'estop']
    return asked[stops[-1] :] if stops else asked


def _taken(asked: queue.SimpleQueue[str]) -> list[str]:
    """Take all entries from a queue; return them, oldest first."""
    return [asked.get() for _ in range(asked.qsize())]


class Place:
    """
    Playing position in a recorded run of a duration [s]; starts again after the end.

    Attributes
    ----------
    shown_s : float
        Position on the slider, rounded to hundredths of a second.

    """

    def __init__(self, duration_s: float) -> None:
        self._duration_s = duration_s
        self._place_s = self.shown_s = 0.0

    def go_on(self, slider_s: float, passed_s: float) -> None:
        """Adopt the slider if the user moved it, then advance by the time played [s]."""
        if slider_s != self.shown_s:
            self._place_s = slider_s
        self._place_s += passed_s
        if self._place_s > self._duration_s:
            self._place_s = 0.0
        self.shown_s = round(self._place_s, 2)


def view_bag(
    bag: Path,
    rig: Rig,
    port: int,
    console: Console,
    stopped: Callable[[], bool],
    *,
    host: str = HOST,
    opened: bool = False,
) -> None:
    """
    Show a recorded run, with a slider for the time, until `stopped`.

    With `opened`, open the page in a browser if there is a desktop.
    """
    from softarm_ros.cli.viewer.bag_states import BagStates

    states = BagStates.read(bag, rig)
    for note in states.notes:
        console.print(f'{bag}: {note}', markup=False)
    with Viewer(states.rig, port, None, host=host) as viewer:
        playing = viewer.server.gui.add_checkbox('play', initial_value=True, order=-2.0)
        slider = viewer.server.gui.add_slider(
            'time [s]', 0.0, max(round(states.duration_s, 2), 0.01), 0.01, 0.0, order=-1.0
        )
        console.print(f'{bag}: {viewer.address}  (Ctrl-C ends the viewer)')
        if opened:
            open_page(viewer.address)
        shown, redraw_s, path = -1.0, 0.0, None
        place = Place(slider.max)
        looked_at = time.monotonic()
        while not stopped():
            time.sleep(FRAME_S)
            now = time.monotonic()
            place.go_on(float(slider.value), now - looked_at if playing.value else 0.0)
            looked_at = now
            if playing.value:
                slider.value = place.shown_s
            now_s = place.shown_s
            if now_s == shown and now < redraw_s:
                continue
            # At rest, too: plots are drawn later than the arm, and models may be chosen.
            redraw_s = now + _PLOT_S
            if not shown <= now_s <= shown + 1.0:
                viewer.scene.forget_trail()
            shown = now_s
            before, path = path, states.path_at(now_s)
            if path is not before:
                viewer.scene.show_path(path)
            viewer.show(states.at(now_s), now_s)
