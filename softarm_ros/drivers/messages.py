"""Typed messages of the stepper and valve devices, converted to and from frame payloads.

docs/protocol.md gives every byte. Positions are in microsteps; names of times give their unit.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from softarm_ros.drivers.frames import Frame, encode

PROTOCOL_VERSION = 1
MOTORS = 6
VALVES = 60
WATCHDOG_S = 0.2
MAX_BRAKING_S = 0.04
GO_ON = 0xFFFF  # entry of OPEN: the output keeps its earlier order


class Type(IntEnum):
    """Frame types; types from ARM to 0x7F are sealed with the boot id."""

    HELLO = 0x01
    PING = 0x02
    GET_COUNTERS = 0x03
    STOP = 0x04
    DISARM = 0x05
    ARM = 0x10
    RESET = 0x11
    STEPPER_CONFIG = 0x20
    ZERO = 0x21
    RELEASE = 0x22
    TARGETS = 0x23
    VALVE_CONFIG = 0x30
    OPEN = 0x31
    KEEP = 0x32
    HELLO_REPLY = 0x81
    PONG = 0x82
    COUNTERS = 0x83
    ACK = 0x84
    STEPPER_STATE = 0x90
    VALVE_STATE = 0x91


class Kind(IntEnum):
    """Kind of device."""

    STEPPERS = 1
    VALVES = 2


class State(IntEnum):
    """State of a device."""

    BOOT = 0
    IDLE = 1
    ARMED = 2
    RUNNING = 3
    STOPPED = 4
    FAULT = 5


class Cause(IntEnum):
    """Cause of the state STOPPED or FAULT of a device."""

    NONE = 0
    STOP_FRAME = 1
    WATCHDOG = 2
    NEW_HOST = 3
    COIL_BUS = 4

    @property
    def text(self) -> str:
        """Text of the cause."""
        return _CAUSES[self]


_CAUSES = {
    Cause.NONE: 'no reason given',
    Cause.STOP_FRAME: 'a STOP frame was received',
    Cause.WATCHDOG: 'no command received for 200 ms',
    Cause.NEW_HOST: 'another host, or a restarted one, said hello',
    Cause.COIL_BUS: 'a motor shield does not answer',
}


class Result(IntEnum):
    """Result in the answer of a device."""

    OK = 0
    TYPE = 1
    LENGTH = 2
    STATE = 3
    VERSION = 4
    VALUE = 5
    LIMIT = 6
    NOT_READY = 7
    MOVING = 8
    INTERLOCK = 9
    BATCH = 10
    COIL_BUS = 11


class ResetCause(IntEnum):
    """Cause of the last start of a device."""

    UNKNOWN = 0
    POWER = 1
    PIN = 2
    BROWN_OUT = 3
    WATCHDOG = 4
    SOFTWARE = 5


class MessageError(ValueError):
    """The content of a valid frame is not part of this protocol."""


def key_of(frame_type: int, boot_id: int) -> int:
    """Return the key that seals frames of a type for the device with this boot id."""
    return boot_id if Type.ARM <= frame_type < 0x80 else 0


def encode_for(frame: Frame, boot_id: int) -> bytes:
    """Return a host's frame as bytes on the line, sealed as its type requires."""
    return encode(frame, key_of(frame.type, boot_id))


# ---- Host to device: payloads ---------------------------------------------------------------
def hello(version: int = PROTOCOL_VERSION) -> bytes:
    """Return the payload of HELLO."""
    return struct.pack('<B', version)


def ping(token: int) -> bytes:
    """Return the payload of PING; the answer repeats the token."""
    return struct.pack('<I', token)


@dataclass(frozen=True)
class StepperConfig:
    """Limits of a motor: microsteps, microsteps/s, microsteps/s^2."""

    motor: int
    max_speed: int
    acceleration: int
    braking: int
    minimum: int
    maximum: int

    def payload(self) -> bytes:
        """Return the payload of STEPPER_CONFIG."""
        return struct.pack(
            '<BHIIii',
            self.motor,
            self.max_speed,
            self.acceleration,
            self.braking,
            self.minimum,
            self.maximum,
        )


def _per_motor(values: Sequence[int]) -> bytes:
    if len(values) != MOTORS:
        raise ValueError(f'positions: {len(values)} given, {MOTORS} needed')
    return struct.pack(f'<{MOTORS}i', *values)


