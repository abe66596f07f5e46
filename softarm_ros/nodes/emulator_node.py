"""Node of emulated devices on a simulated arm, in place of the laboratory (backend emulated)."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from std_msgs.msg import String

from softarm_ros.clock import Rhythm
from softarm_ros.emulation.emulated_arm import BOARD_LATE_MS, SWITCH_S
from softarm_ros.emulation.emulated_sensor import LookingSensor, write_address
from softarm_ros.nodes.hardware_node import HardwareNode
from softarm_ros.nodes.heartbeat import UNCONFIGURED
from softarm_ros.nodes.node_errors import NodeFailedError, RefusedError
from softarm_ros.nodes.node_parameters import declare, declare_seed
from softarm_ros.nodes.pose_publisher import PosePublisher, TrueTipPublisher
from softarm_ros.nodes.qos import listening
from softarm_ros.nodes.run_nodes import run_node
from softarm_ros.runtime.addresses import forget_addresses
from softarm_ros.runtime.arm_assembly import build_emulated_arm, build_emulated_sensor, build_plant
from softarm_ros.runtime.pacing import Pacer
from softarm_ros.runtime.part_failure import failure_text

if TYPE_CHECKING:
    from softarm_ros.emulation.emulated_arm import EmulatedArm
    from softarm_ros.emulation.emulated_sensor import EmulatedSensor
    from softarm_ros.plant.mocap import PoseMeasurement

CHUNK_S = 0.002  # simulated time between two device updates; raised to the plant's step if longer
TICK_BUDGET_S = 0.01
SLOW_SHARE = 0.9
REPORT_S = 0.5


class EmulatorNode(HardwareNode):
    """
    Runs emulated devices and sensors, and the arm between them, in real time.

    Drivers find the devices through `devices_folder`. The node does not read commands: only the
    devices move the arm. For a rig without sensors it publishes the poses that cameras would
    measure. `~/inject` takes faults as text: `steppers unplug`, `cameras freeze`, `natnet flip`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__('emulator', CHUNK_S, **options)
        self._arm: EmulatedArm | None = None
        self._sensors: dict[str, EmulatedSensor] = {}
        self._looking: list[LookingSensor] = []
        self._pacer: Pacer | None = None
        self._report: dict[str, str] = {}
        self._injected = 'none'
        self._seed = declare_seed(self)
        folder = declare(self, 'devices_folder', '', 'folder for the addresses of the devices')
        if not folder:
            raise RefusedError('parameter devices_folder is empty; expected a folder')
        self._folder = Path(folder)
        self._next_report_s = 0.0
        plant = self.rig.plant
        self._chunk_s = CHUNK_S if plant is None else max(CHUNK_S, plant.time_step_s)
        self._rhythm = Rhythm(self._chunk_s)
        seen = self.rig.sensors.devices()
        self._poses = None if seen else PosePublisher(self, self.rig)
        self._truth = TrueTipPublisher(self, self.rig)
        self.create_subscription(
            String, '~/inject', self._on_inject, listening(depth=10, reliable=True)
        )

    # -- life

    def connect(self) -> None:
        """Build the arm and start its devices."""
        # The first steps load compiled code; another plant takes them.
        build_plant(self.rig, self._seed).step(None, self._chunk_s)
        self._arm = build_emulated_arm(self.rig, self._seed)
        self._injected = 'none'
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._forget_addresses()
        self._arm.start(self._folder)
        for name in self.rig.sensors.devices():
            self._sensors[name] = build_emulated_sensor(self.rig, name, self._seed)
            write_address(self._folder, name, self._sensors[name].start())
        self._looking = [s for s in self._sensors.values() if isinstance(s, LookingSensor)]
        self.heartbeat.ok('configured')

    def begin(self) -> None:
        """Start the simulated time."""
        self._pacer = Pacer(1.0)
        self.heartbeat.ok('running')

    def rest(self) -> None:
        """Stop the simulated time of the arm; the devices run on."""
        self._pacer = None

    def release(self) -> None:
        """Close sensors and devices, and delete their addresses."""
        self._pacer = None
        sensors, self._sensors, self._looking = self._sensors, {}, []
        for sensor in sensors.values():
            sensor.close()
        arm, self._arm = self._arm, None
        if arm is not None:
            arm.close()
            self._forget_addresses()

    def _forget_addresses(self) -> None:
        names = (*self.rig.required_devices('emulated').names, *self.rig.sensors.devices())
        forget_addresses(names, self._folder)

    # -- work

    def turn(self, now_s: float) -> None:
        """Let the arm catch up with the wall clock."""
        arm, pacer = self._arm, self._pacer
        if arm is None or pacer is None:
            return
        target = pacer.target(now_s, arm.time_s)
        origin = 1e-9 * self.get_clock().now().nanoseconds - target
        while arm.time_s + 0.5 * self._chunk_s < target:
            try:
                arm.advance(self._chunk_s)
                for looking in self._looking:
                    looking.look(arm.plant, arm.time_s)
                self._show(arm.plant.poll_poses(), arm.time_s, origin)
                self._truth.publish(arm.plant, origin)
            except Exception as error:  # parts of other packages may raise anything
                text = f'emulated arm: {failure_text(error)}'
                self.heartbeat.error(text)
                raise NodeFailedError(text) from error
            if time.monotonic() - now_s > TICK_BUDGET_S:
                break
        if now_s >= self._next_report_s:
            self._next_report_s = now_s + REPORT_S
            self._report = arm.report()
            for sensor in self._sensors.values():
                self._report |= sensor.report()
            self.heartbeat.late(1e-3 * float(self._report.get(BOARD_LATE_MS, '0')))
        if pacer.measure(time.monotonic(), arm.time_s):
            self._tell(pacer)

    def _show(self, measured: Sequence[PoseMeasurement], time_s: float, origin: float) -> None:
        """Pass measured poses to the sensors; publish them if the rig has no sensors."""
        for sensor in self._sensors.values():
            sensor.deliver(measured, time_s)
        if self._poses is not None:
            self._poses.publish(measured, origin)

    def _tell(self, pacer: Pacer) -> None:
        if pacer.achieved < SLOW_SHARE:
            self.heartbeat.warn(f'simulated {pacer.achieved:.2f} s per second instead of 1')
        else:
            self.heartbeat.ok('running')

    def _on_inject(self, message: String) -> None:
        if self._arm is None:
            self.get_logger().error(f'inject {message.data!r}: {UNCONFIGURED}')
            return
        try:
            # Faults of cameras and of moving parts go to the simulated arm, others to the devices.
            kind, _, fault = message.data.strip().partition(' ')
            of_plant = kind in [name.split()[0] for name in self._arm.plant.faults()]
            if kind in self._sensors:
                self._injected = f'{kind} {self._sensors[kind].inject(fault)}'
            else:
                broken = self._arm.plant if of_plant else self._arm
                self._injected = broken.inject(message.data)
        except (ValueError, RuntimeError, OSError) as error:
            self.get_logger().error(f'inject {message.data!r}: {error}')
            return
        self.get_logger().warning(f'injected: {self._injected}')

    def heartbeat_values(self) -> dict[str, str]:
        """Return the injected fault, the pace of the simulation and the devices' reports."""
        arm, pacer = self._arm, self._pacer
        not_ready = '' if pacer is not None else self.idle()
        return {
            'ready': str(not not_ready).lower(),
            'not_ready': not_ready,
            'injected': self._injected,
            'poses': str(self._poses.count if self._poses is not None else 0),
            'simulated_s': f'{arm.time_s:.3f}' if arm is not None else 'nan',
            'speed': f'{pacer.achieved:.3f}' if pacer is not None else '0',
            'time_lost_s': f'{pacer.lost_s:.3f}' if pacer is not None else '0',
            **self._report,
        }


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    sys.setswitchinterval(SWITCH_S)
    return run_node(EmulatorNode, 'emulator', args)


if __name__ == '__main__':
    sys.exit(main())
