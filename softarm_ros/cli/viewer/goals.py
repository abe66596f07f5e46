"""A target to drag, and sliders of the configuration, for an arm that takes goals."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from softarm_ros.cli.cli_errors import number_of
from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.path import build_path
from softarm_ros.control.trajectory_config import MIN_SPACING_M, TrajectoryConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.schema import Rig

_SETTLES_S = 0.6  # until a sent target shows in the reference that the arm reports
# A browser sends a press 50 ms after the last change of a field if it drops later changes.
_LOST_S = 0.15
_STEPS = 200  # number of steps of a slider
_LAP_POINTS = 120


class Sender(Protocol):
    """Interface for sending goals."""

    def pose(self, position: Array) -> int:
        """Send a target (3,) [m]."""
        ...

    def stream(self, position: Array) -> int:
        """Send one target (3,) [m] of a stream."""
        ...

    def path(self, points: Array) -> None:
        """Send the points (n, 3) [m] of a path to follow."""
        ...

    def configuration(self, values: Array) -> int:
        """Send a configuration (dof,)."""
        ...


class GoalControls:
    """
    Sends the target's position as a stream while it is dragged, and as a goal when it is released.

    The browser's callbacks run on other threads and only set flags; the viewer's loop calls `send`
    and `show`.
    """

    def __init__(self, server: Any, rig: Rig, sender: Sender, say: Callable[[str], None]) -> None:
        self._sender, self._say = sender, say
        self._lock = threading.Lock()
        self._dragging = False
        self._let_go = False
        self._asked = False
        self._quiet_until = 0.0
        self._goal = ''
        model = rig.model()
        self._names = model.configuration_names
        self._target = server.scene.add_transform_controls(
            '/target',
            scale=0.25 * model.rest_length_m,
            disable_rotations=True,
            depth_test=False,
            visible=False,
        )
        self._target.on_update(self._on_drag)
        self._folder = server.gui.add_folder('move', expand_by_default=True)
        with self._folder:
            # Text fields: number fields drop characters they cannot parse, so 40.5 becomes 405.
            self._fields = {
                f'{axis} [mm]': server.gui.add_text(
                    f'{axis} [mm]', '', hint='Of the target, base frame.'
                )
                for axis in 'xyz'
            }
            for field in self._fields.values():
                field.on_update(self._on_edit)
            server.gui.add_button('Go there', hint='Sends x, y, z as a goal.').on_click(
                self._on_go
            )
            self._trajectories = rig.trajectories
            self._driven = server.gui.add_dropdown('trajectory', tuple(rig.trajectories))
            server.gui.add_button('Drive', hint='One lap, from rest to rest.').on_click(
                self._on_drive
            )
        self._sliders, self._bounds = self._add_sliders(server, rig)
        self._folder.visible = self._shown = False
        self._typed = self._hasty = False
        self._edited_s = -np.inf
        self._configured = False
        self._path = False

    def _add_sliders(self, server: Any, rig: Rig) -> tuple[list[Any], ConfigurationLimits]:
        limits = rig.configuration_limits()
        low, high = _ranges(limits)
        sliders: list[Any] = []
        if not np.all(np.isfinite(high - low)):
            return sliders, limits
        with (
            self._folder,
            server.gui.add_folder('configuration', expand_by_default=False),
        ):
            for name, least, most in zip(self._names, low.tolist(), high.tolist()):
                step = (most - least) / _STEPS
                sliders.append(
                    server.gui.add_slider(name, least, most, step, 0.5 * (least + most))
                )
            server.gui.add_button(
                'Set configuration', hint='Moves all coordinates; the model alone leads there.'
            ).on_click(self._on_configuration)
        return sliders, limits

    # -- the browser's threads

    # A coroutine: on threads, the end of a drag could overtake its earlier events.
    async def _on_drag(self, event: Any) -> None:
        with self._lock:
            if event.phase == 'start':
                self._dragging = self._shown
            elif event.phase == 'end':
                self._let_go, self._dragging = self._let_go or self._dragging, False

    async def _on_edit(self, event: Any) -> None:
        if event.client_id is not None:  # else it was filled here
            with self._lock:
                self._edited_s = time.monotonic()

    async def _on_go(self, _: Any) -> None:
        with self._lock:
            self._typed = time.monotonic() - self._edited_s > _LOST_S
            self._hasty = not self._typed

    def _on_drive(self, _: Any) -> None:
        with self._lock:
            self._path = True

    def _on_configuration(self, _: Any) -> None:
        with self._lock:
            self._configured = True

    # -- the viewer's loop

    def send(self) -> None:
        """Send the goals that the user requested since the last call."""
        with self._lock:
            dragging, let_go, typed = self._dragging, self._let_go, self._typed
            configured, driven = self._configured, self._path
            hasty = self._hasty
            self._let_go = self._typed = self._configured = self._path = self._hasty = False
        if not self._shown:
            return
        if hasty:
            self._say(
                'Go there was pressed while x, y, z were changing: the browser may have lost the '
                'end; check them and press again; nothing was sent'
            )
            self._write([field.value for field in self._fields.values()])
        place = self._place() if typed else None
        if let_go:
            self._sender.pose(np.array(self._target.position))
            self._fill(np.array(self._target.position))
        elif dragging:
            self._sender.stream(np.array(self._target.position))
        elif place is not None:
            self._sender.pose(place)
            # A slow browser may lose the end of what is typed: the fields show what was sent.
            self._fill(place)
        elif driven:
            self._sender.path(_lap(self._trajectories[self._driven.value]))
        elif configured:
            if self._goal:
                self._say(f'{self._goal} is under way; the configuration is set when it has ended')
                return
            values = np.array([slider.value for slider in self._sliders], dtype=float)
            self._sender.configuration(self._bounds.clipped(values))
        if let_go or dragging or place is not None or driven:
            self._quiet_until = time.monotonic() + _SETTLES_S

    def show(
        self, takes_goals: bool, goal: str, reference: Array | None, configuration: Array | None
    ) -> None:
        """Show the controls if the arm takes goals; at rest, put the target at the reference."""
        self._goal = goal
        shown = takes_goals and reference is not None
        if shown != self._shown:
            with self._lock:
                # The browser does not report the end of a drag of a target that is hidden: the
                # drag ends here, or it would move the arm as soon as the arm is started again.
                self._shown, self._dragging, self._let_go = shown, False, False
            self._folder.visible = self._target.visible = shown
            self._follow(configuration)
            if reference is not None:
                self._fill(reference)
        if not shown or reference is None or self._dragging:
            return
        if goal or time.monotonic() < self._quiet_until:
            return
        if float(np.max(np.abs(np.array(self._target.position) - reference))) > 1e-5:
            self._target.position = tuple(reference.tolist())

    def _place(self) -> Array | None:
        """Return the typed target (3,) [m]; None, with a message, if a field is not a number."""
        place = []
        for name, field in self._fields.items():
            try:
                place.append(number_of(field.value))
            except ValueError:
                place.append(np.nan)
            if not np.isfinite(place[-1]):
                self._say(f'{name}: {field.value!r} is no number, such as 40.5; nothing was sent')
                return None
        return 1e-3 * np.array(place)

    def _fill(self, position: Array) -> None:
        """Set the text fields to a position (3,) [m]."""
        self._write([f'{value:.1f}' for value in (1e3 * position).tolist()])

    def _write(self, texts: list[str]) -> None:
        """Show texts in the fields, also where a browser has lost a change to them."""
        for field, text in zip(self._fields.values(), texts):
            field.value = ''  # viser does not send a value that it has
            field.value = text

    def _follow(self, configuration: Array | None) -> None:
        """Set the sliders to a configuration (dof,)."""
        if configuration is None or not self._sliders:
            return
        for slider, value in zip(self._sliders, configuration.tolist()):
            slider.value = float(np.clip(value, slider.min, slider.max))


def _lap(trajectory: TrajectoryConfig) -> Array:
    """
    Return points (n, 3) [m] of one lap of a trajectory.

    Corners of the path are among the points.
    """
    path = build_path(trajectory)
    points = path.sample(_LAP_POINTS)
    apart = np.linalg.norm(np.diff(points, axis=0), axis=1) > MIN_SPACING_M
    return np.asarray(points[np.append(True, apart)])


def _ranges(limits: ConfigurationLimits) -> tuple[Array, Array]:
    """Return the lowest and highest value (dof,) of each coordinate."""
    low, high = limits.lower.copy(), limits.upper.copy()
    for pair, most in zip(limits.bends, limits.max_bending_rad):
        low[pair] = np.maximum(low[pair], -most)
        high[pair] = np.minimum(high[pair], most)
    return low, high
