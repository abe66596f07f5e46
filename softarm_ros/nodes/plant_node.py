"""The simulated arm in place of drivers and motion capture (backend sim)."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import FluidPressure, JointState
from std_msgs.msg import String

from softarm_ros.nodes import conversions
from softarm_ros.nodes.node_base import (
    Heartbeat,
    NodeFailedError,
    declare,
    declare_priority,
    declare_rig,
    declare_time_scale,
    refuse_twin,
    run_node,
    timeout_factor,
)
from softarm_ros.nodes.pacing import Lockstep, Pacer
from softarm_ros.nodes.pose_publisher import PosePublisher
from softarm_ros.nodes.qos import (
    HEARTBEAT,
    MEASUREMENT,
    PER_CHAMBER,
    VISUAL,
    command_qos,
    listening,
)
from softarm_ros.plant.plant import BaseWrench, ChamberPressures, Gripping
from softarm_ros.runtime.assembly import build_command_gate, build_plant

if TYPE_CHECKING:
    from softarm_ros.plant.plant import Plant

TICK_S = 0.002  # wall clock
CHUNK_S = 0.002  # simulated time between two looks at the command
TICK_BUDGET_S = 0.01  # wall clock; then events have their turn
SLOW_SHARE = 0.9  # slower than this share of the rate asked for is worth a warning


class PlantNode(LifecycleNode):
    """
    Steps a simulated arm in pace with the wall clock, times `time_scale`.

    Faster or slower than real time it publishes /clock, and waits for the command of each control
    period, so that the loop sees the same periods at any speed. Nothing moves unless the
    supervisor allows it and commands are fresh. `~/inject` takes faults as text, `cameras freeze`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__('plant', **options)
        refuse_twin(self)
        self.rig = declare_rig(self)
        self._rate = declare_time_scale(self)
        declare_priority(self)
        self._seed = declare(
            self, 'seed', 0, 'of every random number of the plant', low=0, high=2**31 - 1
        )
        self._supervisor = declare(self, 'supervisor', 'supervisor', 'name of the supervisor node')
        declare(
            self, 'mocap_enabled', True, 'off: as if the cameras lost the arm', read_only=False
        )
        autostart = declare(self, 'autostart', True, 'configure and activate by itself')
        self._gate = build_command_gate(self.rig, time_scale=timeout_factor(self._rate))
        self._plant: Plant | None = None
        self._pacer: Pacer | None = None
        self._held = 'not active'
        self._injected = 'none'
        self._received = self._refused = 0
        self._lockstep = Lockstep(
            1.0 / self.rig.tracker.rate_hz, 0.5 * self._gate.command_timeout_s
        )
        self._next_state_s = self._next_clock_s = 0.0
        self._clock_s = -np.inf
        self.due = 0.0
        self._connect()
        self.add_on_set_parameters_callback(self._on_parameters)
        self._heartbeat.ok('unconfigured')
        if autostart:
            self._autostart()

    def _connect(self) -> None:
        deadline = self.rig.supervisor.command_timeout_s * timeout_factor(self._rate)
        self._poses = PosePublisher(self, self.rig.feedback)
        self._state = self.create_lifecycle_publisher(JointState, 'actuators/state', MEASUREMENT)
        # Of sensors that only some arms have; nothing is published without them.
        self._pressures = self.create_lifecycle_publisher(
            FluidPressure, 'chambers/pressure', PER_CHAMBER
        )
        self._wrench = self.create_lifecycle_publisher(WrenchStamped, 'wrench', MEASUREMENT)
        self._gripper = self.create_lifecycle_publisher(
            FluidPressure, 'gripper/pressure', MEASUREMENT
        )
        self.create_subscription(FluidPressure, 'gripper/command', self._on_gripper, VISUAL)
        self._clock_publisher = (
            self.create_publisher(Clock, '/clock', VISUAL) if self._rate != 1.0 else None
        )
        self._heartbeat = Heartbeat(self, self.rig.name, fill=self._values)
        self.create_subscription(
            JointState, 'actuators/command', self._on_command, command_qos(deadline)
        )
        self.create_subscription(DiagnosticStatus, 'heartbeat', self._on_heartbeat, HEARTBEAT)
        self.create_subscription(
            String, '~/inject', self._on_inject, listening(depth=10, reliable=True)
        )

    def _autostart(self) -> None:
        for trigger in (self.trigger_configure, self.trigger_activate):
            if trigger() is not TransitionCallbackReturn.SUCCESS:
                raise NodeFailedError(f'cannot start: {self._heartbeat.message}')

    # -- lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Build the plant."""
        try:
            # The first steps load compiled code; they are another plant's.
            build_plant(self.rig, self._seed).step(None, CHUNK_S)
            self._plant = build_plant(self.rig, self._seed)
        except (ValueError, RuntimeError) as error:
            self._heartbeat.error(f'plant of {self.rig.name}: {error}')
            return TransitionCallbackReturn.FAILURE
        self._plant.mocap_enabled = bool(self.get_parameter('mocap_enabled').value)
        self._heartbeat.ok('configured')
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let the simulated time run."""
        if self._plant is None:
            return TransitionCallbackReturn.FAILURE
        now = self._plant.time_s
        self._pacer = Pacer(self._rate, now, time.monotonic())
        self._next_state_s = self._next_clock_s = now
        self._heartbeat.ok('active')
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold the steppers and stop the simulated time."""
        self._pacer = None
        self._held = 'not active'
        if self._plant is not None:
            self._plant.hold()
        self._heartbeat.ok('inactive')
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the plant."""
        self._plant = None
        self._heartbeat.ok('unconfigured')
        return TransitionCallbackReturn.SUCCESS

    # -- inputs

    def _on_command(self, message: JointState) -> None:
        self._received += 1
        try:
            values = conversions.positions_of(message, self._gate.limits.names)
        except ValueError as error:
            # Not finite: the gate refuses it and holds, as it should for a command it cannot read.
            self._gate.on_command(time.monotonic(), np.full(len(self._gate.limits.names), np.nan))
            refusal: str | None = f'command refused: {error}'
        else:
            refusal = self._gate.on_command(time.monotonic(), values)
        if refusal is not None:
            self._refused += 1
            self._heartbeat.error(refusal)
            return
        if self._plant is not None and self._rate != 1.0:
            stamp = conversions.nanoseconds_of(message.header.stamp)
            if self._lockstep.on_command(round(1e9 * self._plant.time_s), stamp):
                self.due = 0.0  # go on at once

    def _on_gripper(self, message: FluidPressure) -> None:
        if not isinstance(self._plant, Gripping) or self._held:
            return  # what holds the arm holds the gripper
        try:
            self._plant.command_gripper(message.fluid_pressure)
        except ValueError as error:
            self._refused += 1
            self._heartbeat.error(f'gripper command refused: {error}')

    def _on_heartbeat(self, message: DiagnosticStatus) -> None:
        if message.name == self._supervisor:
            allowed = conversions.health_of(message).values.get('motion_allowed') == 'true'
            self._gate.on_permit(time.monotonic(), allowed)

    def _on_inject(self, message: String) -> None:
        if self._plant is None:
            return
        try:
            self._injected = self._plant.inject(message.data)
        except ValueError as error:
            self.get_logger().error(f'inject {message.data!r}: {error}')
            return
        self.get_logger().warning(f'injected: {self._injected}')

    def _on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        for parameter in parameters:
            if parameter.name == 'mocap_enabled' and self._plant is not None:
                self._plant.mocap_enabled = bool(parameter.value)
        return SetParametersResult(successful=True)

    # -- stepping

    def work(self) -> None:
        """Let the simulated time catch up with the wall clock."""
        began = time.monotonic()
        self.due = began + TICK_S
        plant, pacer = self._plant, self._pacer
        if plant is None or pacer is None:
            return
        target = pacer.target(began, plant.time_s)
        # The instant of ROS time that belongs to the simulated time `target`.
        origin = 1e-9 * self.get_clock().now().nanoseconds - target if self._rate == 1.0 else 0.0
        while plant.time_s + 0.5 * CHUNK_S < target:
            if self._rate != 1.0 and self._must_wait(plant):
                break
            self._advance(plant, origin)
            if time.monotonic() - began > TICK_BUDGET_S:
                break
        if pacer.measure(time.monotonic(), plant.time_s):
            self._tell()

    def _must_wait(self, plant: Plant) -> bool:
        now = round(1e9 * plant.time_s)
        if not self._lockstep.must_wait(now, time.monotonic()):
            return False
        if not self._lockstep.for_answer:
            self._publish_clock(plant.time_s)  # what is waited for is waiting for this
        return True

    def _publish_clock(self, now: float) -> None:
        if self._clock_publisher is None or now <= self._clock_s:
            return
        self._clock_publisher.publish(conversions.clock_message(now))
        self._clock_s = now

    def _advance(self, plant: Plant, origin: float) -> None:
        command, held = self._gate.target(time.monotonic())
        self._note_held(held)
        try:
            plant.step(command, CHUNK_S)
        except (ValueError, RuntimeError, ArithmeticError) as error:
            self._heartbeat.error(f'plant: {error}')
            raise NodeFailedError(f'plant: {error}') from error
        now = plant.time_s
        measured = plant.poll_poses()
        if measured or now + 1e-9 >= self._next_clock_s:
            self._publish_clock(now)
            while self._next_clock_s <= now + 1e-9:
                self._next_clock_s += 0.5 / self.rig.tracker.rate_hz
        for stamp in self._poses.publish(measured, origin):
            self._lockstep.on_pose(round(1e9 * now), conversions.nanoseconds_of(stamp))
        if now >= self._next_state_s:
            self._next_state_s += 1.0 / self.rig.tracker.rate_hz
            self._publish_state(plant, conversions.time_message(round((origin + now) * 1e9)))

    def _publish_state(self, plant: Plant, stamp: Any) -> None:
        state = plant.actuator_state()
        self._state.publish(
            conversions.joint_message(
                self._gate.limits.names,
                state.position,
                stamp,
                velocity=state.velocity,
                effort=state.effort,
            )
        )
        if isinstance(plant, ChamberPressures):
            for name, value in zip(self._gate.limits.names, plant.chamber_pressures()):
                self._pressures.publish(conversions.pressure_message(value, name, stamp))
        if isinstance(plant, BaseWrench):
            self._wrench.publish(conversions.wrench_message(plant.base_wrench(), stamp))
        if isinstance(plant, Gripping):
            pressure = plant.gripper_pressure()
            self._gripper.publish(conversions.pressure_message(pressure, 'gripper', stamp))

    # -- what is told

    def _note_held(self, held: str) -> None:
        changed, self._held = bool(held) != bool(self._held), held
        if changed:
            self._tell()

    def _tell(self) -> None:
        pacer = self._pacer
        if pacer is not None and pacer.achieved < SLOW_SHARE * self._rate:
            self._heartbeat.warn(
                f'simulated {pacer.achieved:.2f} s per second instead of {self._rate:g}'
            )
        elif self._held:
            self._heartbeat.warn(f'held: {self._held}')
        else:
            self._heartbeat.ok('following commands')

    def _values(self) -> dict[str, str]:
        plant, pacer = self._plant, self._pacer
        return {
            'held': self._held,
            'injected': self._injected,
            'commands': str(self._received),
            'refused': str(self._refused),
            'poses': str(self._poses.count),
            'mocap_enabled': str(self.get_parameter('mocap_enabled').value).lower(),
            'simulated_s': f'{plant.time_s:.3f}' if plant is not None else 'nan',
            'speed': f'{pacer.achieved:.3f}' if pacer is not None else '0',
            'time_lost_s': f'{pacer.lost_s:.3f}' if pacer is not None else '0',
        }


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run_node(PlantNode, 'plant', args)


if __name__ == '__main__':
    sys.exit(main())
