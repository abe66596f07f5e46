"""Base class of nodes that own devices, real or emulated: their lifecycle."""

from __future__ import annotations

import contextlib
import time
import traceback
from abc import abstractmethod
from typing import Any

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from softarm_ros.clock import Rhythm
from softarm_ros.nodes.heartbeat import INACTIVE, SHUT_DOWN, UNCONFIGURED, Heartbeat
from softarm_ros.nodes.node_errors import NodeFailedError
from softarm_ros.nodes.node_parameters import (
    declare,
    declare_priority,
    declare_rig,
    declare_time_scale,
)
from softarm_ros.nodes.other_nodes import refuse_twin
from softarm_ros.nodes.self_paced import SelfPaced
from softarm_ros.runtime.addresses import NoDevicesYetError
from softarm_ros.runtime.part_failure import failure_text, part_at_fault

RETRY_S = 0.25
LOOK_S = 1.0  # between two looks at the addresses of the devices


class HardwareNode(SelfPaced, LifecycleNode):
    """
    Connects devices when configured, lets them work while active, and always releases them.

    | transition | method called |
    |---|---|
    | configure | `connect`; if it fails, `release` as well |
    | activate, deactivate | `begin`, `rest` |
    | cleanup, shutdown, an error, the end of the process | `release`, once for each `connect` |

    With `autostart` it configures and activates itself as soon as its executor runs. It retries
    while the devices do not exist yet; any other failure then ends the process. From `connect` on,
    `turn` is called once every `tick_s`. If the devices have other `addresses` than at `connect`,
    it cleans itself up and connects again.

    Its heartbeat begins as `unconfigured`; a subclass sets it while the node is configured.
    """

    def __init__(self, name: str, tick_s: float, **options: Any) -> None:
        super().__init__(name, **options)
        refuse_twin(self)
        self.rig = declare_rig(self)
        declare_time_scale(self)
        declare_priority(self)
        # Deferred until the executor runs: further start-up work would delay answers to devices.
        self._starting = declare(self, 'autostart', True, 'configure and activate by itself')
        self._retry_s = self._look_s = 0.0
        self._found: object = None  # addresses of the connected devices
        self._rhythm = Rhythm(tick_s)
        self._connected = False
        self._woken = False
        self._failure = ''
        self.active = False
        self.heartbeat = Heartbeat(self, self.rig.name, fill=self.heartbeat_values)
        self.heartbeat.waiting(UNCONFIGURED)

    # -- for subclasses

    @abstractmethod
    def connect(self) -> None:
        """
        Connect the devices; nothing moves yet.

        Raises
        ------
        NoDevicesYetError
            While the devices do not exist yet; the node tries again.
        ValueError, RuntimeError, OSError
            If the devices cannot be reached at all.

        """

    @abstractmethod
    def release(self) -> None:
        """Stop, switch off and disconnect the devices, also after a half-completed `connect`."""

    @abstractmethod
    def turn(self, now_s: float) -> None:
        """Do the work of one tick at a monotonic time [s]; take a few milliseconds at most."""

    @abstractmethod
    def heartbeat_values(self) -> dict[str, str]:
        """Return the diagnostic values of each heartbeat."""

    def news(self) -> None:
        """Take what a thread of a device called `wake` for."""

    def wake(self) -> None:
        """
        Have `news` called at once, in the thread of the node; may be called from any thread.

        Several calls before `news` count as one.
        """
        if self._woken:
            return
        self._woken = True
        executor = self.executor  # without one, the next tick takes the news
        if executor is not None:
            executor.create_task(self._hurry)

    def _hurry(self) -> None:
        self.due = 0.0

    def addresses(self) -> object:
        """Return where the devices are now; NoDevicesYetError if they do not exist."""
        return None

    def begin(self) -> None:
        """Let the devices work."""

    def rest(self) -> None:
        """Stop the devices; they stay connected."""

    def idle(self) -> str:
        """Return why the node does not work: it is inactive, or why it is unconfigured; or ''."""
        if self.active:
            return ''
        return INACTIVE if self._connected else self.heartbeat.message

    # -- lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Connect."""
        self._connected = True
        try:
            self._found = self.addresses()
            self.connect()
        except NoDevicesYetError as error:
            self._release()
            if self._starting:
                self.heartbeat.waiting(f'waiting: {error}')
            else:
                self.heartbeat.error(f'{error}; call configure again')
            return TransitionCallbackReturn.FAILURE
        except (ValueError, RuntimeError, OSError) as error:
            self._starting = False
            self._failure = failure_text(error)
            self._release()  # if this fails as well, `on_error` tells the first failure
            self.heartbeat.error(self._failure)
            return TransitionCallbackReturn.FAILURE
        except Exception as error:
            return self._failed(error)
        self._starting = False
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let the devices work."""
        try:
            self.begin()
        except Exception as error:
            return self._failed(error)
        self.active = True
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop; stay connected."""
        self.active = False
        try:
            self.rest()
        except Exception as error:
            return self._failed(error)
        self.heartbeat.waiting(INACTIVE)
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop, switch off and disconnect."""
        try:
            self._release()
        except Exception as error:
            return self._failed(error)
        self.heartbeat.waiting(UNCONFIGURED)
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop, switch off and disconnect for the last time."""
        self._starting = False
        try:
            self._release()
        except Exception as error:
            return self._failed(error)
        self.heartbeat.waiting(SHUT_DOWN)
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop, switch off and disconnect after a failed transition; become unconfigured."""
        self._starting = False
        self._release()
        self.heartbeat.error(self._failure)
        return super().on_error(state)

    def close(self) -> None:
        """Stop, switch off and disconnect; the process ends."""
        self._release()

    def _failed(self, error: Exception) -> TransitionCallbackReturn:
        """Log the traceback of a defect of ours, which rclpy does not do; `on_error` follows."""
        if part_at_fault(error):
            self._failure = failure_text(error)
        else:
            self.get_logger().error(''.join(traceback.format_exception(error)))
            self._failure = f'failed: {error!r}'
        return TransitionCallbackReturn.ERROR

    def _release(self) -> None:
        self.active = False
        if self._connected:
            self._connected = False
            self.release()

    # -- work

    def work(self) -> None:
        """Start the node if it has not started yet, then call `turn`."""
        now = time.monotonic()
        if self._starting:
            self._start(now)  # takes long, which must not count as lateness of the devices
            now = time.monotonic()
        if self._woken:
            self._woken = False
            if self._connected:
                self.news()
            now = time.monotonic()
            self.due = self._rhythm.due_s
            if now < self.due:
                return
        late_s = self._rhythm.turn(now)
        self.due = self._rhythm.due_s
        if self._connected:
            self.heartbeat.late(late_s)
            self.turn(now)
            self._follow_devices(now)

    def _start(self, now_s: float) -> None:
        if now_s < self._retry_s:
            return
        self._retry_s = now_s + RETRY_S
        if self.trigger_configure() is TransitionCallbackReturn.SUCCESS:
            self.trigger_activate()
            self._rhythm = Rhythm(self._rhythm.period_s)
        elif not self._starting:
            raise NodeFailedError(self.heartbeat.message)

    def _follow_devices(self, now_s: float) -> None:
        """Connect again if the devices have new addresses, as after a restart of the emulator."""
        if now_s < self._look_s:
            return
        self._look_s = now_s + LOOK_S
        with contextlib.suppress(NoDevicesYetError):
            if self.addresses() == self._found:
                return
            self.get_logger().warning('the devices have new addresses: connecting again')
            was_active = self.active
            if was_active:
                self.trigger_deactivate()
            self.trigger_cleanup()
            if self.trigger_configure() is TransitionCallbackReturn.SUCCESS and was_active:
                self.trigger_activate()
            self._rhythm = Rhythm(self._rhythm.period_s)
