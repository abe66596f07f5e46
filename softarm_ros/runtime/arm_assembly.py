"""
Factory of the arm's side: plant, drivers, sensors and emulated devices of a rig.

The controller's side is `assembly`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softarm_ros.control.gripper import GRIPPER
from softarm_ros.drivers.actuator_driver import ActuatorDriver
from softarm_ros.geometry.counts import whole_number
from softarm_ros.perception.sensor import PoseSensor
from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.world import World
from softarm_ros.rigs.devices import Devices
from softarm_ros.rigs.errors import Problem, RigError, listed
from softarm_ros.rigs.graph import check_emulated_sensor
from softarm_ros.rigs.part_choice import chosen_part
from softarm_ros.rigs.part_registry import built_part, find_part
from softarm_ros.rigs.rig_files import find_rig
from softarm_ros.rigs.rig_parts import (
    DRIVER,
    SIMULATED,
    arm_part,
    body_part,
    gripper_part,
    role_of,
    sensor_part,
)
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.addresses import addressed, addressed_sensor
from softarm_ros.runtime.marker_expectation import MarkerExpectation

if TYPE_CHECKING:
    from softarm_ros.emulation.emulated_arm import EmulatedArm
    from softarm_ros.emulation.emulated_sensor import EmulatedSensor
    from softarm_ros.geometry.parts import Part
    from softarm_ros.perception.config import PoseSensorConfig
    from softarm_ros.plant.plant import Plant

_OF_DEVICE = ('start', 'close', 'reset', 'not_ready', 'problems', 'values')
_OF_DRIVE = (*_OF_DEVICE, 'home', 'follow', 'hold', 'reading')
_OF_EYES = ('capture', 'poll', 'due', 'faults', 'enabled', 'next_frame_s', 'next_arrival_s')


def build_plant(rig: Rig, seed: int) -> Plant:
    """
    Return the simulated arm of a rig; `seed` determines every random number.

    The seed also selects the machine, unless the rig sets `plant.machine.number`.

    Raises
    ------
    RigError
        If the rig has no plant, or its plant finds no rest position.
    ValueError
        If the seed is not a whole number, or negative.

    """
    expected = 'a whole number >= 0'
    if whole_number(seed, 'seed', expected) < 0:
        raise ValueError(f'seed = {seed}: expected {expected}')
    from softarm_ros.plant.mocap import Mocap

    config = rig.plant_for('sim').of_machine(seed)
    part = body_part(arm_part(rig.kind), config.kind)
    role, drives = _attached(rig, part)
    medium, fields = chosen_part('medium', config.medium)
    fluid = medium.builder('fluid')(fields)
    if fluid is not None:
        built_part(medium, fluid, 'properties', 'current_m_s')
    world = World(
        rig.gravity_m_s2,
        fluid,
        rig.tip_load_kg,
        rig.arm.payload_density_kg_m3,
        _simulated_gripper(rig, getattr(config, GRIPPER, None)),
    )
    try:
        simulated = part.builder(role)(config, drives, world, seed)
    except PlantError as error:
        problem = Problem(('plant',), f'the simulated arm finds no rest position: {error}')
        raise RigError(str(rig.source or ''), [problem]) from error
    plant: Plant = built_part(part, simulated, 'look_with', 'actuator_state')
    plant.expect(len(rig.actuator_names))
    sensor = sensor_part(config.mocap.kind)
    eyes = sensor.builder(SIMULATED)(config.mocap, seed)
    plant.look_with(built_part(sensor, eyes, *_OF_EYES, like=Mocap))
    return plant


def machine_facts(rig: Rig, seed: int) -> dict[str, Any]:
    """Return the `RunInfo` fields that name the machine a simulated run of a rig drives."""
    plant = rig.plant_for('sim')
    drawn = {draw.field: draw.drawn for draw in plant.drawn(seed)}
    return {'machine': plant.machine_number(seed) if plant.machine else 0, 'drawn': drawn}


def build_driver(rig: Rig, devices: Devices) -> ActuatorDriver:
    """Return the driver of all actuators of a rig, connected to `devices` (real or emulated)."""
    part = find_part('drives', devices.DRIVING)
    role, drives = _attached(rig, part)
    blocks = devices.blocks()
    if GRIPPER in blocks:
        blocks[GRIPPER] = partial(_gripper_part(rig).builder(DRIVER), blocks[GRIPPER])
    driver: ActuatorDriver = built_part(
        part, part.builder(role)(drives, **blocks), *_OF_DRIVE, like=ActuatorDriver
    )
    return driver


def build_actuator_driver(rig: Rig, folder: str | Path | None = None) -> ActuatorDriver:
    """
    Return the driver of a rig's actuators: of emulated devices in `folder`, else of the real ones.

    Raises
    ------
    RigError
        If the rig declares no devices.
    NoDevicesYetError
        If `folder` does not have the addresses yet.

    """
    devices = rig.required_devices('emulated' if folder else 'hardware')
    return build_driver(rig, addressed(devices, folder))


def build_pose_sensor(rig: Rig, name: str, folder: str | Path | None = None) -> PoseSensor:
    """
    Return a sensor of a rig: the emulated device in `folder`, else the real one.

    Raises
    ------
    RigError
        If the rig has no such sensor; the message lists those it has.
    NoDevicesYetError
        If `folder` does not have the address yet.
    SensorError
        If a library is missing.

    """
    config, part = sensor_config(rig, name), find_part('sensors', name)
    sensor = part.builder('driver')(addressed_sensor(name, config, folder), rig.base_frame)
    built: PoseSensor = built_part(
        part, sensor, 'open', 'read', 'health', 'close', like=PoseSensor
    )
    return built


def build_emulated_sensor(rig: Rig, name: str, seed: int) -> EmulatedSensor:
    """Return the emulated device of a sensor; raise RigError if the sensor has none."""
    from softarm_ros.emulation.emulated_sensor import EmulatedSensor as Interface

    config, part = sensor_config(rig, name), find_part('sensors', name)
    check_emulated_sensor(rig, name)
    sensor = part.builder('emulated')(config, rig.section_names, seed)
    methods = ('start', 'deliver', 'inject', 'report', 'close')
    built: EmulatedSensor = built_part(part, sensor, *methods, like=Interface)
    return built


def build_marker_expectation(rig: Rig, name: str) -> MarkerExpectation | None:
    """Return where the rig's default model expects a sensor's markers; None without cameras."""
    from softarm_ros.perception.stereo.config import StereoCamerasConfig  # few arms have cameras

    config = sensor_config(rig, name)
    if not isinstance(config, StereoCamerasConfig):
        return None
    return MarkerExpectation(rig.model(), config.marker_places(rig.section_names))


def sensor_config(rig: Rig, name: str) -> PoseSensorConfig:
    """Return a sensor's fields; a calibration file beside the rig file gets its full path."""
    known = rig.sensors.devices()
    if name not in known:
        raise RigError('', f'rig {rig.name!r} has no sensor {name!r}: {listed(known) or "none"}')
    config: PoseSensorConfig = known[name]
    if config.base_calibration is None or rig.source is None:
        return config
    beside = find_rig(rig.source).parent / Path(config.base_calibration).expanduser()
    if not beside.is_file():
        return config
    return config.model_copy(update={'base_calibration': str(beside.resolve())})


def build_emulated_arm(rig: Rig, seed: int) -> EmulatedArm:
    """Return the emulated devices on a rig's simulated arm; RigError if it declares none."""
    devices = rig.required_devices('emulated')
    config = rig.plant_for('emulated').of_machine(seed)
    part = find_part('drives', devices.DRIVING)
    role, drives = _attached(rig, part)
    built = part.builder(f'{role}, emulated')(
        build_plant(rig, seed), config, drives, seed, **devices.blocks()
    )
    arm: EmulatedArm = built_part(part, built, 'start', 'advance', 'close', 'inject', 'report')
    return arm


def _attached(rig: Rig, part: Part) -> tuple[str, Any]:
    """Return the role in which a drive or body is built for this arm, and its attachments."""
    arm = arm_part(rig.kind)
    role = role_of(part, arm)
    return role, arm.builder(role)(rig.arm, rig.around)


def _simulated_gripper(rig: Rig, fields: Any) -> Any:
    if fields is None:
        return None
    part = _gripper_part(rig)
    return built_part(part, part.builder(SIMULATED)(fields), 'fill', 'handle', 'place')


def _gripper_part(rig: Rig) -> Part:
    return gripper_part(None if rig.gripper is None else rig.gripper.kind)
