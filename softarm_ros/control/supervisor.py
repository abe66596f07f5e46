"""Decides whether the arm may move: a state machine without I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.config import SupervisorConfig
from softarm_ros.control.limits import ActuatorLimits

Array = NDArray[np.float64]


class SafetyState(str, Enum):
    """What the supervisor allows; only RUNNING lets the arm move."""

    WAITING = 'waiting'
    READY = 'ready'
    RUNNING = 'running'
    STOPPED = 'stopped'
    FAULT = 'fault'


@dataclass(frozen=True)
class SupervisorStatus:
    """State, the reason for it, and the ages of what is watched (as text, for diagnostics)."""

    state: SafetyState
    reason: str
    motion_allowed: bool
    details: dict[str, str] = field(default_factory=dict)


class Supervisor:
    """
    Watches heartbeats, feedback and commands; a fault is latched until reset.

    All times are seconds of one monotonic clock, passed in by the caller.
    """

    def __init__(
        self,
        config: SupervisorConfig,
        limits: ActuatorLimits,
        required_nodes: Sequence[str],
        *,
        feedback_required: bool = True,
        time_scale: float = 1.0,
    ) -> None:
        if not 0.0 < time_scale < np.inf:
            raise ValueError(f'time_scale = {time_scale}: expected a positive number')
        self.limits = limits
        self.required_nodes = tuple(required_nodes)
        self.feedback_required = feedback_required
        self.max_pose_jump_m = config.max_pose_jump_m
        self._timeouts = {
            'feedback': config.feedback_timeout_s * time_scale,
            'command': config.command_timeout_s * time_scale,
            'heartbeat': config.heartbeat_timeout_s * time_scale,
        }
        self._start_timeout_s = config.start_timeout_s
        self._state = SafetyState.WAITING
        self._reason = 'waiting for ' + ', '.join(self.required_nodes)
        self._first_update: float | None = None
        self._running_since = -np.inf
        self._seen: dict[str, float] = {}
        self._last_position: Array | None = None
        # Why the newest message of a kind is bad; cleared by the next good one.
        self._bad: dict[str, str] = {}
        self._not_ready: dict[str, str] = {}

    def on_heartbeat(self, name: str, now_s: float, not_ready: str = '') -> None:
        """A node is alive; a driver also says why its device is not ready, if it is not."""
        self._seen[f'heartbeat {name}'] = now_s
        if name not in self.required_nodes:
            return
        if not_ready:
            self._not_ready[name] = f'{name}: {not_ready}'
            self._fault_if_running(self._not_ready[name])
        else:
            self._not_ready.pop(name, None)

    def on_feedback(self, now_s: float, position: Sequence[float] | Array) -> None:
        """A measured tip position (3,) [m] has arrived."""
        tip = np.asarray(position, dtype=float)
        if tip.shape != (3,) or not np.all(np.isfinite(tip)):
            self._bad['feedback'] = f'feedback is not finite: tip position {tip.tolist()}'
            self._fault_if_running(self._bad['feedback'])
            return
        if self._last_position is not None:
            fresh = now_s - self._seen.get('feedback', -np.inf) <= self._timeouts['feedback']
            jump = float(np.linalg.norm(tip - self._last_position))
            if fresh and jump > self.max_pose_jump_m:
                self._fault_if_running(
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
            self._fault_if_running(self._bad['command'])
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
            if not np.all(np.isfinite(array)):
                self._bad['actuator state'] = f'actuator {kind} is not finite: {array.tolist()}'
                self._fault_if_running(self._bad['actuator state'])
                return
        self._bad.pop('actuator state', None)

    def on_problem(self, kind: str, text: str | None) -> None:
        """Something of a kind is wrong (text: what, with value and limit), or None: it is not."""
        if text is None:
            self._bad.pop(kind, None)
            return
        self._bad[kind] = text
        self._fault_if_running(text)

    def request_start(self, now_s: float) -> tuple[bool, str]:
        """Allow motion if everything is in order."""
        self._refresh_waiting(now_s)
        if self._state is SafetyState.RUNNING:
            return True, 'already running'
        if self._state is SafetyState.FAULT:
            return False, f'fault: {self._reason}; call reset first'
        causes = self._causes(now_s)
        if causes or self._state is SafetyState.WAITING:
            return False, 'not ready: ' + '; '.join(causes or [self._reason])
        self._running_since = now_s
        self._set(SafetyState.RUNNING, '')
        return True, 'running'

    def request_stop(self, now_s: float) -> tuple[bool, str]:
        """Hold the arm; start may follow without a reset."""
        if self._state is SafetyState.FAULT:
            return True, f'already held by a fault: {self._reason}'
        self._set(SafetyState.STOPPED, 'stopped on request')
        return True, 'stopped: the arm is held'

    def request_estop(self, now_s: float, reason: str = 'emergency stop') -> tuple[bool, str]:
        """Hold the arm until reset."""
        self._set(SafetyState.FAULT, reason)
        return True, f'{reason}: the arm is held until reset'

    def request_reset(self, now_s: float) -> tuple[bool, str]:
        """Leave the fault if its causes are gone."""
        if self._state is not SafetyState.FAULT:
            return True, f'nothing to reset: {self._state.value}'
        causes = self._causes(now_s)
        if causes:
            return False, 'still faulty: ' + '; '.join(causes)
        self._set(SafetyState.READY, 'reset')
        return True, 'ready: call start to move'

    def update(self, now_s: float) -> SupervisorStatus:
        """Look at all ages; call at a rate well above the time-outs."""
        if self._first_update is None:
            self._first_update = now_s
        self._refresh_waiting(now_s)
        if self._state is SafetyState.RUNNING:
            causes = self._causes(now_s)
            if causes:
                self._set(SafetyState.FAULT, '; '.join(causes))
        elif self._state in (SafetyState.READY, SafetyState.STOPPED):
            missing = self._silent_nodes(now_s)
            if missing:
                self._set(SafetyState.FAULT, '; '.join(missing))
            elif self._not_ready:
                # Drivers latch their problems; nothing moves, so nothing else has to.
                self._first_update = now_s
                self._set(SafetyState.WAITING, 'waiting: ' + '; '.join(self._not_ready.values()))
        return SupervisorStatus(
            self._state,
            self._reason,
            self._state is SafetyState.RUNNING,
            {f'{k} age ms': f'{1e3 * (now_s - t):.0f}' for k, t in sorted(self._seen.items())},
        )

    def _set(self, state: SafetyState, reason: str) -> None:
        self._state, self._reason = state, reason

    def _fault_if_running(self, reason: str) -> None:
        if self._state is SafetyState.RUNNING:
            self._set(SafetyState.FAULT, reason)

    def _refresh_waiting(self, now_s: float) -> None:
        if self._state is not SafetyState.WAITING:
            return
        missing = [n for n in self.required_nodes if f'heartbeat {n}' not in self._seen]
        causes = self._causes(now_s) if not missing else []
        if missing:
            self._reason = 'waiting for ' + ', '.join(missing)
        elif causes:
            self._reason = 'waiting: ' + '; '.join(causes)
        else:
            self._set(SafetyState.READY, 'all nodes alive')
            return
        started = self._first_update if self._first_update is not None else now_s
        if now_s - started > self._start_timeout_s:
            self._set(
                SafetyState.FAULT, f'not ready after {self._start_timeout_s:.0f} s: {self._reason}'
            )

    def _silent_nodes(self, now_s: float) -> list[str]:
        limit = self._timeouts['heartbeat']
        return [
            f'node {name} silent for {1e3 * age:.0f} ms (limit {1e3 * limit:.0f} ms)'
            for name in self.required_nodes
            if (age := now_s - self._seen.get(f'heartbeat {name}', -np.inf)) > limit
        ]

    def _causes(self, now_s: float) -> list[str]:
        causes = [*self._bad.values(), *self._not_ready.values(), *self._silent_nodes(now_s)]
        watched = ['command'] + (['feedback'] if self.feedback_required else [])
        for kind in watched:
            if kind in self._bad:
                continue
            if kind not in self._seen:
                causes.append(f'no {kind} yet')
                continue
            age, limit = now_s - self._seen[kind], self._timeouts[kind]
            if age > limit:
                causes.append(f'{kind} stale: {1e3 * age:.0f} ms old (limit {1e3 * limit:.0f} ms)')
        return causes
