"""Jacobian-pseudoinverse tracker with the actuators' limits inside the solution."""

from __future__ import annotations

from dataclasses import dataclass

import daqp
import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.config import TrackerConfig
from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.limits import ActuatorLimits
from softarm_ros.models.arm_model import ArmModel, Posture

Array = NDArray[np.float64]

_OPTIMAL = (1, 2)  # daqp: optimal, and optimal with some soft constraint in use
_SOFT = 8
_MAX_HALVINGS = 12
_HELD_BACK = 0.02  # share of the wanted velocity that a limit must take away to be worth a word
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
        An actuator or bending limit took some of the velocity away.

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
        posture = self.model.posture_of(configuration)
        self._rate = np.zeros(len(posture.actuation))  # a configuration out of reach is refused
        self._posture = posture
        self._seen: Posture | None = None  # where the arm was measured last
        self._integral = np.zeros(3)

    def halt(self) -> None:
        """Forget velocity, keep position and integral: the arm has been stopped elsewhere."""
        self._rate = np.zeros(len(self.limits.names))

    def tip(self) -> Array:
        """Return the tip position (3,) [m] that the model gives for the present command."""
        return self._posture.tip.copy()

    @property
    def configuration(self) -> Array:
        """The present configuration command (dof,)."""
        return self._posture.configuration

    @property
    def actuation(self) -> Array:
        """Actuator command (m,) that belongs to the present configuration."""
        return self._posture.actuation

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
        J = self._jacobian(measured)
        correction, saturated = self._correction(error)
        wanted = velocity + correction
        q_rate, bounded = self._solve(J, wanted, self._posture.actuation_jacobian, period_s)
        posture, scale = self._advance(q_rate, period_s)
        shortfall = float(np.linalg.norm(wanted - J @ q_rate * scale))
        follows = shortfall <= _FOLLOWS * float(np.linalg.norm(wanted))
        # Where actuators outnumber the tip's freedoms, others take over from one at its bound.
        limited = (bounded or scale < 1.0) and shortfall > _HELD_BACK * float(
            np.linalg.norm(wanted)
        )
        if follows and not limited and not saturated:
            self._integral += error * period_s
        self._rate = (posture.actuation - self.actuation) / period_s
        self._posture = posture
        return TrackerStep(self.configuration, self.actuation, shortfall, limited)

    def _jacobian(self, measured: Array | None) -> Array:
        """Return the tip's Jacobian (3, dof) where the arm is, as far as that is known."""
        if measured is None:
            return self._posture.tip_jacobian
        self._seen = self.model.posture_of(measured, self._seen or self._posture)
        return self._seen.tip_jacobian

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
        return np.asarray(gain * (self._posture.preferred - self.configuration))

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
        # A row of zeros, such as that of a chamber kept at rest, holds nothing back.
        held = (rates >= upper - margin_up) | (rates <= lower + margin_down)
        bounded = bool(np.any(held & np.any(rows != 0.0, axis=1)))
        return np.asarray(x) * scale, bounded

    def _advance(self, q_rate: Array, period_s: float) -> tuple[Posture, float]:
        """Integrate (eq. 37); shorten the step until the command respects the limits."""
        limits = self.limits
        reach = limits.max_speed * period_s * (1.0 + 1e-6) + 1e-3 * limits.rounding
        scale = 1.0
        for _ in range(_MAX_HALVINGS):
            configuration = self.configuration_limits.clipped(
                self.configuration + scale * period_s * q_rate
            )
            posture = self.model.posture_of(configuration, self._posture)
            if not self._inside(posture.actuation):
                # Tangential to a limit: curvature alone leads outside. Slide along it.
                posture = self._pulled_inside(posture)
            change = np.abs(posture.actuation - self.actuation)
            if self._inside(posture.actuation) and np.all(change <= reach):
                return posture, scale
            scale *= 0.5
        return self._posture, 0.0

    def _inside(self, actuation: Array) -> bool:
        low, high, slack = self.limits.position_min, self.limits.position_max, self.limits.rounding
        return bool(np.all(actuation >= low - slack) and np.all(actuation <= high + slack))

    def _pulled_inside(self, posture: Posture) -> Posture:
        """Return the nearest posture whose actuation is within range, to first order."""
        actuation = posture.actuation
        excess = actuation - np.clip(actuation, self.limits.position_min, self.limits.position_max)
        A = posture.actuation_jacobian * self._scale
        change = np.linalg.lstsq(A, excess, rcond=None)[0] * self._scale
        pulled = self.configuration_limits.clipped(posture.configuration - change)
        return self.model.posture_of(pulled, posture)
