"""
What a model leaves: learned errors of section tips, with their own uncertainty.

    e(f) = t(f) W [1, (f - mean) / scale],    f the features of the commands.

W comes from ridge regression. t is 1 where the data were and falls to 0 away from them, so that
the physics is left alone there. With the leverage h(f) = z' P z, P the ridge's covariance, a
correction gains left^2 s^2 (h - reach) of variance beyond reach, the largest leverage of what was
learned from; s is what the physics errs by and left the share of it that learning leaves. The
combination of both with the least variance is

    t = 1 / (1 + left^2 max(0, h - reach)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.models.command_features import FeatureMemory, begun, command_features, stepped

_STEP = 1e-4  # of differences, in half ranges of the actuators


@dataclass(frozen=True)
class Residual:
    """
    Corrections of the section tips, three coordinates [m] and three of a turn [rad] each.

    Attributes
    ----------
    features : tuple of str
        See `command_features`.
    sections : int
        Tips that are corrected, from base to tip.
    groups : tuple of int
        The section of each actuator.
    middle, half : (m,)
        Of the range of each actuator.
    mean, scale : (f,)
        Of the features.
    weights : (f + 1, 6 sections)
        Rows: the constant, then the features.
    covariance : (f + 1, f + 1)
        P, for unit noise.
    noise : (6 sections,)
        Standard deviation of what is left, in the unit of each output.
    reach : float
        Largest leverage of the rows it was learned from.
    left : float
        Share of the physics' error that is left on rows it was not learned from.

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
        """Return the features (n, f) of commands (n, m) in SI units, as they followed in time."""
        rest = np.clip(-self.middle / self.half, -1.0, 1.0)
        return command_features(
            self.features, (commands - self.middle) / self.half, time_s, rest, self.groups
        )

    def begun(self, command: Array) -> FeatureMemory:
        """Return the memory of an arm that starts at rest and is at a command (m,) in SI units."""
        rest = np.clip(-self.middle / self.half, -1.0, 1.0)
        return self.stepped(begun(self.features, rest, self.groups), command, 0.0)

    def stepped(self, memory: FeatureMemory, command: Array, elapsed_s: float) -> FeatureMemory:
        """Return the memory after a command (m,) in SI units; see `command_features`."""
        u = (command - self.middle) / self.half
        return stepped(self.features, memory, u, elapsed_s, self.groups)

    def beyond_settled(self, memory: FeatureMemory, command: Array) -> Array:
        """Return by how much the errors (sections, 6) of now differ from the settled ones."""
        now = self.at(memory.values[None])[0][0]
        return np.asarray(now - self.settled(command))

    def at(self, remembered: Array) -> tuple[Array, Array, Array]:
        """
        Return errors, their standard deviations, both (n, sections, 6), and trust t (n,).

        Deviations grow without limit away from the data.
        """
        z = np.hstack([np.ones((len(remembered), 1)), (remembered - self.mean) / self.scale])
        leverage = np.einsum('ni,ij,nj->n', z, self.covariance, z)
        beyond = np.maximum(0.0, leverage - self.reach)
        trust = 1.0 / (1.0 + self.left**2 * beyond)
        errors = trust[:, None] * (z @ self.weights)
        spread = np.sqrt(1.0 + leverage)[:, None] * self.noise
        shape = (len(z), self.sections, 6)
        return errors.reshape(shape), spread.reshape(shape), trust

    def settled(self, command: Array) -> Array:
        """Return the errors (sections, 6) at a command (m,) that has stood for long."""
        return self.at(self.remembered(np.asarray(command, dtype=float)[None], None))[0][0]

    def settled_slope(self, command: Array) -> Array:
        """Return their derivative by the command (sections, 6, m), by differences."""
        command = np.asarray(command, dtype=float)
        steps = np.diag(_STEP * self.half)
        rows = np.concatenate([command + steps, command - steps])
        errors = self.at(self.remembered(rows, None))[0]
        both = errors.reshape(2, len(steps), self.sections, 6)
        slope = (both[0] - both[1]) / (2.0 * _STEP * self.half)[:, None, None]
        return np.moveaxis(slope, 0, -1)


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
    """Return a number for the section of each actuator; all the same where none is stated."""
    names = list(dict.fromkeys(sections))
    return tuple(names.index(name) for name in sections)
