"""Decides whether the arm may move: a state machine without I/O."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from softarm_ros.control.command_gate import staleness
from softarm_ros.control.config import SupervisorConfig
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.geometry.arrays import Array

# After a pause of its own the supervisor first takes in what has arrived, then judges.
OWN_PAUSE_S = 0.05
# A hold for lateness ends when nothing has been late for this long.
CALM_S = 0.2
# What a node does not hear stops a moving arm when it has said so for this long: it may have said
# so once of a time before the start, or before it took in what had come during a pause of its own.
UNHEARD_S = 0.2


class SafetyState(str, Enum):
    """What the supervisor allows; only RUNNING lets the arm move."""

    WAITING = 'waiting'
    READY = 'ready'
    RUNNING = 'running'
    HELD = 'held'
    STOPPED = 'stopped'
    FAULT = 'fault'


@dataclass(frozen=True)
class SupervisorStatus:
    """
    State and the reason for it.

    `late`: lateness is the only cause of the hold or fault. `on_request`: nothing is, somebody has
    asked for it.
    """

    state: SafetyState
    reason: str
    motion_allowed: bool
    late: bool = False
    on_request: bool = False


def named(node: str, text: str) -> str:
    """Return the text of a node with its name in front, once."""
    return text if text.startswith(f'{node}: ') else f'{node}: {text}'


class Supervisor:
    """
    Watches processes, feedback, commands and actuator states.

    Two clocks are passed in by the caller. `now_s` is the one the loop lives by: monotonic, or
    simulated; what the loop passes on must be fresh on it. `wall_s` is always monotonic: a process
    lives while its heartbeats come on it. Where the loop runs in real time both are the same.

    Something late is a fault, latched until reset. A simulation (`strict` false) is only HELD for
    it and goes on by itself; there a lateness that lasts becomes a fault. Something wrong (a value
    that is not finite, a device that is not ready) is a fault at once. Its own silence is late
    when drivers have held the arm for it: after `permit_timeout_s` (None: as the config says).

    An estimator that drives the arm by prediction for `bridge_s` without a pose has brought it to
    a stop by then: feedback is late only after that and `feedback_timeout_s`.

    Attributes
    ----------
    untouched : bool
        Nobody has started or stopped the arm yet. Only so may it be started once it is
        ready without being asked: who has stopped it may stand beside it.

    """

    def __init__(
        self,
        config: SupervisorConfig,
        limits: ActuatorLimits,
        required_nodes: Sequence[str],
        *,
        feedback_required: bool = True,
        strict: bool = True,
        permit_timeout_s: float | None = None,
        bridge_s: float = 0.0,
    ) -> None:
        self.limits = limits
        self.required_nodes = tuple(required_nodes)
        self.feedback_required = feedback_required
        self.strict = strict
        self.max_pose_jump_m = config.max_pose_jump_m
        self._consecutive_s = config.feedback_timeout_s
        self.holds = 0
        self.untouched = True
        self._timeouts = {
            'feedback': bridge_s + config.feedback_timeout_s,
            'command': config.command_timeout_s,
            'actuator state': config.state_timeout_s,
        }
        self._heartbeat_timeout_s = config.heartbeat_timeout_s
        self._permit_timeout_s = (
            config.permit_timeout_s if permit_timeout_s is None else permit_timeout_s
        )
        self._hold_timeout_s = config.hold_timeout_s
        self._state = SafetyState.WAITING
        self._reason = 'waiting for ' + ', '.join(self.required_nodes)
        self._alive: dict[str, float] = {}
        self._seen: dict[str, float] = {}
        self._wall_s = -np.inf
        self._is_late = self._on_request = False
        self._listens = False  # whether this turn only takes messages in
        self._held_since = self._late_at = -np.inf
        self._last_position: Array | None = None
        # Why the newest message of a kind is bad; cleared by the next good one.
        self._bad: dict[str, str] = {}
        self._not_ready: dict[str, str] = {}
        # What does not arrive at nodes that move the arm: it delays a start and the end of a hold,
        # and stops a moving arm where it lasts.
        self._unheard: dict[str, str] = {}
        self._unheard_since: dict[str, float] = {}

    # -- messages

    def on_heartbeat(
        self,
        name: str,
        wall_s: float,
        not_ready: str = '',
        unheard: str = '',
        *,
        touched: bool = False,
    ) -> None:
        """
        A node is alive; a driver also says why its device is not ready, or what it does not hear.

        A node that has been restarted finds this one and the driver each in its own time: what
        arrives here need not arrive there yet. `touched`: somebody has started or stopped the
        arm before, though not here if this one has been restarted.
        """
        self.untouched = self.untouched and not touched
        if name not in self.required_nodes:
            return
        self._alive[name] = wall_s
        if unheard:
            self._unheard[name] = named(name, unheard)
            self._unheard_since.setdefault(name, wall_s)
        else:
            self._unheard.pop(name, None)
            self._unheard_since.pop(name, None)
        if not_ready:
            self._not_ready[name] = named(name, not_ready)
            self._fault_if_moving(self._not_ready[name])
        else:
            self._not_ready.pop(name, None)

    def on_feedback(self, now_s: float, position: Sequence[float] | Array) -> None:
        """A measured tip position (3,) [m] has arrived."""
        tip = np.asarray(position, dtype=float)
        if tip.shape != (3,) or not np.isfinite(tip).all():
            self._bad['feedback'] = f'feedback is not finite: tip position {tip.tolist()}'
            self._fault_if_moving(self._bad['feedback'])
            return
        if self._last_position is not None:
            fresh = now_s - self._seen.get('feedback', -np.inf) <= self._consecutive_s
            jump = math.dist(tip, self._last_position)
            if fresh and jump > self.max_pose_jump_m:
                self._fault_if_moving(
                    f'feedback jumped by {1e3 * jump:.1f} mm between two poses '
                    f'(limit {1e3 * self.max_pose_jump_m:.1f} mm)'
                )
        self._bad.pop('feedback', None)
        self._last_position = tip
        self._seen['feedback'] = now_s

    def on_command(self, now_s: float, values: Sequence[float] | Array) -> None:
        """An actuator command (m,) was sent."""
        try:
            self.limits.check(values)
        except ValueError as error:
            self._bad['command'] = f'command refused: {error}'
            self._fault_if_moving(self._bad['command'])
            return
        self._bad.pop('command', None)
        self._seen['command'] = now_s

    def on_actuator_state(
        self, now_s: float, position: Sequence[float] | Array, effort: Sequence[float] | Array
    ) -> None:
        """An actuator state was reported: position (m,) and effort (m,)."""
        self._seen['actuator state'] = now_s
        for kind, values in (('position', position), ('effort', effort)):
            array = np.asarray(values, dtype=float)
            if not np.isfinite(array).all():
                self._bad['actuator state'] = f'actuator {kind} is not finite: {array.tolist()}'
                self._fault_if_moving(self._bad['actuator state'])
                return
        self._bad.pop('actuator state', None)

    def on_problem(self, kind: str, text: str | None) -> None:
        """Set what is wrong with a kind of message, with value and limit; None if nothing is."""
        if text is None:
            self._bad.pop(kind, None)
            return
        self._bad[kind] = text
        self._fault_if_moving(text)

    # -- requests

    def request_start(self, now_s: float, wall_s: float | None = None) -> tuple[bool, str]:
        """Allow motion if everything is in order."""
        wall = now_s if wall_s is None else wall_s
        self._refresh_waiting(now_s, wall)
        if self._state in (SafetyState.RUNNING, SafetyState.HELD):
            return True, f'already {self._state.value}'
        if self._state is SafetyState.FAULT:
            return False, f'fault: {self._reason}; call reset first'
        causes = self._causes(now_s, wall)
        if causes or self._state is SafetyState.WAITING:
            return False, 'not ready: ' + '; '.join(causes or [self._reason])
        self.untouched = False
        self._set(SafetyState.RUNNING, '')
        return True, 'running'

    def request_stop(self, now_s: float) -> tuple[bool, str]:
        """Hold the arm; start may follow without a reset."""
        self.untouched = False
        if self._state is SafetyState.FAULT:
            return True, f'already held by a fault: {self._reason}'
        self._set(SafetyState.STOPPED, 'stopped on request', on_request=True)
        return True, 'stopped: the arm is held'

    def request_estop(self, now_s: float, reason: str = 'emergency stop') -> tuple[bool, str]:
        """Hold the arm until reset."""
        self.untouched = False
        self._set(SafetyState.FAULT, reason, on_request=True)
        return True, f'{reason}: the arm is held until reset'

    def request_reset(self, now_s: float, wall_s: float | None = None) -> tuple[bool, str]:
        """Leave the fault if its causes are gone."""
        if self._state is not SafetyState.FAULT:
            return True, f'nothing to reset: {self._state.value}'
        causes = self._causes(now_s, now_s if wall_s is None else wall_s)
        if causes:
            return False, 'still faulty: ' + '; '.join(causes)
        self._set(SafetyState.READY, 'reset')
        return True, 'ready: call start to move'

    # -- verdict

    def update(self, now_s: float, wall_s: float | None = None) -> SupervisorStatus:
        """Check all ages; call at a rate well above the time-outs, after taking messages in."""
        wall = now_s if wall_s is None else wall_s
        pause, self._wall_s = wall - self._wall_s, wall
        # Not twice in a row: on a computer that is always late it would never judge.
        self._listens = OWN_PAUSE_S < pause < np.inf and not self._listens
        if self._listens:
            self._judge_own_pause(pause, wall)
        else:
            self._judge(now_s, wall)
        return self.status(now_s, wall)

    def status(self, now_s: float, wall_s: float | None = None) -> SupervisorStatus:
        """Return the present state without checking ages again."""
        return SupervisorStatus(
            self._state,
            self._reason,
            self._state is SafetyState.RUNNING,
            self._is_late,
            self._on_request,
        )

    def details(self, now_s: float, wall_s: float | None = None) -> dict[str, str]:
        """Return the number of holds and the ages of what is watched, as text for diagnostics."""
        wall = now_s if wall_s is None else wall_s
        ages = {f'heartbeat {n}': wall - t for n, t in self._alive.items()}
        ages |= {kind: now_s - t for kind, t in self._seen.items()}
        return {
            'holds': str(self.holds),
            **{f'{kind} age ms': f'{1e3 * age:.0f}' for kind, age in sorted(ages.items())},
        }

    def _judge_own_pause(self, pause_s: float, wall_s: float) -> None:
        """Fault or hold: the supervisor paused for longer than drivers wait for permission."""
        if self._state is SafetyState.RUNNING and pause_s > self._permit_timeout_s:
            limit_ms = 1e3 * self._permit_timeout_s
            self._late(
                f'supervisor late by {1e3 * pause_s:.0f} ms (limit {limit_ms:.0f} ms)', wall_s
            )

    def _judge(self, now_s: float, wall_s: float) -> None:
        self._refresh_waiting(now_s, wall_s)
        if self._state is SafetyState.RUNNING:
            late = [*self._late_causes(now_s, wall_s), *self._long_unheard()]
            if wrong := self._wrong():
                self._set(SafetyState.FAULT, '; '.join([*wrong, *late]))
            elif late:
                self._late('; '.join(late), wall_s)
        elif self._state is SafetyState.HELD:
            self._judge_hold(now_s, wall_s)
        elif self._state in (SafetyState.READY, SafetyState.STOPPED):
            # Nothing moves, so there is time to wait for what is missing.
            missing = [*self._silent_nodes(wall_s), *self._not_ready.values()]
            if missing:
                self._set(SafetyState.WAITING, 'waiting: ' + '; '.join(missing))

    def _late(self, reason: str, wall_s: float) -> None:
        if self.strict:
            self._set(SafetyState.FAULT, reason, late=True)
            return
        self.holds += 1
        self._held_since = self._late_at = wall_s
        self._set(SafetyState.HELD, reason, late=True)

    def _judge_hold(self, now_s: float, wall_s: float) -> None:
        late = [*self._late_causes(now_s, wall_s), *self._unheard.values()]
        if wrong := self._wrong():
            self._set(SafetyState.FAULT, '; '.join([*wrong, *late]))
        elif late:
            self._late_at = wall_s
            if wall_s - self._held_since > self._hold_timeout_s:
                lasting = f'{"; ".join(late)}: held for {self._hold_timeout_s:g} s'
                self._set(SafetyState.FAULT, lasting, late=True)
        elif wall_s - self._late_at >= CALM_S:
            self._set(SafetyState.RUNNING, '')

    def _set(
        self, state: SafetyState, reason: str, *, late: bool = False, on_request: bool = False
    ) -> None:
        self._state, self._reason = state, reason
        self._is_late, self._on_request = late, on_request

    def _fault_if_moving(self, reason: str) -> None:
        if self._state in (SafetyState.RUNNING, SafetyState.HELD):
            self._set(SafetyState.FAULT, reason)

    def _refresh_waiting(self, now_s: float, wall_s: float) -> None:
        if self._state is not SafetyState.WAITING:
            return
        missing = [n for n in self.required_nodes if n not in self._alive]
        causes = self._causes(now_s, wall_s) if not missing else []
        if missing:
            self._reason = 'waiting for ' + ', '.join(missing)
        elif causes:
            self._reason = 'waiting: ' + '; '.join(causes)
        else:
            self._set(SafetyState.READY, 'all nodes alive')

    # -- causes

    def _causes(self, now_s: float, wall_s: float) -> list[str]:
        late = self._late_causes(now_s, wall_s)
        return [*self._wrong(), *self._missing(), *late, *self._unheard.values()]

    def _wrong(self) -> list[str]:
        return [*self._bad.values(), *self._not_ready.values()]

    def _missing(self) -> list[str]:
        return [
            f'no {kind} yet'
            for kind in self._required_kinds()
            if kind not in self._seen and kind not in self._bad
        ]

    def _required_kinds(self) -> list[str]:
        return ['command'] + (['feedback'] if self.feedback_required else [])

    def _late_causes(self, now_s: float, wall_s: float) -> list[str]:
        """Return what is late: silent processes, and old messages that were fresh once."""
        late = self._silent_nodes(wall_s)
        for kind in [*self._required_kinds(), 'actuator state']:
            if kind in self._bad or kind not in self._seen:
                continue
            age, limit = now_s - self._seen[kind], self._timeouts[kind]
            if age > limit:
                late.append(staleness(kind, age, limit))
        return late

    def _long_unheard(self) -> list[str]:
        """Return what nodes that move the arm have said for long that they do not hear."""
        return [
            said
            for name, said in self._unheard.items()
            if self._alive[name] - self._unheard_since[name] >= UNHEARD_S
        ]

    def _silent_nodes(self, wall_s: float) -> list[str]:
        limit = self._heartbeat_timeout_s
        return [
            f'node {name} silent for {1e3 * age:.0f} ms (limit {1e3 * limit:.0f} ms)'
            for name in self.required_nodes
            if (age := wall_s - self._alive.get(name, -np.inf)) > limit
        ]
