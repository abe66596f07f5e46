"""The life of a node that owns devices, real or emulated: one place for all of them."""

from __future__ import annotations

import time
import traceback
from abc import abstractmethod
from typing import Any

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from softarm_ros.clock import Rhythm
from softarm_ros.nodes.node_base import (
    Heartbeat,
    NodeFailedError,
    declare,
    declare_priority,
    declare_rig,
    declare_time_scale,
    refuse_twin,
)
from softarm_ros.nodes.self_paced import SelfPaced
from softarm_ros.runtime.addresses import NoDevicesYetError

RETRY_S = 0.25


class HardwareNode(SelfPaced, LifecycleNode):
    """
    Reaches devices when configured, lets them work while active, and leaves none behind.

    | transition | what is called |
    |---|---|
    | configure | `connect`; if it fails, `release` as well |
    | activate, deactivate | `begin`, `rest` |
    | cleanup, shutdown, an error, the end of the process | `release`, once for each `connect` |

    With `autostart` it configures and activates by itself, as soon as its executor turns; while
    devices are not there yet it tries again, and what else goes wrong then ends the process. From
    `connect` on `turn` is called once in `tick_s`.

    Its heartbeat begins as `unconfigured`; a node says itself how it is while it is configured.
    """

    def __init__(self, name: str, tick_s: float, **options: Any) -> None:
        super().__init__(name, **options)
        refuse_twin(self)
        self.rig = declare_rig(self)
        declare_time_scale(self)
        declare_priority(self)
        # Not before the executor turns: what comes between would keep devices from being answered.
        self._starting = declare(self, 'autostart', True, 'configure and activate by itself')
        self._retry_s = 0.0
        self._rhythm = Rhythm(tick_s)
        self._connected = False
        self._failure = ''
        self.active = False
        self.heartbeat = Heartbeat(self, self.rig.name, fill=self.heartbeat_values)
        self.heartbeat.waiting('unconfigured')

    # -- what a node is about

    @abstractmethod
    def connect(self) -> None:
        """
        Reach the devices; nothing moves yet.

        Raises
        ------
        NoDevicesYetError
            While they are not there; it is tried again.
        ValueError, RuntimeError, OSError
            If they cannot be reached at all.

        """

    @abstractmethod
    def release(self) -> None:
        """Stop, switch off and disconnect, also after a `connect` that has failed half-way."""

    @abstractmethod
    def turn(self, now_s: float) -> None:
        """Do what is due, at a monotonic time [s]; a few milliseconds at most."""

    @abstractmethod
    def heartbeat_values(self) -> dict[str, str]:
        """Return the values that go with each heartbeat."""

    def begin(self) -> None:
        """Let the devices work."""

    def rest(self) -> None:
        """Stop the devices; they stay connected."""

    # -- lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Connect."""
        self._connected = True
        try:
            self.connect()
        except NoDevicesYetError as error:
            self._release()
            self.heartbeat.waiting(f'waiting: {error}')
            return TransitionCallbackReturn.FAILURE
        except (ValueError, RuntimeError, OSError) as error:
            self._starting = False
            self._release()
            self.heartbeat.error(str(error))
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
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop, switch off and disconnect."""
        try:
            self._release()
        except Exception as error:
            return self._failed(error)
        self.heartbeat.waiting('unconfigured')
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop, switch off and disconnect, for good."""
        self._starting = False
        try:
            self._release()
        except Exception as error:
            return self._failed(error)
        self.heartbeat.waiting('shut down')
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop, switch off and disconnect, after a transition that failed: unconfigured again."""
        self._starting = False
        self._release()
        self.heartbeat.error(self._failure)
        return super().on_error(state)

    def close(self) -> None:
        """Stop, switch off and disconnect; the process ends."""
        self._release()

    def _failed(self, error: Exception) -> TransitionCallbackReturn:
        """Report a defect, which rclpy does not; `on_error` follows."""
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
        """Start if that is still to be done, then take a turn."""
        now = time.monotonic()
        if self._starting:
            self._start(now)  # takes its time, which is no lateness of the devices'
            now = time.monotonic()
        late_s = self._rhythm.turn(now)
        self.due = self._rhythm.due_s
        if self._connected:
            self.heartbeat.late(late_s)
            self.turn(now)

    def _start(self, now_s: float) -> None:
        if now_s < self._retry_s:
            return
        self._retry_s = now_s + RETRY_S
        if self.trigger_configure() is TransitionCallbackReturn.SUCCESS:
            self.trigger_activate()
            self._rhythm = Rhythm(self._rhythm.period_s)
        elif not self._starting:
            raise NodeFailedError(self.heartbeat.message)
