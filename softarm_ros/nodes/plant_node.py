"""Node of the simulated arm, in place of drivers and motion capture (backend sim)."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from geometry_msgs.msg import WrenchStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import FluidPressure, JointState
from std_msgs.msg import String

from softarm_ros.nodes import conversions
from softarm_ros.nodes.gated_command import offer_command
from softarm_ros.nodes.heartbeat import INACTIVE, SHUT_DOWN, UNCONFIGURED, Heartbeat
from softarm_ros.nodes.node_errors import NodeFailedError, RefusedError
from softarm_ros.nodes.node_parameters import (
    declare,
    declare_priority,
    declare_rig,
    declare_seed,
    declare_time_scale,
)
from softarm_ros.nodes.other_nodes import other_clocks, refuse_twin
from softarm_ros.nodes.pacing import Lockstep, control_tick
from softarm_ros.nodes.permit import RequestMemory, listen_to_permit
from softarm_ros.nodes.pose_publisher import PosePublisher, TrueTipPublisher
from softarm_ros.nodes.qos import (
    MEASUREMENT,
    PER_CHAMBER,
    VISUAL,
    command_deadline_s,
    command_qos,
    listening,
    newest,
)
from softarm_ros.nodes.run_nodes import run_node
from softarm_ros.nodes.self_paced import SelfPaced
from softarm_ros.nodes.wire import (
    JointValues,
    joint_bytes,
    listen,
    pressure_bytes,
    read_joints,
    wrench_bytes,
)
from softarm_ros.plant.plant import BaseWrench, ChamberPressures, Gripping
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.assembly import build_command_gate
from softarm_ros.runtime.pacing import Pacer
from softarm_ros.runtime.part_failure import failure_text

if TYPE_CHECKING:
    from softarm_ros.geometry.arrays import Array
    from softarm_ros.plant.plant import Plant

LONGEST_STEP_S = 0.01  # simulated time between two looks at the command
SHORTEST_STEP_S = 1e-5  # simulated; a time nearer than that counts as now
WAIT_S = 0.002  # wall clock, between two checks for the controller's answer
TICK_BUDGET_S = 0.01  # wall clock; after that, events are handled
SLOW_SHARE = 0.9  # a speed below this share of `time_scale` gives a warning


class PlantNode(SelfPaced, LifecycleNode):
    """
    Steps a simulated arm in pace with the wall clock, times `time_scale`.

    Off real time it publishes /clock at the beginning of each control period and waits for the
    command of that period (`Lockstep`); limits then apply to simulated time. Nothing moves unless
    the supervisor allows it and commands are fresh. `~/inject` takes faults as text, for example
    `cameras freeze`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__('plant', **options)
        refuse_twin(self)
        self.rig = declare_rig(self)
        self._rate = declare_time_scale(self)
        if self._rate != 1.0 and (others := other_clocks(self)):
            raise RefusedError(others)
        declare_priority(self)
        self._seed = declare_seed(self)
        declare(
            self, 'mocap_enabled', True, 'off: as if the cameras lost the arm', read_only=False
        )
        autostart = declare(self, 'autostart', True, 'configure and activate by itself')
        self._gate = build_command_gate(self.rig, real_time=self._rate == 1.0)
        self._plant: Plant | None = None
        self._pacer: Pacer | None = None
        self._held = 'not active'
        self._received = self._refused = self._holds = 0
        self._chambers: ChamberPressures | None = None
        self._wrench: BaseWrench | None = None
        self._gripping: Gripping | None = None
        self._lockstep = Lockstep(self.rig.supervisor.heartbeat_timeout_s)
        self._period_ns = round(1e9 / self.rig.tracker.rate_hz)
        self._tick = -1
        self._began_ns = 0  # simulated time at the plant's time 0: that of former plants
        self._injected = 'none'
        self._connect()
        self.add_on_set_parameters_callback(self._on_parameters)
        self._heartbeat.waiting(UNCONFIGURED)
        if autostart:
            self._autostart()

    def _connect(self) -> None:
        deadline = command_deadline_s(self.rig, self._rate)
        self._poses = PosePublisher(self, self.rig)
        self._truth = TrueTipPublisher(self, self.rig)
        self._state = self.create_lifecycle_publisher(JointState, 'actuators/state', MEASUREMENT)
        self._extra: dict[str, Any] = {}
        self._clock_publisher = (
            self.create_publisher(Clock, '/clock', VISUAL) if self._rate != 1.0 else None
        )
        self._heartbeat = Heartbeat(self, self.rig.name, fill=self._values)
        on_command = newest(command_qos(deadline))
        listen(self, read_joints, 'actuators/command', self._on_command, on_command)
        self.create_subscription(
            String, '~/inject', self._on_inject, listening(depth=10, reliable=True)
        )
        listen_to_permit(self, self._on_permit)
        self._memory = RequestMemory(self)

    def _offer(self, plant: Plant) -> None:
        """Create the topics of chambers, base wrench and gripper once, if the arm has them."""
        create = self.create_lifecycle_publisher
        # Checked once: isinstance with a protocol is slow.
        self._chambers = plant if isinstance(plant, ChamberPressures) else None
        self._wrench, self._gripping = plant.weighed, plant.gripping
        if self._chambers is not None and 'chambers' not in self._extra:
            self._extra['chambers'] = create(FluidPressure, 'chambers/pressure', PER_CHAMBER)
        if self._wrench is not None and 'wrench' not in self._extra:
            self._extra['wrench'] = create(WrenchStamped, 'wrench', MEASUREMENT)
        if self._gripping is not None and 'gripper' not in self._extra:
            self._extra['gripper'] = create(FluidPressure, 'gripper/pressure', MEASUREMENT)
            self.create_subscription(FluidPressure, 'gripper/command', self._on_gripper, VISUAL)

    def _autostart(self) -> None:
        for trigger in (self.trigger_configure, self.trigger_activate):
            if trigger() is not TransitionCallbackReturn.SUCCESS:
                raise NodeFailedError(f'cannot start: {self._heartbeat.message}')

    # -- lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Build the plant."""
        try:
            # The first steps load compiled code; another plant takes them.
            build_plant(self.rig, self._seed).step(None, LONGEST_STEP_S)
            self._plant = build_plant(self.rig, self._seed)
        except Exception as error:  # parts of other packages may raise anything
            self._heartbeat.error(f'plant of {self.rig.name}: {failure_text(error)}')
            return TransitionCallbackReturn.FAILURE
        self._injected = 'none'
        self._offer(self._plant)
        self._plant.mocap_enabled = bool(self.get_parameter('mocap_enabled').value)
        self._heartbeat.ok('configured')
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start the simulated time."""
        if self._plant is None:
            return TransitionCallbackReturn.FAILURE
        self._pacer = Pacer(self._rate)
        self._tick = -1
        self._heartbeat.ok('active')
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold the actuators and stop the simulated time."""
        self._pacer = None
        self._held = 'not active'
        if self._plant is not None:
            self._plant.hold()
        self._heartbeat.waiting(INACTIVE)
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the plant; simulated time goes on from here with the next one."""
        if self._plant is not None:
            periods = control_tick(round(1e9 * self._plant.time_s), self._period_ns) + 1
            self._began_ns += periods * self._period_ns
        self._plant = None
        self._heartbeat.waiting(UNCONFIGURED)
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop the simulated time and forget the plant, for the last time."""
        self._pacer = self._plant = None
        self._held = 'not active'
        self._heartbeat.waiting(SHUT_DOWN)
        return super().on_shutdown(state)

    # -- inputs

    def _on_permit(self, allowed: bool) -> None:
        if allowed != self._gate.permitted:
            self._catch_up()
        self._gate.on_permit(time.monotonic(), allowed)

    def _on_command(self, command: JointValues) -> None:
        self._received += 1
        self._catch_up()
        now = self._loop_now_s()
        refusal = offer_command(self._gate, command, now)
        if refusal is not None:
            self._refused += 1
            self._heartbeat.error(refusal)
            return
        if self._lockstep.on_command(command.stamp_ns):
            self.due = 0.0  # go on at once

    def _loop_now_s(self) -> float:
        """Return the time [s] to which limits of the loop apply: off real time, simulated time."""
        if self._rate == 1.0:
            return time.monotonic()
        passed_s = self._plant.time_s if self._plant is not None else 0.0
        return 1e-9 * self._began_ns + passed_s

    def _on_gripper(self, message: FluidPressure) -> None:
        if self._gripping is None or self._held:
            return  # a hold of the arm also holds the gripper
        try:
            self._gripping.command_gripper(message.fluid_pressure)
        except ValueError as error:
            self._refused += 1
            self._heartbeat.error(f'gripper command refused: {error}')

    def _on_inject(self, message: String) -> None:
        if self._plant is None:
            self.get_logger().error(f'inject {message.data!r}: {UNCONFIGURED}')
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
        """Advance simulated time to the wall clock, and set when to do it next."""
        began = time.monotonic()
        if self._rate == 1.0 and self.due > 0.0:
            self._heartbeat.late(began - self.due)
        plant, pacer = self._plant, self._pacer
        if plant is None or pacer is None:
            self.due = began + LONGEST_STEP_S
            return
        target = self._advance(plant, pacer, began)
        self.due = began + max(self._next_event_s(plant) - target, 0.0) / self._rate
        if self._rate != 1.0 and self._lockstep.waiting:
            self.due = began + WAIT_S
        if pacer.measure(time.monotonic(), plant.time_s):
            if self._rate != 1.0 and (others := other_clocks(self)):
                raise NodeFailedError(others)
            self._tell()

    def _catch_up(self) -> None:
        """Simulate up to now in real time, so that an input acts from now on and not earlier."""
        if self._rate == 1.0 and self._plant is not None and self._pacer is not None:
            self._advance(self._plant, self._pacer, time.monotonic(), wholly=True)

    def _next_event_s(self, plant: Plant) -> float:
        """Return the simulated time [s] at which the next step ends: the next event, or sooner."""
        next_period_s = 1e-9 * (self._tick + 1) * self._period_ns
        return min(plant.next_poses_s, next_period_s, plant.time_s + LONGEST_STEP_S)

    def _advance(self, plant: Plant, pacer: Pacer, began: float, *, wholly: bool = False) -> float:
        """
        Simulate from event to event up to the wall clock; return the simulated time due [s].

        With `wholly`, also simulate from the last event to that time.
        """
        target = pacer.target(began, plant.time_s)
        # The instant of ROS time that belongs to the simulated time `target`.
        real_time = self._rate == 1.0
        origin = 1e-9 * time.time_ns() - target if real_time else 1e-9 * self._began_ns
        while (until := self._next_event_s(plant)) <= target:
            if self._rate != 1.0 and self._lockstep.must_wait(time.monotonic()):
                return target
            tick = self._tick
            self._step(plant, max(until - plant.time_s, SHORTEST_STEP_S), origin)
            # Off real time, return after every period so that the loop can answer.
            turn = self._rate != 1.0 and self._tick != tick
            if turn or time.monotonic() - began > TICK_BUDGET_S:
                return target
        if wholly and (rest_s := target - plant.time_s) > SHORTEST_STEP_S:
            self._step(plant, rest_s, origin)
        return target

    def _step(self, plant: Plant, duration_s: float, origin: float) -> None:
        command, held = self._gate.target(self._loop_now_s(), time.monotonic())
        self._note_held(held)
        try:
            self._move(plant, command, duration_s, origin)
        except Exception as error:  # as in `on_configure`
            text = f'plant: {failure_text(error)}'
            self._heartbeat.error(text)
            raise NodeFailedError(text) from error

    def _move(self, plant: Plant, command: Array | None, duration_s: float, origin: float) -> None:
        """Simulate a time under a command, and publish poses, the true tip and the state."""
        plant.step(command, duration_s)
        stamps = self._poses.publish(plant.poll_poses(), origin)
        self._truth.publish(plant, origin)
        if self._rate != 1.0:
            for stamp in stamps:
                self._lockstep.on_pose(stamp)
        now_ns = round(1e9 * plant.time_s)
        tick = control_tick(now_ns, self._period_ns)
        if tick == self._tick:
            return
        self._tick = tick
        stamp_ns = round(origin * 1e9) + now_ns
        self._publish_state(plant, stamp_ns)
        if self._clock_publisher is not None:
            self._lockstep.on_tick(stamp_ns)
            self._clock_publisher.publish(conversions.clock_message(1e-9 * stamp_ns))

    def _publish_state(self, plant: Plant, stamp_ns: int) -> None:
        state = plant.actuator_state()
        self._state.publish(
            joint_bytes(
                self._gate.limits.names,
                stamp_ns,
                state.position,
                velocity=state.velocity,
                effort=state.effort,
            )
        )
        if self._extra:
            self._publish_more(stamp_ns)

    def _publish_more(self, stamp_ns: int) -> None:
        if self._chambers is not None:
            for name, value in zip(self._gate.limits.names, self._chambers.chamber_pressures()):
                self._extra['chambers'].publish(pressure_bytes(stamp_ns, name, value))
        if self._wrench is not None:
            load = self._wrench.base_wrench()
            self._extra['wrench'].publish(wrench_bytes(stamp_ns, self.rig.base_frame, load))
        if self._gripping is not None:
            pressure = self._gripping.gripper_pressure()
            self._extra['gripper'].publish(pressure_bytes(stamp_ns, 'gripper', pressure))

    # -- reports

    def _note_held(self, held: str) -> None:
        changed, self._held = bool(held) != bool(self._held), held
        if changed:
            self._holds += bool(held)
            self._tell()

    def _tell(self) -> None:
        pacer = self._pacer
        if pacer is not None and pacer.achieved < SLOW_SHARE * self._rate:
            self._heartbeat.warn(
                f'simulated {pacer.achieved:.2f} s per second instead of {self._rate:g}'
            )
        elif self._held:
            self._heartbeat.waiting(f'held: {self._held}')  # no warning: the supervisor warns
        else:
            self._heartbeat.ok('following commands')

    def _values(self) -> dict[str, str]:
        plant, pacer = self._plant, self._pacer
        if pacer is not None:
            not_ready = self._gate.not_ready()
        else:  # why it is unconfigured
            not_ready = INACTIVE if plant is not None else self._heartbeat.message
        return {
            'held': self._held,
            'holds': str(self._holds),
            'ready': str(not not_ready).lower(),
            'not_ready': not_ready,
            'unheard': self._gate.unheard(self._loop_now_s(), time.monotonic()),
            'injected': self._injected,
            **self._memory.values(),
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
