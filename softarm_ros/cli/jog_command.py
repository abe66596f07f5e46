"""`softarm jog`: move one actuator by hand, to check that it is wired as in the rig file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.edge_units import edge_unit
from softarm_ros.cli.instance_lock import instance_lock
from softarm_ros.cli.run_command import EXIT_INCOMPLETE, EXIT_INTERRUPTED
from softarm_ros.cli.stop_request import stop_on_signals
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.drivers.actuator_driver import FedByPressures
from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.rigs.errors import did_you_mean, listed
from softarm_ros.rigs.graph import REAL_TIME_PRIORITY
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.addresses import addressed
from softarm_ros.runtime.arm_assembly import build_actuator_driver
from softarm_ros.runtime.emulated_bench import EmulatedBench
from softarm_ros.runtime.jog import Jog, JogError, JogMove, JogStep
from softarm_ros.runtime.pressure_feed import PressureFeed
from softarm_ros.runtime.scheduling import raise_priority

SLOW = 0.1  # default speed, as a share of the actuator's greatest
_PRINT_S = 0.25
BACKENDS = ('hardware', 'emulated')
Print = Callable[[str], None]


@dataclass(frozen=True)
class JogOptions:
    """Arguments of `softarm jog`; amount and speed are in display units (`edge_unit`)."""

    actuator: str
    amount: float
    speed: float | None = None
    backend: str = 'hardware'
    home: bool = False
    hold_s: float = 1.0
    seed: int = 0


def plan_move(rig: Rig, options: JogOptions) -> JogMove:
    """
    Return the move in SI units.

    Raises
    ------
    UsageError
        If actuator or backend are unknown, or a number is out of range.
    RigError
        If the rig has no devices.

    """
    limits = rig.actuator_limits()
    if options.actuator not in limits.names:
        hint = did_you_mean(options.actuator, limits.names)
        raise UsageError(f'no actuator {options.actuator!r}{hint}; known: {listed(limits.names)}')
    if options.backend not in BACKENDS:
        raise UsageError(f'--backend {options.backend!r}: expected {" or ".join(BACKENDS)}')
    rig.required_devices(options.backend)
    index = limits.names.index(options.actuator)
    unit, factor = edge_unit(limits.unit)
    full = float(limits.position_max[index] - limits.position_min[index])
    amount, most = options.amount / factor, float(limits.max_speed[index])
    if not 0.0 < abs(amount) <= full:
        raise UsageError(
            f'AMOUNT {options.amount:g}: expected up to {factor * full:g} {unit}, up or down'
        )
    speed = SLOW * most if options.speed is None else options.speed / factor
    if not 0.0 < speed <= most:
        raise UsageError(
            f'--speed {options.speed:g}: expected above 0, at most {factor * most:g} {unit}/s'
        )
    if not 0.0 <= options.hold_s <= 600.0:
        raise UsageError(f'--hold-s {options.hold_s:g}: expected 0 to 600 s')
    return JogMove(index, amount, speed, options.hold_s)


def describe(rig: Rig, move: JogMove, options: JogOptions) -> str:
    """Return a description of the move, for the user to confirm."""
    limits = rig.actuator_limits()
    unit, factor = edge_unit(limits.unit)
    first = 'homes all actuators, then ' if options.home else ''
    return (
        f'{rig.name} ({options.backend}): {first}moves {limits.names[move.actuator]} by '
        f'{factor * move.amount:+g} {unit} at {factor * move.speed:g} {unit}/s'
    )


def run_jog(rig: Rig, move: JogMove, options: JogOptions, out: Print) -> int:
    """
    Move the actuator, print progress, and return the exit status.

    Raises
    ------
    RigError
        If the rig declares no devices.
    EmulationError, DriverError
        If devices cannot be emulated here, or a library is missing.
    AlreadyRunningError
        If the rig is already running.

    """
    limits = rig.actuator_limits()
    with contextlib.ExitStack() as stack:
        stack.enter_context(instance_lock(rig.name))
        folder = None
        if options.backend == 'emulated':
            folder = stack.enter_context(EmulatedBench(rig, options.seed)).folder
        stopped = stack.enter_context(stop_on_signals())
        jog = stack.enter_context(_started(rig, folder, stopped))
        try:
            jog.make_ready(options.home)
            end = jog.move(move, _printing(limits, move.actuator, out))
        except JogError as error:
            out(f'{limits.names[move.actuator]}: {error}')
            if 'homed' in str(error) and not options.home:
                out('(with the arm at rest, --home takes it as the rest actuation)')
            return EXIT_INTERRUPTED if stopped() else EXIT_INCOMPLETE
    return report_end(limits, move, end, out)


@contextlib.contextmanager
def _started(rig: Rig, folder: Path | None, stopped: Callable[[], bool]) -> Iterator[Jog]:
    driver = build_actuator_driver(rig, folder)
    limits = rig.actuator_limits()
    feed = None
    if isinstance(driver, FedByPressures):
        daq = getattr(addressed(rig.required_devices('hardware'), folder), 'daq', None)
        if not isinstance(daq, DaqConfig):
            raise UsageError(f'{rig.name}: drives.daq is missing; the drives need its pressures')
        feed = PressureFeed(daq, limits.names, driver)
    jog = Jog(driver, limits, feed, stopped)
    # As for the nodes that drive an arm, if permitted: a board that hears nothing for long stops.
    raise_priority(REAL_TIME_PRIORITY)
    try:
        jog.start()
        yield jog
    finally:
        jog.close()


def _printing(limits: ActuatorLimits, index: int, out: Print) -> Callable[[JogStep], None]:
    unit, factor = edge_unit(limits.unit)
    due = 0.0

    def show(step: JogStep) -> None:
        nonlocal due
        if step.time_s >= due:
            due = step.time_s + _PRINT_S
            out(
                f'{step.time_s:6.2f} s  commanded {factor * step.command:9.3f} {unit}  '
                f'measured {factor * step.measured:9.3f} {unit}'
            )

    return show


def report_end(limits: ActuatorLimits, move: JogMove, end: JogStep, out: Print) -> int:
    """Print the end of a completed move; return whether the actuator followed, as exit status."""
    unit, factor = edge_unit(limits.unit)
    name = limits.names[move.actuator]
    out(
        f'{name}: commanded {factor * end.command:.3f} {unit}, measured '
        f'{factor * end.measured:.3f} {unit}'
    )
    if end.there(move):
        return 0
    apart = factor * abs(end.measured - end.command)
    out(
        f'{name}: not where it was sent: {apart:.3f} {unit} away after a move of '
        f'{factor * move.amount:+g} {unit} (limit: half of it); is it wired as the rig file says, '
        'free to move and supplied?'
    )
    return EXIT_INCOMPLETE
