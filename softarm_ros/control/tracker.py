"""Jacobian-pseudoinverse tracker with the actuators' limits inside the solution."""

from __future__ import annotations

from dataclasses import dataclass

import daqp
import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.config import TrackerConfig
from softarm_ros.control.configuration_limits import ConfigurationLimits
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
        New configuration command.
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
    actuators' position, speed and acceleration and on the configuration (bending of every section,
    say); without active bounds it equals the paper's formula. The feedback of eq. 38,
    v = v_d + K e, may carry an integral part; it stands still while limits are active, the
    correction is saturated or the pose is singular (no wind-up).
    """

    def __init__(
        self,
        model: ArmModel,
        config: TrackerConfig,
        limits: ActuatorLimits,
        configuration_limits: ConfigurationLimits,
    ) -> None:
        self.model = model
        self.config = config
        self.limits = limits
        self.configuration_limits = configuration_limits
        self._dof = len(model.configuration_names)
        self._scale = np.asarray(model.configuration_scale, dtype=float)
        self._regulariser = config.damping * model.rest_length_m**2
        self.reset(model.rest_configuration)

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
        """Return w (dof,) of eq. 36: pull towards the configuration that is easiest to hold."""
        gain = self.config.straightening_gain_1_s
        if gain == 0.0:
            return np.zeros(self._dof)
        wanted = self.model.preferred_configuration(self.configuration)
        return np.asarray(gain * (wanted - self.configuration))

    def _solve(self, J: Array, wanted: Array, A: Array, period_s: float) -> tuple[Array, bool]:
        """Solve for qdot in units of the coordinates' scales, so that eps weighs them alike."""
        scale = self._scale
        J, A = J * scale, A * scale
        eps = self._regulariser
        H = J.T @ J + eps * np.eye(self._dof)
        f = -(J.T @ wanted + eps * self._null_space_velocity() / scale)
        low, high = self.limits.rate_bounds(self.actuation, self._rate, period_s)
        limit_rows, limit_low, limit_high = self.configuration_limits.velocity_bounds(
            self.configuration, period_s
        )
        # Rows in units of each actuator's speed: units as different as m and Pa become alike.
        unit = 1.0 / self.limits.max_speed
        rows = np.ascontiguousarray(np.vstack([A * unit[:, None], limit_rows * scale]))
        upper = np.concatenate([high * unit, limit_high])
        lower = np.concatenate([low * unit, limit_low])
        weight = 1.0 / np.trace(H)
        sense = np.full(len(upper), _SOFT, dtype=np.int32)
        x, _, flag, _ = daqp.solve(H * weight, f * weight, rows, upper, lower, sense)
        if flag not in _OPTIMAL or not np.all(np.isfinite(x)):
            return np.zeros(self._dof), True
        rates = rows @ x
        margin_up = 1e-9 + 1e-6 * np.abs(upper)
        margin_down = 1e-9 + 1e-6 * np.abs(lower)
        bounded = bool(np.any(rates >= upper - margin_up) or np.any(rates <= lower + margin_down))
        return np.asarray(x) * scale, bounded

    def _advance(self, q_rate: Array, period_s: float) -> tuple[Array, Array, float]:
        """Integrate (eq. 37); shorten the step until the command respects the limits."""
        limits = self.limits
        reach = limits.max_speed * period_s * (1.0 + 1e-6) + 1e-3 * limits.rounding
        scale = 1.0
        for _ in range(_MAX_HALVINGS):
            configuration = self.configuration_limits.clipped(
                self.configuration + scale * period_s * q_rate
            )
            actuation = self.model.actuation_of(configuration)
            if not self._inside(actuation):
                # Tangential to a limit: curvature alone leads outside. Slide along it.
                configuration, actuation = self._pulled_inside(configuration, actuation)
            if self._inside(actuation) and np.all(np.abs(actuation - self.actuation) <= reach):
                return configuration, actuation, scale
            scale *= 0.5
        return self.configuration.copy(), self.actuation.copy(), 0.0

    def _inside(self, actuation: Array) -> bool:
        low, high, slack = self.limits.position_min, self.limits.position_max, self.limits.rounding
        return bool(np.all(actuation >= low - slack) and np.all(actuation <= high + slack))

    def _pulled_inside(self, configuration: Array, actuation: Array) -> tuple[Array, Array]:
        """Return the nearest configuration whose actuation is within range, to first order."""
        excess = actuation - np.clip(actuation, self.limits.position_min, self.limits.position_max)
        A = self.model.actuation_jacobian(configuration) * self._scale
        change = np.linalg.lstsq(A, excess, rcond=None)[0] * self._scale
        pulled = self.configuration_limits.clipped(configuration - change)
        return pulled, self.model.actuation_of(pulled)
