"""A whole rig in the time of a clock: its emulated devices in memory and their real driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from daq_memory import MemoryDaq
from manual_clock import ManualClock
from memory_board import MemoryBoard
from memory_line import MemoryLine
from modbus_memory import MemoryDrives

from softarm_ros.drivers.actuator_driver import ActuatorDriver, FedByPressures
from softarm_ros.drivers.connections import Connections
from softarm_ros.drivers.daq_config import DaqHost
from softarm_ros.emulation.emulated_arm import EmulatedArm
from softarm_ros.emulation.emulated_cable_arm import EmulatedCableArm
from softarm_ros.emulation.emulated_hydraulic_arm import EmulatedHydraulicArm
from softarm_ros.emulation.emulated_muscle_arm import EmulatedMuscleArm
from softarm_ros.emulation.emulated_pneumatic_arm import EmulatedPneumaticArm
from softarm_ros.emulation.emulated_servo_arm import EmulatedServoArm
from softarm_ros.emulation.emulated_tendon_arm import EmulatedTendonArm
from softarm_ros.rigs.devices import Devices
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.addresses import SERIAL
from softarm_ros.runtime.arm_assembly import build_driver, build_plant
from softarm_ros.runtime.pressure_feed import PressureFeed

CHUNK_S = 0.002
# Replaces the name of a port; no file of this name is opened.
PORT = 'memory://{}'


class _Reached:
    """The devices of a rig, with their connections, for the parts that build drivers."""

    def __init__(self, devices: Devices, connections: Connections) -> None:
        self._devices, self._connections = devices, connections
        self.DRIVING = devices.DRIVING

    def blocks(self) -> dict[str, Any]:
        """Return the blocks of `Devices`, and the connections."""
        return {**self._devices.blocks(), 'connections': self._connections}


class MemoryArm:
    """
    Runs emulated devices on a simulated arm in manual time; `EmulatedBench` uses real time.

    Attributes
    ----------
    rig
        The rig, with the addresses of these devices.
    connections
        Connections to the devices.

    """

    def __init__(self, rig: Rig, folder: Path, seed: int = 0) -> None:
        self.clock = ManualClock()
        self.rig = rig.model_copy(update={'devices': rig.devices.model_copy(update=_at(rig))})
        self._lines: dict[str, Any] = {}
        make = {
            'dynamixel': self._make_servo_bus_arm,
            'steppers': self._make_stepper_arm,
            'valves': self._make_valve_arm,
            'servo': self._make_servo_arm,
            'daq': self._make_daq_arm,
        }
        self.arm: EmulatedArm = make[rig.devices.DRIVING](seed)
        self.connections = Connections(self.clock, **self._lines)
        self._stop = self.clock.event()
        self._passing = self.clock.task(self._pass_time, 'arm')
        self.arm.start(folder)
        self._passing.start()

    def driver(self) -> tuple[ActuatorDriver, PressureFeed | None]:
        """Return the rig's own driver, and its pressure feed if it needs one."""
        devices = self.rig.devices
        driver = build_driver(self.rig, _Reached(devices, self.connections))
        if not isinstance(driver, FedByPressures):
            return driver, None
        names = self.rig.actuator_names
        return driver, PressureFeed(devices.daq, names, driver, self.connections)

    def close(self) -> None:
        """Stop the devices; fail if any task has failed."""
        self._stop.set()
        self._passing.join()
        self.arm.close()
        assert self.clock.failures == []

    def _pass_time(self) -> None:
        while not self._stop.wait(CHUNK_S):
            self.arm.advance(CHUNK_S)

    # -- devices by name

    def _make_stepper_arm(self, seed: int) -> EmulatedArm:
        board = self._make_board('steppers')
        step_m, motors = self.rig.plant.stepper.step_m, self.rig.devices.steppers.motors
        arm = build_plant(self.rig, seed)
        return EmulatedCableArm(arm, step_m, motors, clock=self.clock, board=board)

    def _make_servo_bus_arm(self, seed: int) -> EmulatedArm:
        line = MemoryLine(self.clock)
        self._lines['open_port'] = line.open_port
        step_m, config = self.rig.plant.stepper.step_m, self.rig.devices.dynamixel
        arm = build_plant(self.rig, seed)
        return EmulatedServoArm(arm, step_m, config, seed, self.clock, line.made)

    def _make_valve_arm(self, seed: int) -> EmulatedArm:
        board = self._make_board('valves')
        arm, valves = build_plant(self.rig, seed), self.rig.devices.valves
        return EmulatedMuscleArm(arm, valves, clock=self.clock, board=board)

    def _make_servo_arm(self, seed: int) -> EmulatedArm:
        devices = self.rig.devices
        arm = build_plant(self.rig, seed)
        return EmulatedHydraulicArm(
            arm, devices.servo, devices.daq, seed, self._make_drives, self._make_daq
        )

    def _make_daq_arm(self, seed: int) -> EmulatedArm:
        devices = self.rig.devices
        if self.rig.actuator_limits().unit == 'N':
            names = self.rig.actuator_names
            arm = build_plant(self.rig, seed)
            return EmulatedTendonArm(arm, devices.daq, names, seed, self.clock, self._make_daq)
        return EmulatedPneumaticArm(
            build_plant(self.rig, seed),
            devices.daq,
            devices.gripper,
            self.rig.actuator_names,
            seed,
            self.clock,
            self._make_daq,
        )

    def _make_board(self, kind: str) -> MemoryBoard:
        board = MemoryBoard(kind, self.clock)
        self._lines['open_port'] = board.open_port
        return board

    def _make_drives(self, config: Any, load: Any, **times_s: float) -> MemoryDrives:
        drives = MemoryDrives(config, self.clock, load, **times_s)
        self._lines['make_client'] = drives.client
        return drives

    def _make_daq(self, config: Any, source: Any, sink: Any = None, **seed: int) -> MemoryDaq:
        daq = MemoryDaq(config, self.clock, source, sink, **seed)
        self._lines['open_channel'] = daq.channel
        return daq


def until(
    clock: ManualClock,
    driver: Any,
    condition: Callable[[], object],
    within_s: float,
    work: Callable[[], object] = lambda: None,
) -> float:
    """Call `work` at 100 Hz until a condition holds; return how long it took [s]."""
    began = clock.now_s()
    while not condition():
        assert not clock.failures, clock.failures
        assert clock.now_s() - began < within_s, driver.not_ready()
        work()
        clock.sleep(0.01)
    return clock.now_s() - began


def _at(rig: Rig) -> dict[str, Any]:
    """Return the devices of a rig with addresses in memory."""
    at: dict[str, Any] = {}
    for name, block in rig.devices.blocks().items():
        if name in SERIAL:
            at[name] = block.model_copy(update={'port': PORT.format(name)})
        elif name == 'daq':
            at[name] = block.model_copy(update={'host': DaqHost(host='memory', port=1)})
    return at
