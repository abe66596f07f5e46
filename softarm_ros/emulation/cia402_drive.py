"""One emulated servo drive, without a network: state machine, torque stage and faults."""

from __future__ import annotations

from dataclasses import dataclass

WATCHDOG_FAULT = 0x8130
EXCESS_SPEED_FAULT = 0x8400

# Faults of current, voltage and hardware (2xxx, 3xxx, 5xxx) switch the power stage off at once.
_STAGE_FAULTS = (0x2, 0x3, 0x5)

# CiA 402 status words of a drive, with the bits voltage enabled and remote always set.
_STATUS = {
    'disabled': 0x0250,
    'ready': 0x0231,
    'switched_on': 0x0233,
    'enabled': 0x0237,
    'quick_stop': 0x0217,
    'fault': 0x0218,
}


@dataclass
class EmulatedDrive:
    """
    A drive in torque mode, as CiA 402 describes it.

    The transitions follow the CiA 402 profile, not the driver. Torque is in N m.

    A motor may have a holding brake, which spring force closes when its current stops
    (`brake_lifted`). Meanwhile (`brake_close_s`) the drive keeps its torque, unless its power
    stage has failed.
    """

    torque_limit_N_m: float
    watchdog_s: float = 0.1
    brake_close_s: float = 0.0
    state: str = 'disabled'
    fault_code: int = 0
    position: float = 0.0
    speed: float = 0.0
    _command: float = 0.0
    _control: int = 0
    _silent_s: float = 0.0
    _persists: bool = False
    _kept: float = 0.0
    _off_s: float = 0.0
    transitions: int = 0

    @property
    def status_word(self) -> int:
        """The status word that a master reads."""
        return _STATUS[self.state]

    @property
    def torque(self) -> float:
        """Torque at the shaft [N m]: the command within the limit, while enabled."""
        if self.state == 'enabled':
            return max(-self.torque_limit_N_m, min(self.torque_limit_N_m, self._command))
        return self._kept if self._off_s < self.brake_close_s else 0.0

    @property
    def brake_lifted(self) -> bool:
        """Whether the brake has current and is therefore lifted."""
        return self.state == 'enabled'

    @property
    def command(self) -> float:
        """Torque that was written last [N m], whether or not it is followed."""
        return self._command

    def write_torque(self, torque_N_m: float) -> None:
        """Take a torque command."""
        self._command = torque_N_m

    def write_control(self, control: int) -> None:
        """Take a control word, with at most one transition; feeds the watchdog."""
        self._silent_s = 0.0
        before, self._control = self._control, control
        state = self._next_state(control, before)
        if state != self.state:
            self._move_to(state)

    def _move_to(self, state: str) -> None:
        if self.state == 'enabled':
            self._kept, self._off_s = self.torque, 0.0
        self.state = state
        self.transitions += 1

    def _next_state(self, control: int, before: int) -> str:
        if self.state == 'fault':
            if control & 0x80 and not before & 0x80 and not self._persists:
                self.fault_code = 0
                return 'disabled'
            return 'fault'
        command = control & 0x0F
        if not command & 0x02:
            return 'disabled'  # disable voltage
        if not command & 0x04:
            # Quick stop: along its ramp if there is torque, else power off.
            return 'quick_stop' if self.state in ('enabled', 'quick_stop') else 'disabled'
        if self.state == 'quick_stop':
            return 'quick_stop'
        if not command & 0x01:
            return 'ready'  # shutdown
        enable = bool(command & 0x08)
        if self.state == 'ready':
            return 'switched_on'
        if self.state in ('switched_on', 'enabled'):
            return 'enabled' if enable else 'switched_on'
        return self.state

    def fail(self, code: int, persists: bool = False) -> None:
        """Enter a fault; a persistent fault cannot be reset until `heal`."""
        self._move_to('fault')
        self.fault_code, self._persists = code, persists
        if code >> 12 in _STAGE_FAULTS:
            self._kept = 0.0

    def heal(self) -> None:
        """Remove the cause of a fault; the drive stays in the fault until it is reset."""
        self._persists = False

    def advance(self, dt_s: float) -> None:
        """Advance the time of the drive's watchdog."""
        self._silent_s += dt_s
        self._off_s += dt_s
        if self._silent_s > self.watchdog_s and self.state == 'enabled':
            self.fail(WATCHDOG_FAULT)
