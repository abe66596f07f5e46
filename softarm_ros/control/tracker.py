"""Jacobian-pseudoinverse tracker with the actuators' limits inside the solution."""

from __future__ import annotations

from dataclasses import dataclass

import daqp
import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.config import TrackerConfig
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.models.arm_model import ArmModel

Array = NDArray[np.float64]

_OPTIMAL = (1, 2)  # daqp: optimal, and optimal with some soft constraint in use
_SOFT = 8
_MAX_HALVINGS = 12
_FOLLOWS = 0.2  # share of the wanted velocity that may be missing before the integral stands still


@dataclass(frozen=True)
class TrackerStep:
    """
    Result of one tracker period.

    Attributes
    ----------
    configuration : (dof,)
        New configuration command [rad].
    actuation : (m,)
        Actuator command that belongs to it.
    velocity_shortfall : float
        |v_wanted - J qdot| [m/s]: what limits or a singular pose took away.
    limited : bool
        An actuator or bending limit was active.

    """

    configuration: Array
    actuation: Array
    velocity_shortfall: float
    limited: bool


class Tracker:
    """
    Tracks a tip velocity and position (Qi et al. 2024, eq. 34-38).

    The damped inverse (eq. 35) with null-space term (eq. 36) is the minimiser of
    |J qdot - v|^2 + eps |qdot - w|^2. Here that quadratic programme is solved under bounds on the
    actuators' position, speed and acceleration and on the bending of every section; without active
    bounds it equals the paper's formula. The feedback of eq. 38, v = v_d + K e, may carry an
    integral part; it stands still while limits are active, the correction is saturated or the pose
    is singular (no wind-up).
    """

    def __init__(
        self,
        model: ArmModel,
        config: TrackerConfig,
        limits: ActuatorLimits,
        max_bending_rad: Array,
    ) -> None:
        self.model = model
        self.config = config
        self.limits = limits
        self.max_bending_rad = np.asarray(max_bending_rad, dtype=float)
        self._dof = len(model.configuration_names)
        self._regulariser = config.damping * model.rest_length_m**2
        self.reset(np.zeros(self._dof))

    def reset(self, configuration: Array) -> None:
        """Start at rest from a configuration (dof,), without integral memory."""
        self.configuration = np.array(configuration, dtype=float)
        self.actuation = self.model.actuation_of(self.configuration)
        self._rate = np.zeros(len(self.limits.names))
        self._integral = np.zeros(3)

    def halt(self) -> None:
        """Forget velocity, keep position and integral: the arm has been stopped elsewhere."""
        self._rate = np.zeros(len(self.limits.names))

    def tip(self) -> Array:
        """Return the tip position (3,) [m] that the model gives for the present command."""
        return self.model.tip_and_jacobian(self.configuration)[0]

    def step(
        self, velocity: Array, error: Array, period_s: float, measured: Array | None = None
    ) -> TrackerStep:
        """
        Advance the command by one period.

        Parameters
        ----------
        velocity : (3,)
            Feed-forward v_d [m/s], base frame.
        error : (3,)
            e = p_d - p [m]; p measured (closed loop) or from the model (open loop).
        period_s : float
            Time since the last step [s].
        measured : (dof,), optional
            Measured configuration, where the Jacobian is taken; the commanded one without it.

        """
        at = self.configuration if measured is None else measured
        _, J = self.model.tip_and_jacobian(at)
        correction, saturated = self._correction(error)
        wanted = velocity + correction
        A = self.model.actuation_jacobian(self.configuration)
        q_rate, bounded = self._solve(J, wanted, A, period_s)
        configuration, actuation, scale = self._advance(q_rate, period_s)
        shortfall = float(np.linalg.norm(wanted - J @ q_rate * scale))
        limited = bounded or scale < 1.0
        follows = shortfall <= _FOLLOWS * float(np.linalg.norm(wanted))
        if follows and not limited and not saturated:
            self._integral += error * period_s
        self._rate = (actuation - self.actuation) / period_s
        self.configuration, self.actuation = configuration, actuation
        return TrackerStep(configuration, actuation, shortfall, limited)

    def _correction(self, error: Array) -> tuple[Array, bool]:
        correction = (
            self.config.feedback_gain_1_s * error + self.config.integral_gain_1_s2 * self._integral
        )
        speed = float(np.linalg.norm(correction))
        bound = self.config.max_correction_speed_m_s
        return (correction, False) if speed <= bound else (correction * (bound / speed), True)

    def _null_space_velocity(self) -> Array:
        """Return w (dof,) of eq. 36: pull every section towards the mean bending vector."""
        gain = self.config.straightening_gain_1_s
        if gain == 0.0:
            return np.zeros(self._dof)
        bends = self.configuration.reshape(-1, 2)
        return (gain * (bends.mean(axis=0) - bends)).ravel()

    def _solve(self, J: Array, wanted: Array, A: Array, period_s: float) -> tuple[Array, bool]:
        eps = self._regulariser
        H = J.T @ J + eps * np.eye(self._dof)
        f = -(J.T @ wanted + eps * self._null_space_velocity())
        low, high = self.limits.rate_bounds(self.actuation, self._rate, period_s)
        bending_rows, bending_high = self._bending_bounds(period_s)
        rows = np.ascontiguousarray(np.vstack([A, bending_rows]))
        upper = np.concatenate([high, bending_high])
        lower = np.concatenate([low, np.full(len(bending_high), -1e30)])
        # Rows are scaled to velocities of order one; the objective to curvature of order one.
        scale = 1.0 / np.trace(H)
        sense = np.full(len(upper), _SOFT, dtype=np.int32)
        x, _, flag, _ = daqp.solve(H * scale, f * scale, rows, upper, lower, sense)
        if flag not in _OPTIMAL or not np.all(np.isfinite(x)):
            return np.zeros(self._dof), True
        rates = rows @ x
        margin = 1e-9 + 1e-6 * np.abs(upper)
        bounded = bool(np.any(rates >= upper - margin)) or bool(
            np.any(rates[: len(low)] <= low + 1e-9 + 1e-6 * np.abs(low))
        )
        return np.asarray(x), bounded

    def _bending_bounds(self, period_s: float) -> tuple[Array, Array]:
        bends = self.configuration.reshape(-1, 2)
        rows = np.zeros((len(bends), self._dof))
        theta = np.linalg.norm(bends, axis=1)
        for k, bend in enumerate(bends):
            if theta[k] > 1e-6:
                rows[k, 2 * k : 2 * k + 2] = bend / theta[k]
        return rows, np.maximum(self.max_bending_rad - theta, 0.0) / period_s

    def _advance(self, q_rate: Array, period_s: float) -> tuple[Array, Array, float]:
        """Integrate (eq. 37); shorten the step until the command respects the limits."""
        reach = self.limits.max_speed * period_s * (1.0 + 1e-6) + 1e-12
        scale = 1.0
        for _ in range(_MAX_HALVINGS):
            configuration = self._within_bending(self.configuration + scale * period_s * q_rate)
            actuation = self.model.actuation_of(configuration)
            inside = np.all(actuation >= self.limits.position_min - 1e-9) and np.all(
                actuation <= self.limits.position_max + 1e-9
            )
            if inside and np.all(np.abs(actuation - self.actuation) <= reach):
                return configuration, actuation, scale
            scale *= 0.5
        return self.configuration.copy(), self.actuation.copy(), 0.0

    def _within_bending(self, configuration: Array) -> Array:
        """Return the configuration with every section within its limit, along which it slides."""
        bends = configuration.reshape(-1, 2)
        theta = np.linalg.norm(bends, axis=1)
        beyond = theta > self.max_bending_rad
        if not np.any(beyond):
            return configuration
        bends = bends.copy()
        bends[beyond] *= (self.max_bending_rad[beyond] / theta[beyond])[:, None]
        return bends.ravel()
