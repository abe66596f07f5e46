"""Base class of device nodes: readiness, problems in diagnostics, and the reset service."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from std_srvs.srv import Trigger

from softarm_ros.drivers.actuator_driver import DeviceDriver
from softarm_ros.drivers.problems import Problem
from softarm_ros.geometry.answers import described
from softarm_ros.nodes.hardware_node import HardwareNode
from softarm_ros.nodes.heartbeat import INACTIVE
from softarm_ros.nodes.node_errors import NodeFailedError
from softarm_ros.nodes.node_parameters import declare
from softarm_ros.nodes.permit import RequestMemory, listen_to_permit
from softarm_ros.rigs.devices import Devices
from softarm_ros.runtime.addresses import addressed

TICK_S = 0.01
SETTLE_S = 1.0  # shortest time between two automatic resets of a device


class DriverNode(HardwareNode):
    """
    A device as a lifecycle node: configure connects, activate lets it work, cleanup disconnects.

    Its heartbeat says whether the device is ready; while it is not, the supervisor allows no
    motion. Problems are latched until `~/reset`. Emulated devices latch them only from the first
    motion on, because they start while all other nodes start and keep the computer busy.

    A subclass builds the driver (`build`) and does its own work, if it has any, in `tick`, which
    is called a hundred times a second once the node is configured.
    """

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, TICK_S, **options)
        self.driver: DeviceDriver | None = None
        self._device = declare(self, 'device', name, 'name of the device in the rig file')
        self._folder = declare(
            self, 'devices_folder', '', 'folder of emulated devices; empty: real devices'
        )
        self.starting_up = bool(self._folder)
        self._next_reset_s = 0.0
        self._allowed_s = -float('inf')  # when the supervisor last allowed motion, if it does
        listen_to_permit(self, lambda allowed: self.on_permit(allowed))
        self._memory = RequestMemory(self)
        self.create_service(Trigger, '~/reset', self._on_reset)

    @abstractmethod
    def build(self, devices: Devices) -> DeviceDriver:
        """Return the driver, not yet started."""

    def tick(self, now_s: float) -> None:
        """Do the node's own periodic work, a hundred times a second while it has a driver."""

    def describe(self) -> str:
        """Return the heartbeat text of a healthy, active node; text with `held` is a warning."""
        return 'measuring'

    def on_permit(self, allowed: bool) -> None:
        """Take the supervisor's permit: from the first motion on, problems are latched."""
        self._allowed_s = time.monotonic() if allowed else -float('inf')
        if allowed:
            self.starting_up = False

    @property
    def may_move(self) -> bool:
        """Whether the arm may move now; a supervisor that falls silent allows nothing."""
        return time.monotonic() - self._allowed_s <= self.rig.supervisor.permit_timeout_s

    def waits_for(self) -> str:
        """Return what an active node with a ready device still waits for, or ''."""
        return ''

    def values(self) -> dict[str, str]:
        """Return the node's own values for diagnostics."""
        return {}

    # -- life

    def addresses(self) -> Devices | None:
        """Return the emulated devices with their addresses; None: those of the rig file stay."""
        if not self._folder:
            return None
        return addressed(self.rig.required_devices('emulated'), self._folder)

    def connect(self) -> None:
        """Connect, in the background."""
        self.driver = self.build(self.addresses() or self.rig.required_devices('hardware'))
        self.driver.start()

    def release(self) -> None:
        """Stop, switch off and disconnect."""
        driver, self.driver = self.driver, None
        if driver is not None:
            driver.close()

    # -- work

    def turn(self, now_s: float) -> None:
        """Reset a device that is starting up if it has problems, tick, and report its health."""
        if self.driver is None:
            return
        if self.starting_up and now_s >= self._next_reset_s and self.driver.problems():
            self._next_reset_s = now_s + SETTLE_S
            self.driver.reset()
        self.tick(now_s)
        self._tell(self.driver)

    def _tell(self, driver: DeviceDriver) -> None:
        problems, not_ready = _problems_of(driver), _not_ready_of(driver)
        if problems:
            self.heartbeat.error('; '.join(map(str, problems)))
        elif not self.active:
            self.heartbeat.waiting('; '.join(filter(None, [INACTIVE, not_ready])))
        elif not_ready:
            self.heartbeat.waiting(not_ready)
        else:
            doing = self.describe()
            (self.heartbeat.waiting if doing.startswith('held') else self.heartbeat.ok)(doing)

    def _on_reset(self, asked: Trigger.Request, reply: Trigger.Response) -> Trigger.Response:
        if self.driver is None:
            reply.success, reply.message = False, 'not configured'
            return reply
        reply.success = True
        before = self.driver.problems()
        if not (before or self.driver.not_ready()):  # a reset would stop a moving arm
            reply.message = 'nothing to reset: the device is ready'
            return reply
        self.driver.reset()
        lasting = [problem for problem in before if problem.lasting]
        reply.success = not lasting
        reply.message = f'{len(before)} problems cleared' if before else 'no problems to clear'
        if lasting:
            reply.message = f'a reset does not help: {"; ".join(map(str, lasting))}'
        return reply

    def heartbeat_values(self) -> dict[str, str]:
        """Return readiness, problems, and the values of node and driver."""
        driver = self.driver
        if driver is None:
            return {'ready': 'false', 'not_ready': self.idle(), **self._memory.values()}
        problems, said = _problems_of(driver), _not_ready_of(driver)
        # What an inactive device waits for, such as homing, an inactive node refuses.
        idle = '' if problems else self.idle()
        not_ready = idle or said or self.idle() or self.waits_for()
        return {
            'ready': str(not not_ready).lower(),
            'not_ready': not_ready,
            'latched': str(not self.starting_up and any(not p.passing for p in problems)).lower(),
            'outside': str(any(p.outside for p in problems)).lower(),
            **self._memory.values(),
            **{f'problem {i + 1}': str(p) for i, p in enumerate(problems)},
            **self.values(),
            **_values_of(driver),
        }


# Drivers of other packages may answer anything; a wrong answer would fail far from its cause.


def _problems_of(driver: DeviceDriver) -> Sequence[Problem]:
    found: object = driver.problems()
    if isinstance(found, (tuple, list)) and all(isinstance(one, Problem) for one in found):
        return found
    raise wrong_answer(
        driver, 'problems', found, 'a tuple of Problem (softarm_ros.drivers.problems)'
    )


def _not_ready_of(driver: DeviceDriver) -> str:
    found: object = driver.not_ready()
    if isinstance(found, str):
        return found
    raise wrong_answer(driver, 'not_ready', found, "a text, '' if it is ready")


def _values_of(driver: DeviceDriver) -> dict[str, str]:
    found: object = driver.values()
    if isinstance(found, dict) and all(isinstance(one, str) for one in (*found, *found.values())):
        return found
    raise wrong_answer(driver, 'values', found, 'a dict of texts')


def wrong_answer(driver: DeviceDriver, name: str, found: object, expected: str) -> NodeFailedError:
    """Return the error for an answer of a driver that its interface does not allow."""
    whose = f'driver {type(driver).__name__}'
    return NodeFailedError(f'{whose} returned {name} {described(found)}; expected {expected}')
