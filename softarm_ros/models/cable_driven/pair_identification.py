"""
Identification of an arm with pairs of cables from recorded contractions and section tips.

The model is that of `PairedCablesArm`, seen in the frame of the recording:

    p_k(t) = p_0 + R_0 exp(hat(t_x, t_y, 0)) tip_k(b_rest + B c(t - delay))

Unknowns start from the known values and are held near them (a Gaussian prior); the error of
a tip counts with a soft L1 loss, so that a marker mistaken for another does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven.constant_curvature_kernels import section_points_into
from softarm_ros.models.config import GROUPS, Group

# Expected distance of the truth from the known values (standard deviations).
MOUNT_SPREAD = 0.02  # of the arm's length
TILT_SPREAD_RAD = np.deg2rad(3.0)
LENGTH_SPREAD = 0.05  # of the section's length
REST_BEND_SPREAD_RAD = np.deg2rad(15.0)
BEND_SPREAD = 0.5  # of the largest gain by geometry
DELAY_SPREAD_S = 0.2
# Error of a tip that the model may have [share of the arm's length]: what lies beyond counts less.
TIP_SPREAD = 0.01
# Poses of a moving arm closer in time than this carry the same information.
CORRELATION_S = 0.25
_MAX_ROWS = 1500


@dataclass(frozen=True)
class PairParameters:
    """
    Parameters of the arm and of the frame it was recorded in.

    Attributes
    ----------
    mount_position : (3,)
        Base of the arm in the frame of the recording [m].
    mount_rotation : (3, 3)
        Base frame -> frame of the recording.
    lengths : (sections, 2)
        Length of arc and of one endcap [m].
    rest : (dof,)
        Bending vectors with all contractions zero [rad].
    bends : (dof, m)
        B: bending per contraction [rad/m].
    delay_s
        From a command to the motion.

    """

    mount_position: Array
    mount_rotation: Array
    lengths: Array
    rest: Array
    bends: Array
    delay_s: float

    @property
    def arm_length_m(self) -> float:
        """Length of the straight arm [m]."""
        return float(np.sum(self.lengths[:, 0] + 2.0 * self.lengths[:, 1]))


@dataclass(frozen=True)
class PairRecording:
    """
    What was measured.

    Attributes
    ----------
    time_s : (n,) or None
        When; None for poses at rest, each of which stands for itself.
    contractions : (n, m)
        Commanded [m].
    tips : (n, sections, 3)
        Positions in the frame of the recording [m].

    """

    time_s: Array | None
    contractions: Array
    tips: Array

    def rows(self, chosen: NDArray[np.int64]) -> tuple[Array, Array | None]:
        """Return tips and times of some rows."""
        return self.tips[chosen], None if self.time_s is None else self.time_s[chosen]


def predict(
    parameters: PairParameters, recording: PairRecording, rows: NDArray[np.int64] | None = None
) -> Array:
    """Return the section tips (n, sections, 3) [m] for the recorded commands, in its frame."""
    chosen = np.arange(len(recording.contractions)) if rows is None else rows
    contractions = recording.contractions[chosen]
    if recording.time_s is not None and parameters.delay_s != 0.0:
        at = recording.time_s[chosen] - parameters.delay_s
        columns = [np.interp(at, recording.time_s, c) for c in recording.contractions.T]
        contractions = np.stack(columns, axis=1)
    configurations = np.ascontiguousarray(parameters.rest + contractions @ parameters.bends.T)
    points = np.empty((len(chosen), len(parameters.lengths), 3))
    section_points_into(configurations, parameters.lengths, points)
    return np.asarray(parameters.mount_position + points @ parameters.mount_rotation.T)


def identify(
    known: PairParameters,
    recording: PairRecording,
    rows: NDArray[np.int64],
    free: Sequence[Group],
) -> PairParameters:
    """
    Return the parameters that explain the given rows of a recording best.

    Parameters
    ----------
    known
        Where to start, and the centre of the prior.
    recording
        Commands and tips.
    rows : (n,)
        Of the recording; no other row has any influence (but for commands up to `delay_s` before).
    free
        What may change.

    Raises
    ------
    ModelError
        If nothing may change, there are fewer rows than unknowns / 3 per section, or the fit does
        not converge.

    """
    unknowns = _Unknowns(known, free)
    count = len(recording.tips[0]) * 3 * len(rows)
    if not free or count < unknowns.size:
        raise ModelError(
            f'{len(rows)} rows with {count} coordinates for {unknowns.size} unknowns; '
            'expected at least as many, and something to identify'
        )
    thin = rows[:: max(1, len(rows) // _MAX_ROWS)]
    tips, times = recording.rows(thin)
    weight = 1.0 / (TIP_SPREAD * known.arm_length_m)
    if times is not None and len(times) > 1:
        spacing = float(np.median(np.diff(times)))
        weight *= min(1.0, spacing / CORRELATION_S) ** 0.5

    def residuals(x: Array) -> Array:
        error = predict(unknowns.parameters(x), recording, thin) - tips
        return np.concatenate([weight * error.reshape(-1), x])

    fit = least_squares(residuals, np.zeros(unknowns.size), loss='soft_l1', max_nfev=200)
    if not fit.success:
        raise ModelError(f'identification does not converge: {fit.message}')
    return unknowns.parameters(fit.x)


class _Unknowns:
    """Parameters as a vector x, in units of their spreads, from what is known (x = 0)."""

    def __init__(self, known: PairParameters, free: Sequence[Group]) -> None:
        self._known = known
        self._free = frozenset(free)
        dof, m = known.bends.shape
        sizes = {
            'mount': 5,
            'lengths': len(known.lengths),
            'rest_bends': dof,
            'bends': dof * m,
            'delay': 1,
        }
        ends = np.cumsum([sizes[group] if group in self._free else 0 for group in GROUPS])
        self.size = int(ends[-1])
        self._slices = dict(zip(GROUPS, (slice(a, b) for a, b in zip([0, *ends[:-1]], ends))))
        self._gain = BEND_SPREAD * float(np.max(np.abs(known.bends)))

    def parameters(self, x: Array) -> PairParameters:
        known = self._known
        result = known
        if 'mount' in self._free:
            part = x[self._slices['mount']]
            turn = exp_so3(TILT_SPREAD_RAD * np.array([part[3], part[4], 0.0]))
            result = replace(
                result,
                mount_position=known.mount_position + MOUNT_SPREAD * known.arm_length_m * part[:3],
                mount_rotation=known.mount_rotation @ turn,
            )
        if 'lengths' in self._free:
            lengths = known.lengths.copy()
            lengths[:, 0] *= np.exp(LENGTH_SPREAD * x[self._slices['lengths']])
            result = replace(result, lengths=lengths)
        if 'rest_bends' in self._free:
            rest = known.rest + REST_BEND_SPREAD_RAD * x[self._slices['rest_bends']]
            result = replace(result, rest=rest)
        if 'bends' in self._free:
            change = self._gain * x[self._slices['bends']].reshape(known.bends.shape)
            result = replace(result, bends=known.bends + change)
        if 'delay' in self._free:
            delay = known.delay_s + DELAY_SPREAD_S * float(x[self._slices['delay']][0])
            result = replace(result, delay_s=max(delay, 0.0))
        return result
