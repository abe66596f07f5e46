"""
Learned errors of a model's section tips, with their own uncertainty.

    e(f) = t(f) W [1, (f - mean) / scale],    f the features of the commands.

W comes from ridge regression. The trust t is 1 near the training data and falls to 0 away from
them, so that the physics model is not corrected there. The leverage is h(f) = z' P z, with P the
covariance of the ridge regression; reach is the largest leverage of the training rows. Beyond
reach, the variance of a correction grows by left^2 s^2 (h - reach), where s is the error of the
physics model and left the share of it that remains after learning. The combination of the two
with the least variance is

    t = 1 / (1 + left^2 max(0, h - reach)).

The data say nothing about features that stood still in training. The leverage leaves them out;
when one of them changes by more than `STILL`, t falls to 0 whatever `left` is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.models.command_features import FeatureMemory, begun, command_features, stepped

STILL = 0.01  # change of a feature, in half ranges of the actuators
_STEP = 1e-4  # of finite differences, in half ranges of the actuators


@dataclass(frozen=True)
class Residual:
    """
    Corrections of the section tips: three of position [m] and three of rotation [rad] each.

    Attributes
    ----------
    features : tuple of str
        See `command_features`.
    sections : int
        Tips that are corrected, from base to tip.
    groups : tuple of int
        The section of each actuator.
    middle, half : (m,)
        Middle and half width of the range of each actuator.
    mean, scale : (f,)
        Mean and scale of the features; scale 0: the feature stood still.
    weights : (f + 1, 6 sections)
        Rows: the constant, then the features.
    covariance : (f + 1, f + 1)
        P, for unit noise.
    noise : (6 sections,)
        Standard deviation of the remaining error, in the unit of each output.
    reach : float
        Largest leverage of the training rows.
    left : float
        Share of the physics model's error that remains on rows not used for training.

    """

    features: tuple[str, ...]
    sections: int
    groups: tuple[int, ...]
    middle: Array
    half: Array
    mean: Array
    scale: Array
    weights: Array
    covariance: Array
    noise: Array
    reach: float
    left: float

    def remembered(self, commands: Array, time_s: Array | None) -> Array:
        """Return the features (n, f) of commands (n, m), in SI units and in time order."""
        rest = np.clip(-self.middle / self.half, -1.0, 1.0)
        return command_features(
            self.features, (commands - self.middle) / self.half, time_s, rest, self.groups
        )

    def begun(self, command: Array) -> FeatureMemory:
        """Return the memory of an arm just after a step from rest to a command (m,), SI units."""
        rest = np.clip(-self.middle / self.half, -1.0, 1.0)
        return self.stepped(begun(self.features, rest, self.groups), command, 0.0)

    def stepped(self, memory: FeatureMemory, command: Array, elapsed_s: float) -> FeatureMemory:
        """Return the memory after a command (m,) in SI units; see `command_features`."""
        u = (command - self.middle) / self.half
        return stepped(self.features, memory, u, elapsed_s, self.groups)

    def beyond_settled(self, memory: FeatureMemory, command: Array) -> Array:
        """Return the present errors (sections, 6) minus the settled ones."""
        now = self.at(memory.values[None])[0][0]
        return np.asarray(now - self.settled(command))

    def at(self, remembered: Array) -> tuple[Array, Array, Array]:
        """
        Return errors and standard deviations, both (n, sections, 6), and the trust t (n,).

        The standard deviations grow without limit away from the data.
        """
        away = remembered - self.mean
        z = np.hstack([np.ones((len(remembered), 1)), in_scales(away, self.scale)])
        unknown = np.maximum(0.0, np.abs(away[:, self.scale == 0.0]) / STILL - 1.0)
        leverage = np.einsum('ni,ij,nj->n', z, self.covariance, z)
        beyond = np.maximum(0.0, leverage - self.reach)
        trust = 1.0 / (1.0 + self.left**2 * beyond + np.sum(unknown**2, axis=1))
        errors = trust[:, None] * (z @ self.weights)
        spread = np.sqrt(1.0 + leverage)[:, None] * self.noise
        shape = (len(z), self.sections, 6)
        return errors.reshape(shape), spread.reshape(shape), trust

    def settled(self, command: Array) -> Array:
        """Return the errors (sections, 6) at a command (m,) held for long."""
        return self.at(self.remembered(np.asarray(command, dtype=float)[None], None))[0][0]

    def settled_slope(self, command: Array) -> Array:
        """Return d `settled` / d command (sections, 6, m), by finite differences."""
        command = np.asarray(command, dtype=float)
        steps = np.diag(_STEP * self.half)
        rows = np.concatenate([command + steps, command - steps])
        errors = self.at(self.remembered(rows, None))[0]
        both = errors.reshape(2, len(steps), self.sections, 6)
        slope = (both[0] - both[1]) / (2.0 * _STEP * self.half)[:, None, None]
        return np.moveaxis(slope, 0, -1)


def in_scales(away: Array, scale: Array) -> Array:
    """Return deviations (n, f) in units of the scale (f,); 0 where the scale is 0."""
    return np.asarray(away / np.where(scale > 0.0, scale, np.inf))


def corrected(section_tips: Array, errors: Array) -> Array:
    """Return section tips (..., sections, 4, 4) moved by errors (..., sections, 6)."""
    moved = np.array(section_tips)
    moved[..., :3, 3] += errors[..., :3]
    turns = errors[..., 3:]
    if np.any(turns):
        flat, vectors = moved.reshape(-1, 4, 4), turns.reshape(-1, 3)
        for frame, vector in zip(flat, vectors):
            frame[:3, :3] = exp_so3(vector) @ frame[:3, :3]
        moved = flat.reshape(moved.shape)
    return moved


def groups_of(sections: Sequence[str | None]) -> tuple[int, ...]:
    """Return the section number of each actuator; all are equal if no section is stated."""
    names = list(dict.fromkeys(sections))
    return tuple(names.index(name) for name in sections)
