"""The panel beside the arm: state in words, buttons, plots, health of the nodes, layers."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from softarm_ros.cli.viewer.history import History
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.geometry.arrays import Array
from softarm_ros.runtime.view_state import NO_SUPERVISOR, NodeHealth, ViewState

_COLOURS = {
    'running': '#2b8a3e',
    'ready': '#1c7ed6',
    'waiting': '#868e96',
    'held': '#e67700',
    'stopped': '#e67700',
    'fault': '#c92a2a',
    NO_SUPERVISOR: '#c92a2a',
}
_LEVELS = ('#2b8a3e', '#e67700', '#c92a2a', '#c92a2a')
_LINES = ('#e8590c', '#1971c2', '#2f9e44', '#9c36b5', '#c2255c', '#0c8599')
_SHOWN = 6  # most actuators in a plot, to keep it readable
# Units of plots, for numbers with few digits: an axis has little room.
_EDGE = {'m': ('mm', 1e3), 'Pa': ('kPa', 1e-3)}
_ESTOP_HZ = 30.0  # while the button is held
_AT_LIMIT = 0.005  # of the range: an actuator this near an end counts as at its limit


class Panel:
    """
    The controls of a viewer.

    Parameters
    ----------
    gui : viser.GuiApi
        GUI to add the controls to.
    name : str
        Name of the rig.
    argument : str
        Arguments that name the rig and its settings on the command line.
    limits : ActuatorLimits
        Limits of its actuators.
    coordinates, models : sequence of str
        Names of the configuration's coordinates, and of the models.
    act : callable, optional
        Called with start, stop, estop or reset; without it there are no buttons.
    overlay : callable
        Called with the names of the models to draw.

    """

    def __init__(
        self,
        gui: Any,
        name: str,
        argument: str,
        limits: ActuatorLimits,
        coordinates: Sequence[str],
        models: Sequence[str],
        act: Callable[[str], None] | None,
        overlay: Callable[[list[str]], None],
    ) -> None:
        self._name, self._argument = name, argument
        self._html = ''
        self._state = gui.add_html('')
        if act is not None:
            self._buttons(gui, act)
        self._answer = gui.add_html('')
        self._limits = limits
        names = limits.names
        self._first = 0  # line shown of a plot with more than _SHOWN
        self._cut: list[tuple[Any, Sequence[str]]] = []  # such plots, with all their names
        self._history: History | None = None
        unit, self._scale = _EDGE.get(limits.unit, (limits.unit, 1.0))
        self._error = self._plot(gui, 'tracking error [mm]', ['error'])
        self._commands = self._plot(gui, f'actuators, commanded [{unit}]', names)
        if len(names) > _SHOWN:
            self._add_choice(gui, names)
        self._latency = self._plot(gui, 'pose to command [ms]', ['latency'])
        with gui.add_folder('more plots', expand_by_default=False):
            # Chambers are measured by their pressures.
            what = 'pressures' if limits.unit == 'Pa' else 'actuators'
            self._measured = self._plot(gui, f'{what}, measured [{unit}]', names)
            self._effort = self._plot(gui, f'effort [{limits.effort_unit}]', names)
            self._configuration = self._plot(gui, 'configuration', coordinates)
        with gui.add_folder('models beside the arm', expand_by_default=False):
            boxes = {model: gui.add_checkbox(model, initial_value=False) for model in models}
        for box in boxes.values():
            box.on_update(
                lambda _: overlay([model for model, known in boxes.items() if known.value])
            )
        with gui.add_folder('nodes', expand_by_default=False):
            self._nodes = gui.add_html('')
        self._nodes_html = ''

    def _buttons(self, gui: Any, act: Callable[[str], None]) -> None:
        for name, label, colour, hint in (
            ('estop', 'EMERGENCY STOP', 'red', 'Holds the arm at once, until a reset.'),
            ('start', 'Start', 'green', 'Lets the arm move.'),
            ('stop', 'Stop', 'gray', 'Holds the arm; Start goes on.'),
            ('reset', 'Reset', 'gray', 'Clears a fault or an emergency stop; nothing moves.'),
        ):
            button = gui.add_button(label, color=colour, hint=hint)
            button.on_click(lambda _, asked=name: act(asked))
            if name == 'estop':
                # Acts at the press, not the release, and repeats: the browser drops a message of
                # the panel if another follows within 50 ms.
                button.on_hold(lambda _: act('estop'), callback_hz=_ESTOP_HZ)

    def _plot(self, gui: Any, title: str, names: Sequence[str]) -> Any:
        from viser import uplot

        if len(names) > _SHOWN:
            title = f'{title}, {_SHOWN} of {len(names)}'
        empty, shown = np.zeros(1), names[:_SHOWN]
        plot = gui.add_uplot(
            data=(empty, *(np.full(1, np.nan) for _ in shown)),
            series=_series(shown),
            scales={'x': uplot.Scale(time=False, auto=True), 'y': uplot.Scale(auto=True)},
            legend=uplot.Legend(show=len(names) > 1),
            title=title,
            aspect=2.4,
        )
        if len(names) > _SHOWN:
            self._cut.append((plot, names))
        return plot

    def _add_choice(self, gui: Any, names: Sequence[str]) -> None:
        """Add the choice of the actuators whose lines all plots show."""
        groups = {}
        for k in range(0, len(names), _SHOWN):
            # All plots keep their number of lines, so the last group may overlap.
            first = min(k, len(names) - _SHOWN)
            groups[f'{names[first]} to {names[first + _SHOWN - 1]}'] = first
        self._choice = gui.add_dropdown('lines', tuple(groups))
        self._choice.on_update(lambda _: self._choose(groups[self._choice.value]))

    def _choose(self, first: int) -> None:
        self._first = first
        for plot, names in self._cut:
            plot.series = _series(names[self._shown(len(names))])
        if self._history is not None:
            self.plot(self._history)

    def _shown(self, count: int) -> slice:
        """Return the lines to show of `count`."""
        first = max(min(self._first, count - _SHOWN), 0)
        return slice(first, first + _SHOWN)

    def say(self, text: str) -> None:
        """Show the outcome of a button."""
        self._answer.content = f'<div style="padding:2px 12px">{html.escape(text)}</div>'

    def show(self, state: ViewState, undrawn: str = '') -> None:
        """
        Show state and health, and `undrawn`, the reason if the arm could not be drawn.

        Only changed contents are sent to the browser.
        """
        reached = at_limits(self._limits, state.command)
        words = _words(self._name, self._argument, state, reached, undrawn)
        if words != self._html:
            self._state.content = self._html = words
        nodes = ''.join(_node(node) for node in state.nodes)
        if nodes != self._nodes_html:
            self._nodes.content = self._nodes_html = nodes

    def end(self) -> None:
        """State that the viewer has ended: the page stays in the browser."""
        self._state.content = (
            '<div style="padding:4px 12px"><b>The viewer has ended. This page shows the last it '
            f'heard, and its buttons do nothing.</b></div>{self._html}'
        )

    def plot(self, history: History) -> None:
        """Redraw the plots."""
        self._history = history
        times, error, latency, command, measured, effort, configuration = history.columns()
        for plot, columns in (
            (self._error, error),
            (self._latency, latency),
            (self._commands, self._scale * command),
            (self._measured, self._scale * measured),
            (self._effort, effort),
            (self._configuration, configuration),
        ):
            columns = columns[self._shown(len(columns))]
            # Plots cannot scale their axes with columns that contain an unknown value.
            known = np.isfinite(columns).all(axis=0)
            if np.sum(known) > 1:
                plot.data = (times[known], *columns[:, known])


def _series(names: Sequence[str]) -> tuple[Any, ...]:
    """Return the time axis and lines of these names."""
    from viser import uplot

    lines = (
        uplot.Series(label=name, stroke=_LINES[i % len(_LINES)], width=1.5)
        for i, name in enumerate(names)
    )
    return (uplot.Series(label='time [s]'), *lines)


def at_limits(limits: ActuatorLimits, command: Array | None) -> list[str]:
    """Return texts for the actuators whose command (m,) is at an end of their range."""
    if command is None:
        return []
    near = _AT_LIMIT * (limits.position_max - limits.position_min)
    return [
        f'{name} {"at its least" if low else "at its most"}'
        for name, low, high in zip(
            limits.names,
            command <= limits.position_min + near,
            command >= limits.position_max - near,
        )
        if low or high
    ]


def _words(
    name: str, argument: str, state: ViewState, reached: Sequence[str], undrawn: str
) -> str:
    colour = _COLOURS.get(state.state, '#868e96')
    title = state.state or 'no graph is running'
    lines = [state.reason] if state.reason and state.state != 'running' else []
    if state.state == NO_SUPERVISOR:
        lines = ['nodes of a graph run, but the supervisor is silent: the arm may not move']
    if state.phase:
        lap = f'{state.counts} {state.lap + 1}, {100.0 * state.progress:.0f} %'
        goal = state.goal or 'no goal is under way'
        lines.append(f'{state.phase}, {lap if state.goal is None else goal}')
    if state.error_m is not None:
        lines.append(f'error {1e3 * state.error_m:.2f} mm')
    if state.configuration is None:
        lines.append('no configuration is known: the arm is drawn at rest')
    elif not state.measured:
        led = '' if state.tip is None else ', adjusted to the measured tip'
        lines.append(f'shape as commanded{led}; sections are not measured')
    if reached:
        rest = f' and {len(reached) - _SHOWN} more' if len(reached) > _SHOWN else ''
        lines.append(f'limits reached: {", ".join(reached[:_SHOWN])}{rest}')
    if not state.state:
        lines = [f'start one: softarm run {argument}']
    lines += [undrawn] if undrawn else []
    body = ''.join(f'<div>{html.escape(line)}</div>' for line in lines)
    return (
        f'<div style="padding:4px 12px"><b style="color:{colour};font-size:1.2em">'
        f'{html.escape(name)}: {html.escape(title)}</b>{body}</div>'
    )


def _node(node: NodeHealth) -> str:
    colour = _LEVELS[min(max(node.level, 0), len(_LEVELS) - 1)]
    return (
        f'<div style="padding:1px 12px"><b style="color:{colour}">{html.escape(node.name)}</b> '
        f'{html.escape(node.message)}</div>'
    )