def zero(mask: int, positions: Sequence[int]) -> bytes:
    """Return the payload of ZERO: the motors of the mask are at these positions now."""
    return struct.pack('<B', mask) + _per_motor(positions)


def targets(positions: Sequence[int]) -> bytes:
    """Return the payload of TARGETS; 0 for a motor that is not in use."""
    return _per_motor(positions)


def valve_config(max_open_ms: int, dead_time_ms: int) -> bytes:
    """Return the payload of VALVE_CONFIG."""
    return struct.pack('<HH', max_open_ms, dead_time_ms)


def open_valves(batch: int, open_ms: Sequence[int]) -> bytes:
    """Return the payload of OPEN: for each output its opening time, 0 to close it, or GO_ON."""
    if len(open_ms) != VALVES:
        raise ValueError(f'open_ms: {len(open_ms)} given, {VALVES} needed')
    return struct.pack(f'<H{VALVES}H', batch & 0xFFFF, *open_ms)


def keep(batch: int) -> bytes:
    """Return the payload of KEEP: the batch is still wanted."""
    return struct.pack('<H', batch & 0xFFFF)


# ---- Device to host -------------------------------------------------------------------------
@dataclass(frozen=True)
class HelloReply:
    """Identity of the device; its boot id changes at every start."""

    version: int
    kind: Kind
    firmware: tuple[int, int]
    channels: int
    reset_cause: ResetCause
    boot_id: int


@dataclass(frozen=True)
class Pong:
    """Answer to a ping."""

    token: int
    time_us: int


@dataclass(frozen=True)
class Ack:
    """Answer to any other frame; control frames are answered only when refused."""

    type: int
    sequence: int
    result: Result


@dataclass(frozen=True)
class Counters:
    """Counts of the device since its start; they saturate at their largest value."""

    accepted: int
    corrupt: int
    malformed: int
    lost: int
    stale: int
    refused: int
    skipped_states: int
    stalled: int
    writes: int
    write_errors: int


@dataclass(frozen=True)
class StepperState:
    """State of the steppers; bit m of masks is motor m; `positions` are those of the coils."""

    time_us: int
    state: State
    cause: Cause
    control_sequence: int
    moving: int
    zeroed: int
    stalled: int
    positions: tuple[int, ...]

    @property
    def code(self) -> str:
        """State and cause as text for diagnostics."""
        return f'{self.state.name} cause {self.cause.value}'


@dataclass(frozen=True)
class ValveState:
    """State of the valves; bit n of `open` is output n."""

    time_us: int
    state: State
    cause: Cause
    control_sequence: int
    batch: int
    open: int


Message = HelloReply | Pong | Ack | Counters | StepperState | ValveState

_LAYOUTS = {
    Type.HELLO_REPLY: struct.Struct('<6BI'),
    Type.PONG: struct.Struct('<II'),
    Type.ACK: struct.Struct('<BBB'),
    Type.COUNTERS: struct.Struct('<I6HIIH'),
    Type.STEPPER_STATE: struct.Struct(f'<I6B{MOTORS}i'),
    Type.VALVE_STATE: struct.Struct('<I3BHQ'),
}


def parse(frame: Frame) -> Message:
    """Return the message in a device's frame.

    Raises:
        MessageError: if the type, the length or a code in the frame is unknown.
    """
    try:
        kind = Type(frame.type)
        layout = _LAYOUTS[kind]
        if layout.size != len(frame.payload):
            raise MessageError(
                f'{kind.name}: {len(frame.payload)} bytes of payload, {layout.size} expected'
            )
        f = layout.unpack(frame.payload)
        if kind is Type.HELLO_REPLY:
            return HelloReply(f[0], Kind(f[1]), (f[2], f[3]), f[4], ResetCause(f[5]), f[6])
        if kind is Type.PONG:
            return Pong(*f)
        if kind is Type.ACK:
            return Ack(f[0], f[1], Result(f[2]))
        if kind is Type.COUNTERS:
            return Counters(*f)
        if kind is Type.STEPPER_STATE:
            return StepperState(
                f[0], State(f[1]), Cause(f[2]), f[3], f[4], f[5], f[6], tuple(f[7:])
            )
        return ValveState(f[0], State(f[1]), Cause(f[2]), f[3], f[4], f[5])
    except KeyError:
        raise MessageError(f'type 0x{frame.type:02x}: no device sends it') from None
    except ValueError as error:
        raise MessageError(f'type 0x{frame.type:02x}: {error}') from error
