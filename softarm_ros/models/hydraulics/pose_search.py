"""Inverse of the hydraulic statics: pressures within their range for a pose of the tip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import daqp
import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.rotations import log_so3
from softarm_ros.models.arm_model import Array, InverseSolution, ModelError, Vector3
from softarm_ros.models.dynamics.layout import Loads
from softarm_ros.models.hydraulics.held_shape import HeldShape

if TYPE_CHECKING:
    from softarm_ros.models.hydraulics.statics import HydraulicStatics

CONVERGED_M = 1e-7
_ITERATIONS = 80
_SETTLING = 40  # iterations that also pull towards the preferred configuration
_REGULARISER = 1e-4  # of the squared arm length, while pulling
_FINE_REGULARISER = 1e-7
_POSE_REGULARISER = 1e-10
_SLOW = 0.7  # of the miss left by a step with which bends alone do not get on
_MAX_BEND_STEP_RAD = 0.4
_SETTLED_RAD = 0.01  # bends that change less than this by a step have settled
_OPTIMAL = (1, 2)
_SOFT = 8


@dataclass(frozen=True)
class _Found:
    configuration: Array
    held: HeldShape
    residual: float
    converged: bool
    message: str


def _better(one: _Found, other: _Found) -> bool:
    """Return whether a solution is converged and the other is not, or bends less, or is nearer."""
    if one.converged != other.converged:
        return one.converged
    if one.converged:
        return _bending(one) < _bending(other)
    return one.residual < other.residual


def _bends(dof: int) -> NDArray[np.int64]:
    """Return the indices of the bending components."""
    return np.flatnonzero(np.arange(dof) % 3 < 2)


def _bending(found: _Found) -> float:
    return float(np.sum(found.configuration.reshape(-1, 3)[:, :2] ** 2))


class PoseSearch:
    """
    Gauss-Newton in the configuration, each step a quadratic programme.

    The step minimises |J dq - e|^2 + eps |dq / scale - w|^2 with the pressures and the bends
    within their ranges (linearised). w pulls to the preferred configuration at first, then it
    is zero and eps small, so that the solution is exact.
    """

    def __init__(self, model: HydraulicStatics) -> None:
        self._model = model
        self._scale = model.configuration_scale
        self._max_bend = np.radians([s.max_bending_angle_deg for s in model.sections])

    def find(
        self,
        position: Vector3,
        orientation: Array | None,
        guess: Array | None,
        tip_force: Vector3,
    ) -> InverseSolution:
        """Return the best solution found, see `HydraulicStatics.inverse`."""
        model = self._model
        target = np.asarray(position, dtype=float)
        if target.shape != (3,) or not np.isfinite(target).all():
            raise ModelError(
                f'position {np.asarray(position).tolist()}: expected 3 finite numbers'
            )
        turn = None
        if orientation is not None:
            turn = np.asarray(orientation, dtype=float)
            if turn.shape != (3, 3) or not np.allclose(turn @ turn.T, np.eye(3), atol=1e-6):
                raise ModelError('orientation: expected a rotation matrix (3, 3)')
        loads = model.loaded(tip_force)
        best: _Found | None = None
        for start in self._starts(target, guess):
            found = self._descend(start, target, turn, loads)
            if found is None:
                continue
            if best is None or _better(found, best):
                best = found
            if best.converged and guess is not None:
                break  # stays on the branch of the guess
        if best is None:
            raise ModelError(f'position {target.tolist()} m: no configuration in balance found')
        shape = model._shape(best.held.strains)
        actuation = model.pressures_of(best.held)
        if best.converged:  # within the range but for rounding
            actuation = np.clip(actuation, model.pressure_min, model.pressure_max)
        return InverseSolution(actuation, shape, best.residual, best.converged, best.message)

    def _starts(self, target: Array, guess: Array | None) -> list[Array]:
        """Return configurations to start from: that of the guess, then sections bent alike."""
        model, starts = self._model, []
        if guess is not None:
            starts.append(model.configuration_of(guess))
        count = len(model.sections)
        towards = np.array([target[0], target[1]])
        distance = float(np.linalg.norm(towards))
        towards = towards / distance if distance > 1e-9 else np.array([1.0, 0.0])
        rest = model.rest_configuration.reshape(-1, 3)
        tries = []
        for outer in (1.0, 2.0, 0.5, -1.0):  # bend of the other sections over the first one's
            for angle in np.linspace(0.05, 0.9, 8):
                configuration = rest.copy()
                for k in range(count):
                    bend = angle * self._max_bend[k] * (1.0 if k == 0 else outer)
                    bend = min(max(bend, -self._max_bend[k]), self._max_bend[k])
                    configuration[k, :2] = bend * towards
                tries.append(configuration.ravel())
        ranked = []
        for one in tries:
            try:
                miss = float(np.linalg.norm(model.tips_of(one)[0] - target))
            except ModelError:
                continue
            # A radian of bending is worth a quarter of the arm's length: rather bend less.
            bending = float(np.linalg.norm(one.reshape(-1, 3)[:, :2]))
            ranked.append((miss + 0.25 * bending * model.rest_length_m, one))
        ranked.sort(key=lambda pair: pair[0])
        return starts + [one for _, one in ranked[:3]]

    def _descend(
        self, start: Array, target: Array, turn: Array | None, loads: Loads
    ) -> _Found | None:
        model, length = self._model, self._model.rest_length_m
        q = self._clipped(start)
        try:
            held = model.holder.solve(q, loads)
        except ModelError:
            return None
        error = self._error(held, target, turn)
        left = float(np.linalg.norm(error))
        pulling = turn is None
        # With an orientation nothing is free: elongation is needed like the bends.
        stretching = turn is not None
        for iteration in range(_ITERATIONS):
            pulling = pulling and iteration < _SETTLING
            if not pulling and left <= 1e-3 * CONVERGED_M:
                break
            J = model.arm.tip_jacobian(held.strains) @ held.strains_by_configuration
            J = J[:3] if turn is None else np.vstack([J[:3], length * J[3:]])
            scale = np.tile([1.0, 1.0, length], len(q) // 3) if stretching else self._scale
            J = J * scale
            w = np.zeros(len(q))
            if pulling:
                w = 0.5 * (model.preferred_from(q, held) - q) / self._scale
            fine = _FINE_REGULARISER if turn is None else _POSE_REGULARISER
            eps = length**2 * (_REGULARISER if pulling else fine)
            step = self._step(J, error, w, eps, q, held, scale)
            if step is None:
                break
            bends = step.reshape(-1, 3)[:, :2]
            largest = float(np.abs(bends).max())
            step = step * min(1.0, _MAX_BEND_STEP_RAD / max(largest, 1e-12))
            moved, fine, before = False, not pulling, left
            for _ in range(6):
                trial = self._clipped(q + step)
                try:
                    there = model.holder.solve(trial, loads, near=held)
                except ModelError:
                    step = 0.5 * step
                    continue
                miss = self._error(there, target, turn)
                size = float(np.linalg.norm(miss))
                if pulling or size < left * (1.0 - 1e-6):
                    # Settled: from here on only the tip counts.
                    still = float(np.abs((trial - q)[_bends(len(q))]).max()) < _SETTLED_RAD
                    pulling = pulling and not still
                    q, held, error, left, moved = trial, there, miss, size, True
                    break
                step = 0.5 * step
            if fine and left > _SLOW * before and not stretching:
                stretching = True  # bends alone only creep towards the target
            elif not pulling and not moved:
                break
        inside = self._inside(held)
        good = left <= CONVERGED_M and inside and held.stable
        message = ''
        if not good:
            message = f'{1e3 * left:.3g} mm left'
            if not inside:
                message += ', pressures out of range'
            if not held.stable:
                message += ', the shape found is not stable'
        return _Found(q, held, left, good, message)

    def _error(self, held: HeldShape, target: Array, turn: Array | None) -> Array:
        pose = self._model.arm.node_poses(held.strains)[-1]
        miss = target - pose[:3, 3]
        if turn is None:
            return miss
        angle = log_so3(turn @ pose[:3, :3].T)
        return np.concatenate([miss, self._model.rest_length_m * angle])

    def _step(
        self,
        J: Array,
        error: Array,
        w: Array,
        eps: float,
        q: Array,
        held: HeldShape,
        scale: Array,
    ) -> Array | None:
        """Return dq (3 s,) of the quadratic programme, or None."""
        model = self._model
        A = model.pressure_rates_of(held) * scale
        pressures = model.pressures_of(held)
        unit = 1.0 / (model.pressure_max - model.pressure_min)
        rows = [A * unit[:, None]]
        low = [(model.pressure_min - pressures) * unit]
        high = [(model.pressure_max - pressures) * unit]
        for k, limit in enumerate(self._max_bend):
            bend = q[3 * k : 3 * k + 2]
            size = float(np.linalg.norm(bend))
            if size > 1e-6:
                row = np.zeros((1, len(q)))
                row[0, 3 * k : 3 * k + 2] = bend / size  # the scale of bends is 1
                rows.append(row)
                low.append(np.array([-1e30]))
                high.append(np.array([max(limit - size, 0.0)]))
        H = J.T @ J + eps * np.eye(len(q))
        f = -(J.T @ error + eps * w)
        weight = 1.0 / np.trace(H)
        bounds = np.concatenate(high)
        x, _, flag, _ = daqp.solve(
            H * weight,
            f * weight,
            np.ascontiguousarray(np.vstack(rows)),
            bounds,
            np.concatenate(low),
            np.full(len(bounds), _SOFT, dtype=np.int32),
        )
        if flag not in _OPTIMAL or not np.isfinite(x).all():
            return None
        return np.asarray(x) * scale

    def _clipped(self, configuration: Array) -> Array:
        out = configuration.copy()
        for k, limit in enumerate(self._max_bend):
            size = float(np.linalg.norm(out[3 * k : 3 * k + 2]))
            if size > limit:
                out[3 * k : 3 * k + 2] *= limit / size
        return out

    def _inside(self, held: HeldShape) -> bool:
        model = self._model
        pressures = model.pressures_of(held)
        slack = 1e-6 * (model.pressure_max - model.pressure_min)
        return bool(
            np.all(pressures >= model.pressure_min - slack)
            and np.all(pressures <= model.pressure_max + slack)
        )
