"""Node of the device that moves the arm: takes gated commands, publishes the measured state."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from softarm_ros.drivers.actuator_driver import (
    REFUSED_S,
    ActuatorDriver,
    ActuatorReading,
    FedByPressures,
    HomesByMoving,
)
from softarm_ros.drivers.problems import DriverError
from softarm_ros.geometry.answers import has_floats, misfit
from softarm_ros.geometry.arrays import Array
from softarm_ros.nodes.driver_node import DriverNode, wrong_answer
from softarm_ros.nodes.gated_command import offer_command
from softarm_ros.nodes.hardware_node import RETRY_S
from softarm_ros.nodes.node_errors import NodeFailedError
from softarm_ros.nodes.node_parameters import declare
from softarm_ros.nodes.permit import listen_to_stop_homing
from softarm_ros.nodes.qos import MEASUREMENT, PER_CHAMBER, command_qos, newest
from softarm_ros.nodes.wire import (
    JointValues,
    PressureValue,
    joint_bytes,
    listen,
    read_joints,
    read_pressure,
)
from softarm_ros.rigs.devices import Devices
from softarm_ros.runtime.addresses import may_have_moved, note_moved
from softarm_ros.runtime.arm_assembly import build_driver
from softarm_ros.runtime.assembly import build_command_gate

RATE_OVER_S = 1.0  # time over which the measurement rate of the device is averaged
AHEAD_S = 1.0  # of a stamp: the clock of a device is estimated


class ActuatorNode(DriverNode):
    """
    Follows actuators/command while it is valid, fresh and allowed by the supervisor; else holds.

    Publishes actuators/state with the time of the measurement. The service `~/home` declares the
    present state to be the arm's rest, or drives the actuators to rest, depending on the driver.
    Nothing else homes the arm, unless the parameter `home` asks for homing at the start. The
    supervisor's halt, its silence and the node's deactivation stop homing.
    """

    driver: ActuatorDriver | None

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._homing = declare(
            self, 'home', False, 'take the arm to be at rest when the device is first reached'
        )
        self._gate = build_command_gate(self.rig)
        self._allowed = False  # motion, by the supervisor's last permit
        self._halted = False  # by an emergency stop: no homing either
        self._abandoned = ''  # by the supervisor, without which nothing could stop homing
        self._held = 'not active'
        self._received = self._refused = 0
        self._refusing_since_s = np.inf  # the driver, without a break
        self._last_stamp_s = -np.inf
        self._measured = 0
        self._measured_since_s = time.monotonic()
        self._measured_hz = 0.0
        self._next_home_s = 0.0
        self._home_refusal = ''  # by the driver, of the last attempt to home at the start
        self._pressure = np.full(len(self.rig.actuators), np.nan)
        self._fed: FedByPressures | None = None  # the driver, if it takes pressures
        self._listens = False  # to pressures; the subscription outlives the driver
        self._state = self.create_lifecycle_publisher(JointState, 'actuators/state', MEASUREMENT)
        listen(
            self,
            read_joints,
            'actuators/command',
            self._on_command,
            newest(command_qos(self.rig.supervisor.command_timeout_s)),
        )
        self._memory.on_halt = self._on_halt
        listen_to_stop_homing(self, self._stop_homing)
        self.create_service(Trigger, '~/home', self._on_home)

    def build(self, devices: Devices) -> ActuatorDriver:
        """Return the driver of all actuators."""
        if self._folder and may_have_moved(self._device, self._folder):
            self._homing = False  # an earlier driver may have moved the arm
        driver = build_driver(self.rig, devices)
        # Once: to look at the methods of a driver takes longer than to take a pressure.
        self._fed = driver if isinstance(driver, FedByPressures) else None
        if self._fed is not None and not self._listens:
            self._listens = True
            listen(self, read_pressure, 'chambers/pressure', self._on_pressure, PER_CHAMBER)
        return driver

    def describe(self) -> str:
        """Return whether commands are followed, or why not."""
        return f'held: {self._held}' if self._held else 'following commands'

    def waits_for(self) -> str:
        """Return why no command can be followed, or '': the sender may not know this node yet."""
        if self._homing and not self.starting_up:
            return '; '.join(filter(None, ['homing at the start waits', self._home_refusal]))
        if self._refuses():
            return f'commands are refused: {self._held}'
        return self._gate.not_ready()

    def heartbeat_values(self) -> dict[str, str]:
        """Return as the base class; a device that is to be homed also says why it is not yet."""
        values, refusal = super().heartbeat_values(), self._home_refusal
        if self._refuses():
            values['outside'] = 'true'  # it gets its commands
        said = '' if self.driver is None else self.driver.not_ready()
        if self._homing and self.active and said and refusal and refusal not in said:
            values['not_ready'] += f'; homing at the start waits: {refusal}'
        return values

    def _refuses(self) -> bool:
        return time.monotonic() - self._refusing_since_s > REFUSED_S

    def values(self) -> dict[str, str]:
        """Return why the node holds, its command counts and its measurement rate."""
        return {
            'held': self._held,
            'unheard': self._gate.unheard(time.monotonic()),
            'commands': str(self._received),
            'refused': str(self._refused),
            'measured_hz': f'{self._measured_hz:.0f}',
        }

    def rest(self) -> None:
        """Hold the actuators; stop homing."""
        self._held = 'not active'
        self._stop_homing()
        if self.driver is not None:
            self.driver.hold()

    def _stop_homing(self) -> None:
        self._homing = self.starting_up  # emulated arms are homed without a request
        if isinstance(self.driver, HomesByMoving):
            self.driver.stop_homing()

    # -- inputs

    def _on_command(self, command: JointValues) -> None:
        self._received += 1
        now = time.monotonic()
        refusal = offer_command(self._gate, command, now)
        if refusal is not None:
            self._refused += 1
            self.get_logger().error(refusal, throttle_duration_sec=1.0)
        self._move(now)  # at once: waiting for the next tick would add latency

    def on_permit(self, allowed: bool) -> None:
        """Pass the supervisor's permit to the gate; note that emulated devices may now move."""
        super().on_permit(allowed)
        if allowed:
            self._homing = False  # once the arm may have moved, only a person knows its posture
        if self._folder and allowed and not self._allowed:
            note_moved(self._device, self._folder)
        self._allowed = allowed
        self._gate.on_permit(time.monotonic(), allowed)

    def _on_halt(self, halted: bool) -> None:
        self._halted = halted
        if halted:
            self._stop_homing()

    def _on_pressure(self, value: PressureValue) -> None:
        if self._fed is None or self.driver is None:
            return
        try:
            index = self._gate.limits.names.index(value.name)
        except ValueError:
            return  # not the pressure of an actuator
        self._pressure[index] = value.pressure_Pa
        if index == len(self._pressure) - 1:  # pressures of one time arrive together, in order
            age = 1e-9 * (self.get_clock().now().nanoseconds - value.stamp_ns)
            self._fed.set_pressures(self._pressure.copy(), time.monotonic() - age)

    # -- work

    def tick(self, now_s: float) -> None:
        """Follow the command or hold, home at the start if asked to, publish a new reading."""
        if self.driver is None:
            return
        self._move(now_s)
        # Homing does not resume by itself, so a pause of a busy computer must not stop it.
        gone_s, before = self.rig.supervisor.heartbeat_timeout_s, self._abandoned
        self._abandoned = self._gate.abandoned(now_s, gone_s)
        if self._abandoned and not before:
            self._stop_homing()
        may_home = self.active and not self._halted and not self._abandoned
        if self._homing and may_home and now_s >= self._next_home_s:
            self._next_home_s = now_s + RETRY_S
            self._home_once(self.driver)
        since_s = now_s - self._measured_since_s
        if since_s >= RATE_OVER_S:
            self._measured_hz = self._measured / since_s
            self._measured, self._measured_since_s = 0, now_s
        self.publish_reading(self.driver)

    def publish_reading(self, driver: ActuatorDriver) -> None:
        """Publish the driver's reading, if it is a new one."""
        reading = driver.reading()
        if reading is None:
            return
        self._check_stamp(driver, reading)
        if reading.stamp_s <= self._last_stamp_s:
            return
        self._check(driver, reading)
        self._last_stamp_s = reading.stamp_s
        self._measured += 1
        age_ns = round(1e9 * (time.monotonic() - reading.stamp_s))
        stamp_ns = self.get_clock().now().nanoseconds - age_ns
        self._state.publish(
            joint_bytes(
                self._gate.limits.names,
                stamp_ns,
                reading.position,
                velocity=reading.velocity,
                effort=reading.effort,
            )
        )

    def _check_stamp(self, driver: ActuatorDriver, reading: object) -> None:
        """Raise NodeFailedError if this is no reading, or of no time until now."""
        if not isinstance(reading, ActuatorReading):
            raise wrong_answer(driver, 'reading', reading, 'an ActuatorReading or None')
        stamp: object = reading.stamp_s
        if not (isinstance(stamp, (int, float)) and stamp <= time.monotonic() + AHEAD_S):
            raise wrong_answer(driver, 'stamp_s', stamp, 'seconds of time.monotonic()')

    def _check(self, driver: ActuatorDriver, reading: ActuatorReading) -> None:
        """Raise NodeFailedError if an array of a reading is not as the interface requires."""
        count = len(self._gate.limits.names)
        for name in ('position', 'velocity', 'effort'):
            value = getattr(reading, name)
            unmeasured = name == 'effort' and has_floats(value, (0,))
            if not (unmeasured or has_floats(value, (count,))):
                whose = f'driver {type(driver).__name__}'
                raise NodeFailedError(misfit(whose, name, value, str(count)))

    def _move(self, now_s: float) -> None:
        driver = self.driver
        if driver is None:
            return
        command, held = self._gate.target(now_s) if self.active else (None, 'not active')
        if command is None:
            driver.hold()
            self._refusing_since_s = np.inf
        else:
            held = self._follow(driver, command)
            self._refusing_since_s = min(self._refusing_since_s, now_s) if held else np.inf
        self._held = held

    def _follow(self, driver: ActuatorDriver, command: Array) -> str:
        """Pass a command on; return why the driver refuses it, or ''."""
        try:
            refusal: object = driver.follow(command)
        except ValueError as error:
            self._refused += 1
            driver.hold()
            return str(error)
        if not isinstance(refusal, (str, type(None))):
            raise wrong_answer(driver, 'refusal', refusal, 'a text, or None if it follows')
        return refusal or ''

    def _home_once(self, driver: ActuatorDriver) -> None:
        if self.starting_up and not driver.not_ready():
            return
        try:
            driver.home()  # also if it has a zero: of an earlier run, and perhaps wrong since
        except DriverError as error:
            self._home_refusal = str(error)
            self.get_logger().info(f'homing waits: {error}', throttle_duration_sec=5.0)
            return
        self._home_refusal = ''
        self._homing = self.starting_up  # a reset on a busy computer may undo it: home again

    def _on_home(self, asked: Trigger.Request, reply: Trigger.Response) -> Trigger.Response:
        reply.success = False
        if self.driver is None:
            reply.message = 'not configured'
        elif self._halted:
            reply.message = 'emergency stop; call supervisor/reset first'
        elif self._abandoned:
            reply.message = f'{self._abandoned}; start it again first'
        elif not self.active:
            reply.message = 'not active'
        elif not self._held:
            reply.message = 'the arm follows commands; stop it first'
        else:
            try:
                self.driver.home()
            except DriverError as error:
                reply.message = str(error)
            else:
                reply.success, reply.message = True, self.driver.not_ready() or 'homed'
        return reply
