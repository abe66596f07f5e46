"""What the nodes of all devices share: lifecycle, readiness, problems as diagnostics, services."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Any

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_srvs.srv import Trigger

from softarm_ros.drivers.actuator_driver import DeviceDriver
from softarm_ros.drivers.problems import DriverError
from softarm_ros.nodes.node_base import (
    Heartbeat,
    NodeFailedError,
    declare,
    declare_priority,
    declare_rig,
    declare_time_scale,
    refuse_twin,
)
from softarm_ros.nodes.permit import listen_to_permit
from softarm_ros.rigs.devices import Devices
from softarm_ros.runtime.addresses import NoDevicesYetError, addressed

TICK_S = 0.01
RETRY_S = 0.25
SETTLE_S = 1.0  # for a device that has been reset, before it is again


class DriverNode(LifecycleNode):
    """
    A device as a lifecycle node: configure connects, activate lets it work, cleanup disconnects.

    Its heartbeat says whether the device is ready; while it is not, the supervisor lets nothing
    move. Problems are latched until `~/reset`; those of emulated devices only from the first
    motion on: they start beside everything else, on a machine that is busy with that.

    A subclass builds the driver (`build`), and does its own work in `tick`, a hundred times a
    second from configuration on.
    """

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        refuse_twin(self)
        self.rig = declare_rig(self)
        declare_time_scale(self)
        declare_priority(self)
        declare(self, 'device', name, 'name of the device in the rig file')
        self._folder = declare(
            self, 'devices_folder', '', 'of the addresses of emulated devices; empty: real ones'
        )
        autostart = declare(self, 'autostart', True, 'configure and activate by itself')
        self._starting = autostart
        self._retry_s = 0.0
        self.active = False
        self.starting_up = bool(self._folder)
        self._next_reset_s = 0.0
        self.driver: DeviceDriver | None = None
        self.due = 0.0
        self.heartbeat = Heartbeat(self, self.rig.name, fill=self._values)
        self.heartbeat.waiting('unconfigured')
        listen_to_permit(self, lambda allowed: self.on_permit(allowed))
        self.create_service(Trigger, '~/reset', self._on_reset)

    @abstractmethod
    def build(self, devices: Devices) -> DeviceDriver:
        """Return the driver, not started."""

    @abstractmethod
    def tick(self, now_s: float) -> None:
        """Do what is to be done a hundred times a second while there is a driver."""

    def describe(self) -> str:
        """Return what a healthy, active node is doing, for its heartbeat; a warning if `held:`."""
        return 'measuring'

    def on_permit(self, allowed: bool) -> None:
        """Take the supervisor's word: from the first motion on problems are latched."""
        if allowed:
            self.starting_up = False

    def waits_for(self) -> str:
        """Return what an active node with a ready device still waits for; '' for nothing."""
        return ''

    def values(self) -> dict[str, str]:
        """Return the node's own values for diagnostics."""
        return {}

    # -- lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Connect, in the background."""
        try:
            devices = self.rig.required_devices('emulated' if self._folder else 'hardware')
            driver = self.build(addressed(devices, self._folder))
            driver.start()
        except NoDevicesYetError as error:
            self.heartbeat.waiting(f'waiting: {error}')
            return TransitionCallbackReturn.FAILURE
        except (ValueError, DriverError) as error:
            self._starting = False
            self.heartbeat.error(str(error))
            return TransitionCallbackReturn.FAILURE
        self.driver = driver
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let the device work."""
        self.active = True
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop; stay connected."""
        self.active = False
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop, switch off and disconnect."""
        self._release()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop, switch off and disconnect."""
        self._release()
        return TransitionCallbackReturn.SUCCESS

    def close(self) -> None:
        """Stop, switch off and disconnect; the process ends."""
        self._release()

    def _release(self) -> None:
        self.active = False
        driver, self.driver = self.driver, None
        if driver is not None:
            driver.close()
            self.heartbeat.waiting('unconfigured')

    # -- work

    def work(self) -> None:
        """Start if that is still to be done, then tick."""
        now = time.monotonic()
        if self.due > 0.0:
            self.heartbeat.late(now - self.due)
        self.due = max(self.due + TICK_S, now)
        if self._starting:
            self._start(now)
        if self.driver is not None:
            if self.starting_up and now >= self._next_reset_s and self.driver.problems():
                self._next_reset_s = now + SETTLE_S
                self.driver.reset()
            self.tick(now)
            self._tell(self.driver)

    def _start(self, now_s: float) -> None:
        if now_s < self._retry_s:
            return
        self._retry_s = now_s + RETRY_S
        if self.trigger_configure() is TransitionCallbackReturn.SUCCESS:
            self._starting = False
            self.trigger_activate()
        elif not self._starting:
            raise NodeFailedError(self.heartbeat.message)

    def _tell(self, driver: DeviceDriver) -> None:
        problems, not_ready = driver.problems(), driver.not_ready()
        if problems:
            self.heartbeat.error('; '.join(map(str, problems)))
        elif not_ready:
            self.heartbeat.waiting(not_ready)
        elif not self.active:
            self.heartbeat.waiting('inactive')
        else:
            doing = self.describe()
            (self.heartbeat.waiting if doing.startswith('held') else self.heartbeat.ok)(doing)

    def _on_reset(self, asked: Trigger.Request, reply: Trigger.Response) -> Trigger.Response:
        if self.driver is None:
            reply.success, reply.message = False, 'not configured'
            return reply
        before = self.driver.problems()
        self.driver.reset()
        reply.success = True
        reply.message = f'{len(before)} problems forgotten' if before else 'nothing to reset'
        return reply

    def _values(self) -> dict[str, str]:
        driver = self.driver
        if driver is None:
            return {'ready': 'false', 'not_ready': self.heartbeat.message}
        inactive = '' if self.active else 'inactive'
        not_ready = driver.not_ready() or inactive or self.waits_for()
        return {
            'ready': str(not not_ready).lower(),
            'not_ready': not_ready,
            **{f'problem {i + 1}': str(p) for i, p in enumerate(driver.problems())},
            **self.values(),
            **driver.values(),
        }
