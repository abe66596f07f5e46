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

# After a pause of its own, the supervisor first takes in the messages that arrived, then judges.
OWN_PAUSE_S = 0.05
# A hold for lateness ends when nothing has been late for this long.
CALM_S = 0.2
# A node's report that messages do not reach it stops a moving arm only if it lasts this long: a
# short one may refer to the time before the start, or to a pause of the node itself.
UNHEARD_S = 0.2
# Kinds of messages whose values are checked here.
_VALUES = frozenset({'feedback', 'command', 'actuator state'})


class SafetyState(str, Enum):
    """State of the supervisor; the arm may move only in RUNNING."""

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

    `late`: lateness is the only cause of the hold or fault. `on_request`: there is no cause but a
    request.
    """

    state: SafetyState
    reason: str
    motion_allowed: bool
    late: bool = False
    on_request: bool = False


def named(node: str, text: str) -> str:
    """Return a node's text with the node's name in front, unless it is there already."""
    return text if text.startswith(f'{node}: ') else f'{node}: {text}'


class Supervisor:
    """
    Watches processes, feedback, commands and actuator states.

    The caller passes in two clocks. `now_s` is the clock of the control loop, monotonic or
    simulated; messages of the loop must be fresh on it. `wall_s` is always monotonic; heartbeats
    must be fresh on it. If the loop runs in real time, both are the same.

    A late message is a fault, latched until reset. A simulation (`strict` false) is only HELD and
    resumes by itself, unless the lateness lasts; then it becomes a fault. Wrong input (a value
    that is not finite, a device that is not ready) is a fault at once. The supervisor counts its
    own pause as late if the drivers held the arm meanwhile, i.e. after `permit_timeout_s` (None:
    the value of the config).

    An estimator may drive the arm by prediction for `bridge_s` without a pose, and has stopped it
    by then: feedback is late only after `bridge_s` plus `feedback_timeout_s`.

    Attributes
    ----------
    untouched : bool
        Nobody has started or stopped the arm yet. Only then may it start without a request once it
        is ready: whoever stopped it may stand next to it.

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
        self._listens = False  # whether this update only takes in messages
        self._held_since = self._late_at = -np.inf
        self._last_position: Array | None = None
        # Why the newest message of each kind is bad; the next good one removes the entry.
        self._bad: dict[str, str] = {}
        self._not_ready: dict[str, str] = {}
        # Messages that do not reach the nodes that move the arm. They delay a start and the end of
        # a hold, and stop a moving arm if they stay missing.
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
        Note that a node is alive, why its device is not ready, and which messages it misses.

        A restarted node connects to the supervisor and to the driver separately, so messages that
        arrive here may not reach the driver yet. `touched`: somebody has started or stopped the
        arm before, even if this supervisor has restarted since.
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
        """Take a measured tip position (3,) [m]."""
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
        """Take an actuator command (m,)."""
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
        """Take the reported actuator state: position (m,) and effort (m,)."""
        self._seen['actuator state'] = now_s
        for kind, values in (('position', position), ('effort', effort)):
            array = np.asarray(values, dtype=float)
            if not np.isfinite(array).all():
                self._bad['actuator state'] = f'actuator {kind} is not finite: {array.tolist()}'
                self._fault_if_moving(self._bad['actuator state'])
                return
        self._bad.pop('actuator state', None)

    def on_problem(self, kind: str, text: str | None) -> None:
        """Set the problem of a kind of message, with value and limit; None clears it."""
        if text is None:
            self._bad.pop(kind, None)
            return
        self._bad[kind] = text
        self._fault_if_moving(text)

    @property
    def has_bad_values(self) -> bool:
        """Whether the newest pose, command or actuator state is not finite or out of limits."""
        return bool(_VALUES & self._bad.keys())

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
        """Hold the arm; it may start again without a reset."""
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
        """Check all ages; call it much more often than the time-outs, after taking in messages."""
        wall = now_s if wall_s is None else wall_s
        pause, self._wall_s = wall - self._wall_s, wall
        # Not twice in a row: otherwise a computer that is always late would never be judged.
        self._listens = OWN_PAUSE_S < pause < np.inf and not self._listens
        if self._listens:
            self._judge_own_pause(pause, wall)
        else:
            self._judge(now_s, wall)
        return self.status(now_s, wall)

    def status(self, now_s: float, wall_s: float | None = None) -> SupervisorStatus:
        """Return the present state without checking ages."""
        return SupervisorStatus(
            self._state,
            self._reason,
            self._state is SafetyState.RUNNING,
            self._is_late,
            self._on_request,
        )

    def details(self, now_s: float, wall_s: float | None = None) -> dict[str, str]:
        """Return the number of holds and the age of each kind of message, for diagnostics."""
        wall = now_s if wall_s is None else wall_s
        ages = {f'heartbeat {n}': wall - t for n, t in self._alive.items()}
        ages |= {kind: now_s - t for kind, t in self._seen.items()}
        return {
            'holds': str(self.holds),
            **{f'{kind} age ms': f'{1e3 * age:.0f}' for kind, age in sorted(ages.items())},
        }

    def _judge_own_pause(self, pause_s: float, wall_s: float) -> None:
        """Fault or hold if the supervisor paused longer than drivers wait for permission."""
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
            # Nothing moves, so it can wait for missing nodes.
            missing = [*self.silent_nodes(wall_s).values(), *self._not_ready.values()]
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
        """Return a text for each silent process and each message that has become too old."""
        late = list(self.silent_nodes(wall_s).values())
        for kind in [*self._required_kinds(), 'actuator state']:
            if kind in self._bad or kind not in self._seen:
                continue
            age, limit = now_s - self._seen[kind], self._timeouts[kind]
            if age > limit:
                late.append(staleness(kind, age, limit))
        return late

    def _long_unheard(self) -> list[str]:
        """Return the texts of nodes that have long reported missing messages."""
        return [
            said
            for name, said in self._unheard.items()
            if self._alive[name] - self._unheard_since[name] >= UNHEARD_S
        ]

    def silent_nodes(self, wall_s: float) -> dict[str, str]:
        """Return a text for each required node that sends no heartbeat."""
        limit = self._heartbeat_timeout_s
        return {
            name: f'node {name} silent for {1e3 * age:.0f} ms (limit {1e3 * limit:.0f} ms)'
            if np.isfinite(age)
            else f'nothing received from node {name} yet'
            for name in self.required_nodes
            if (age := wall_s - self._alive.get(name, -np.inf)) > limit
        }
