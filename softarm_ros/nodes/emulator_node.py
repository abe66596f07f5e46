"""Emulated devices on a simulated arm, in place of the laboratory (backend emulated)."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_msgs.msg import String

from softarm_ros.emulation.emulated_arm import BOARD_LATE_MS, EmulationError
from softarm_ros.nodes.node_base import (
    Heartbeat,
    NodeFailedError,
    declare,
    declare_priority,
    declare_rig,
    declare_time_scale,
    refuse_twin,
    run_node,
)
from softarm_ros.nodes.pacing import Pacer
from softarm_ros.nodes.pose_publisher import PosePublisher
from softarm_ros.nodes.qos import listening
from softarm_ros.runtime.assembly import build_emulated_arm

if TYPE_CHECKING:
    from softarm_ros.emulation.emulated_arm import EmulatedArm

TICK_S = 0.002
CHUNK_S = 0.002  # simulated time between two looks at the devices
TICK_BUDGET_S = 0.01
SLOW_SHARE = 0.9
REPORT_S = 0.5


class EmulatorNode(LifecycleNode):
    """
    Runs emulated devices and the arm behind them in real time; publishes what cameras would see.

    Drivers find the devices through `devices_folder`. It knows nothing of commands: what the arm
    does comes from the devices alone. `~/inject` takes faults as text, `steppers unplug` or
    `cameras freeze`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__('emulator', **options)
        refuse_twin(self)
        self.rig = declare_rig(self)
        declare_time_scale(self)
        declare_priority(self)
        self._seed = declare(
            self, 'seed', 0, 'of every random number of the plant', low=0, high=2**31 - 1
        )
        self._folder = Path(
            declare(self, 'devices_folder', '', 'where the addresses of the devices are put')
        )
        # Not before the executor turns: what comes between would keep the devices from answering.
        self._starting = declare(self, 'autostart', True, 'configure and activate by itself')
        self._arm: EmulatedArm | None = None
        self._pacer: Pacer | None = None
        self._report: dict[str, str] = {}
        self._next_report_s = 0.0
        self._injected = 'none'
        self.due = 0.0
        self._poses = PosePublisher(self, self.rig)
        self._heartbeat = Heartbeat(self, self.rig.name, fill=self._values)
        self.create_subscription(
            String, '~/inject', self._on_inject, listening(depth=10, reliable=True)
        )
        self._heartbeat.waiting('unconfigured')

    def _autostart(self) -> None:
        for trigger in (self.trigger_configure, self.trigger_activate):
            if trigger() is not TransitionCallbackReturn.SUCCESS:
                raise NodeFailedError(f'cannot start: {self._heartbeat.message}')

    # -- lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Build the arm and start its devices."""
        try:
            # The first steps load compiled code; they are another plant's.
            self.rig.simulated_arm(self._seed).step(None, CHUNK_S)
            self._arm = build_emulated_arm(self.rig, self._seed)
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._forget_addresses()
            self._arm.start(self._folder)
        except (ValueError, RuntimeError, OSError) as error:
            self._heartbeat.error(f'emulated {self.rig.name}: {error}')
            self._release()
            return TransitionCallbackReturn.FAILURE
        self._heartbeat.ok('configured')
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let time run."""
        if self._arm is None:
            return TransitionCallbackReturn.FAILURE
        self._pacer = Pacer(1.0)
        self._heartbeat.ok('running')
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop the time of the arm; the devices' goes on."""
        self._pacer = None
        self._heartbeat.warn('inactive')
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End the devices."""
        self._release()
        self._heartbeat.warn('unconfigured')
        return TransitionCallbackReturn.SUCCESS

    def close(self) -> None:
        """End the devices; the process ends."""
        self._release()

    def _release(self) -> None:
        self._pacer = None
        arm, self._arm = self._arm, None
        if arm is not None:
            arm.close()
            self._forget_addresses()

    def _forget_addresses(self) -> None:
        for stale in self._folder.glob('*'):
            stale.unlink()

    # -- work

    def work(self) -> None:
        """Start if that is still to be done, then let the arm catch up with the wall clock."""
        if self._starting:
            self._starting = False
            self._autostart()
        began = time.monotonic()
        if self.due > 0.0:
            self._heartbeat.late(began - self.due)
        self.due = began + TICK_S
        arm, pacer = self._arm, self._pacer
        if arm is None or pacer is None:
            return
        target = pacer.target(began, arm.time_s)
        origin = 1e-9 * self.get_clock().now().nanoseconds - target
        while arm.time_s + 0.5 * CHUNK_S < target:
            try:
                arm.advance(CHUNK_S)
            except (EmulationError, ValueError, RuntimeError, ArithmeticError) as error:
                self._heartbeat.error(f'emulated arm: {error}')
                raise NodeFailedError(f'emulated arm: {error}') from error
            self._poses.publish(arm.plant.poll_poses(), origin)
            if time.monotonic() - began > TICK_BUDGET_S:
                break
        if began >= self._next_report_s:
            self._next_report_s = began + REPORT_S
            self._report = arm.report()
            self._heartbeat.late(1e-3 * float(self._report.get(BOARD_LATE_MS, '0')))
        if pacer.measure(time.monotonic(), arm.time_s):
            self._tell(pacer)

    def _tell(self, pacer: Pacer) -> None:
        if pacer.achieved < SLOW_SHARE:
            self._heartbeat.warn(f'simulated {pacer.achieved:.2f} s per second instead of 1')
        else:
            self._heartbeat.ok('running')

    def _on_inject(self, message: String) -> None:
        if self._arm is None:
            return
        try:
            # Cameras and what moves belong to the simulated arm, the rest to its devices.
            kind = message.data.split()[:1]
            of_plant = kind in [name.split()[:1] for name in self._arm.plant.faults()]
            broken = self._arm.plant if of_plant else self._arm
            self._injected = broken.inject(message.data)
        except (ValueError, RuntimeError, OSError) as error:
            self.get_logger().error(f'inject {message.data!r}: {error}')
            return
        self.get_logger().warning(f'injected: {self._injected}')

    def _values(self) -> dict[str, str]:
        arm, pacer = self._arm, self._pacer
        return {
            'injected': self._injected,
            'poses': str(self._poses.count),
            'simulated_s': f'{arm.time_s:.3f}' if arm is not None else 'nan',
            'speed': f'{pacer.achieved:.3f}' if pacer is not None else '0',
            'time_lost_s': f'{pacer.lost_s:.3f}' if pacer is not None else '0',
            **self._report,
        }


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run_node(EmulatorNode, 'emulator', args)


if __name__ == '__main__':
    sys.exit(main())
