"""Configuration of servo drives on Modbus TCP."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from softarm_ros.drivers.cia402 import FAULT_NAMES, ControlWords, StatusWords
from softarm_ros.drivers.command_check import check_rate
from softarm_ros.drivers.modbus_registers import LAST_ADDRESS, Address, Register
from softarm_ros.geometry.configs import ConfigBlock, Finite, Host, Positive, Timeout

COMMANDS = ('control_word', 'torque_command')  # registers that are written in every exchange
AxisName = Annotated[str, Field(pattern=r'^[a-z][a-z0-9_]*$')]


class ServoRegisters(ConfigBlock):
    """Registers of an axis; the same for all axes, relative to their base addresses."""

    control_word: Register
    torque_command: Register = Field(description='scale in N m per count')
    status_word: Register
    torque: Register = Field(description='measured or estimated by the drive; N m per count')
    speed: Register = Field(description='rad/s per count')
    position: Register = Field(description='rad per count')
    fault_code: Register = Field(description="the drive's own code, 0 for none")

    @model_validator(mode='after')
    def _words_and_tables(self) -> ServoRegisters:
        for name in ('control_word', 'status_word', 'fault_code'):
            register = getattr(self, name)
            if register.type not in ('uint16', 'int16', 'uint32', 'int32'):
                raise ValueError(f'{name} is {register.type}; expected an integer type')
            if (register.scale, register.zero) != (1.0, 0.0):
                raise ValueError(f'{name} is a code: scale and zero do not apply')
        for name in COMMANDS:
            if getattr(self, name).table != 'holding':
                raise ValueError(f'{name} is written: expected table holding')
        return self


class SetupWrite(ConfigBlock):
    """A raw number that is written after each connection and read back."""

    register_: Register = Field(alias='register')
    value: Finite = Field(description='raw number of the device, without scale')
    comment: str = Field(default='', description='meaning of the number')

    @model_validator(mode='after')
    def _can_be_written(self) -> SetupWrite:
        register = self.register_
        if register.table != 'holding':
            raise ValueError(f'register {register.address} is written: expected table holding')
        kept = register.decode_raw(register.encode_raw(self.value))
        if register.type != 'float32' and kept != self.value:
            raise ValueError(f'value = {self.value}: register {register.address} holds integers')
        return self


class ServoAxis(ConfigBlock):
    """One drive, or one axis of a motion controller."""

    name: AxisName
    unit: int = Field(default=1, ge=0, le=255, description='Modbus unit identifier')
    base: Address = Field(default=0, description='added to the addresses of all registers')
    torque_limit_N_m: Positive
    speed_limit_rad_s: float = Field(
        gt=0.0, le=1e4, description='a higher speed disables all drives'
    )
    reversed: bool = Field(
        default=False, description='reverses the sign of torque, speed and position'
    )


class ServoConfig(ConfigBlock):
    """Servo drives in torque mode behind one Modbus TCP connection."""

    host: Host
    port: int = Field(default=502, ge=1, le=65535)
    axes: tuple[ServoAxis, ...] = Field(min_length=1)
    registers: ServoRegisters
    setup: tuple[SetupWrite, ...] = Field(
        default=(),
        description='written to each axis, such as torque mode and watchdog of the drive',
    )
    status_words: StatusWords = StatusWords()
    control_words: ControlWords = ControlWords()
    fault_names: dict[int, str] = Field(
        default={},
        description='fault names of the drive, in addition to those of the profile CiA 402',
    )
    holding_brakes: bool = Field(
        default=False,
        description='the motors have brakes that the drives close: when switched off, the torque '
        'command is kept, so that the drive holds it until the brakes have closed',
    )
    max_gap: int = Field(
        default=0,
        ge=0,
        le=100,
        description='unused registers that a read may cross; some drives refuse any',
    )
    rate_hz: float = Field(
        gt=0.0, le=1e3, default=100.0, description='rate of exchanges with all axes'
    )
    response_timeout_s: Timeout = Field(
        default=0.06, description='time for the answer to one request'
    )
    link_timeout_s: Timeout = Field(
        default=0.15, description='time without an answer after which an axis counts as lost'
    )
    command_timeout_s: Timeout = Field(
        default=0.1, description='an older torque command stops all axes'
    )
    transition_timeout_s: Timeout = Field(
        default=2.0, description='time for enabling, and for a fault to clear after a reset'
    )
    reconnect_s: Timeout = Field(default=0.25, description='pause between attempts to connect')

    @model_validator(mode='after')
    def _consistent(self) -> ServoConfig:
        names = [axis.name for axis in self.axes]
        if len(set(names)) != len(names):
            raise ValueError(f'axes: names {", ".join(names)} are not all different')
        places = [(axis.unit, axis.base) for axis in self.axes]
        if len(set(places)) != len(places):
            raise ValueError('axes: two axes have the same unit and base')
        if self.response_timeout_s > self.link_timeout_s:
            raise ValueError(
                f'response_timeout_s = {self.response_timeout_s} exceeds link_timeout_s = '
                f'{self.link_timeout_s}'
            )
        check_rate('rate_hz', self.rate_hz, 'exchange', self.command_timeout_s)
        self._check_addresses()
        command = self.registers.torque_command
        for axis in self.axes:
            for value in (axis.torque_limit_N_m, -axis.torque_limit_N_m):
                try:
                    command.encode(value)
                except ValueError as error:
                    raise ValueError(
                        f'axis {axis.name}: torque_limit_N_m = {axis.torque_limit_N_m} cannot be '
                        f'sent: {error}'
                    ) from error
        return self

    def _check_addresses(self) -> None:
        """Raise ValueError if a register does not exist, or two commands share one."""
        commands: dict[tuple[int, int], str] = {}
        registers = {name: getattr(self.registers, name) for name in ServoRegisters.model_fields}
        for axis in self.axes:
            for register in (*registers.values(), *(entry.register_ for entry in self.setup)):
                last = axis.base + register.address + register.words - 1
                if last > LAST_ADDRESS:
                    raise ValueError(
                        f'axis {axis.name}: base {axis.base} + address {register.address} leads '
                        f'to register {last}; the last one is {LAST_ADDRESS}'
                    )
            for name in COMMANDS:
                start = axis.base + registers[name].address
                here = f'{name} of {axis.name}'
                for at in range(start, start + registers[name].words):
                    there = commands.setdefault((axis.unit, at), here)
                    if there != here:
                        raise ValueError(
                            f'axes: register {at} of unit {axis.unit} is {there} and {here}'
                        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the axes, in the order of every array."""
        return tuple(axis.name for axis in self.axes)

    def fault_name(self, code: int) -> str:
        """Return the meaning of a fault code, or 'unknown fault'."""
        return self.fault_names.get(code) or FAULT_NAMES.get(code, 'unknown fault')
