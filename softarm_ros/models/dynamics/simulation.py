"""Time integration of an arm's dynamics, with steps adapted to the required accuracy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.dynamics.arm import ArmDynamics, checked
from softarm_ros.models.dynamics.integrator_kernels import REACHED, TOO_MANY, advance
from softarm_ros.models.dynamics.layout import Loads, allocate_scratch


@dataclass(frozen=True)
class DynamicState:
    """
    State of an arm at a time.

    Attributes
    ----------
    time_s : float
        Time [s].
    memory : (5, n, 4)
        Strains, rates, accelerations, filtered accelerations and jerk of the integrator.
    step_s : float
        Step the integrator would take next.
    contraction : float
        Newton contraction per squared step [1/s^2], negative if unknown.

    """

    time_s: float
    memory: Array
    step_s: float
    contraction: float = -1.0

    @property
    def strains(self) -> Array:
        """Strains (n, 4)."""
        return self.memory[0]

    @property
    def rates(self) -> Array:
        """Strain rates (n, 4) [1/s, 1/(m s)]."""
        return self.memory[1]

    @property
    def accelerations(self) -> Array:
        """Strain accelerations (n, 4)."""
        return self.memory[2]


@dataclass(frozen=True)
class Advance:
    """Result of an integration; `state` is the last good state if not converged."""

    state: DynamicState
    converged: bool
    steps: int
    rejected: int
    iterations: int
    message: str = ''


@dataclass(frozen=True)
class Trajectory:
    """States of a motion at given times: (t,), (t, n, 4) each, tips (t, 4, 4)."""

    time_s: Array
    strains: Array
    rates: Array
    tips: Array
    steps: int
    converged: bool
    message: str = ''


class ArmIntegrator:
    """
    Implicit integrator of one arm: generalised-alpha, adaptive steps.

    Parameters
    ----------
    tolerance_m : float
        Largest displacement error of any node in one step. The error of a whole motion is larger,
        about 50 times for a fall of a sagging cantilever (docs/models_dynamics.md).
    spectral_radius : float
        Share of a fast vibration that remains after a step: 1 conserves energy, 0 removes
        vibrations that the step cannot resolve.
    max_step_s : float
        Longest step allowed.

    Raises
    ------
    ModelError
        If a parameter is out of range.

    """

    def __init__(
        self,
        arm: ArmDynamics,
        *,
        tolerance_m: float = 1e-5,
        spectral_radius: float = 0.8,
        max_step_s: float = 0.05,
        max_steps: int = 1_000_000,
    ) -> None:
        """Allocate scratch space."""
        if not 0.0 <= spectral_radius <= 1.0:
            raise ModelError(f'spectral_radius {spectral_radius} must be in 0..1')
        for name, value in (('tolerance_m', tolerance_m), ('max_step_s', max_step_s)):
            if not 0.0 < value < np.inf:
                raise ModelError(f'{name} {value} must be above 0')
        self.arm = arm
        self.tolerance_m = tolerance_m
        self.spectral_radius = spectral_radius
        self.max_step_s = max_step_s
        self.max_steps = max_steps
        n = arm.segments
        self._scratch = (allocate_scratch(n), allocate_scratch(n))
        self._work, self._twists = np.zeros((5, n, 4)), np.zeros((n, 6))

    def start(
        self,
        loads: Loads,
        strains: ArrayLike | None = None,
        rates: ArrayLike | None = None,
        time_s: float = 0.0,
    ) -> DynamicState:
        """Return a start state; by default, the arm is at rest in its unloaded shape."""
        shape = (self.arm.segments, 4)
        memory = np.zeros((5, *shape))
        memory[0] = self.arm.straight if strains is None else checked('strains', strains, shape)
        memory[1] = checked('rates', rates, shape)
        memory[2] = self.arm.forward_dynamics(memory[0], memory[1], loads)
        memory[3] = memory[2]
        return DynamicState(time_s, memory, min(1e-3, self.max_step_s))

    def advance(self, state: DynamicState, loads: Loads, duration_s: float) -> Advance:
        """
        Return the state `duration_s` later, under constant loads.

        If a step cannot be solved, the result says so and holds the last good state.
        """
        if not 0.0 < duration_s < np.inf:
            raise ModelError(f'duration_s {duration_s} must be above 0')
        memory = state.memory.copy()
        status, reached, step, contraction, steps, rejected, iterations = advance(
            self.arm.body,
            loads,
            memory,
            duration_s,
            state.step_s,
            self.max_step_s,
            self.tolerance_m,
            self.spectral_radius,
            state.contraction,
            *self._scratch,
            self._work,
            self._twists,
            self.max_steps,
        )
        good = status == REACHED
        new = DynamicState(
            state.time_s + (duration_s if good else reached), memory, step, contraction
        )
        message = ''
        if not good:
            why = 'too many steps' if status == TOO_MANY else 'the step became too small'
            message = f'stopped at {new.time_s:.6g} s: {why}'
        return Advance(new, good, steps, rejected, iterations, message)

    def simulate(
        self,
        state: DynamicState,
        loads: Loads | Callable[[float], Loads],
        times_s: Sequence[float] | Array,
    ) -> Trajectory:
        """
        Return the motion at increasing times, the first of which is the time of `state`.

        Loads given as a function of time are evaluated at the middle of each interval and held
        constant over it.
        """
        times = np.asarray(times_s, dtype=np.float64)
        if times.ndim != 1 or times.size < 1 or (np.diff(times) <= 0.0).any():
            raise ModelError('times_s must increase')
        strains, rates = [state.strains], [state.rates]
        steps, converged, message = 0, True, ''
        for begin, end in pairwise(times):
            here = loads(0.5 * (begin + end)) if callable(loads) else loads
            result = self.advance(state, here, float(end - begin))
            steps += result.steps
            if not result.converged:
                converged, message = False, result.message
                break
            state = result.state
            strains.append(state.strains)
            rates.append(state.rates)
        tips = np.array([self.arm.node_poses(q)[-1] for q in strains])
        return Trajectory(
            times[: len(strains)],
            np.array(strains),
            np.array(rates),
            tips,
            steps,
            converged,
            message,
        )
