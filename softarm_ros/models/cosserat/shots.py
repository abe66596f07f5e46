"""
Single shots over a Cosserat rod, for searches over tensions and tip rotation at once.

`CosseratRod` finds the shape under given tensions. If the shape or the cable lengths are given
instead, both the tensions and the rotation of the tip are unknown, and one Newton iteration over
both takes a fraction of the shots. It also finds shapes that dead tensions would not hold: an arm
that is unstable under dead tensions may be stable on cables of given length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import matrix_from_quaternion
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cosserat.config import CosseratConfig
from softarm_ros.models.cosserat.grid import build_grid
from softarm_ros.models.cosserat.shooting_kernels import shoot
from softarm_ros.models.cosserat.state import RodState
from softarm_ros.models.cosserat.strain_kernels import OK
from softarm_ros.models.cosserat.tables import Loads, Trace, new_trace

_NO_FRAME = np.array([0.0, 0.0, 0.0, 1.0])


@dataclass(frozen=True)
class DeadLoad:
    """Force and moment on the tip (6,) [N, N m] and gravity (3,) [m/s^2], base frame."""

    tip: Array
    gravity: Array

    def share(self, share: float) -> DeadLoad:
        """Return the load times `share`."""
        return DeadLoad(share * self.tip, share * self.gravity)


@dataclass(frozen=True)
class Shot:
    """
    A rod integrated from the tip to the base.

    Columns of derivatives: rotation of the tip in its own frame (3), tension of each cable.

    Attributes
    ----------
    tip_rotation : (4,)
        Quaternion x, y, z, w of the tip, at which the shot starts.
    tensions : (cables,)
        Cable tensions [N].
    turns : (segments + 1, 3, 3)
        Rotation reached at the base, then that at the distal end of each segment's flexible part.
    turn_slopes : (segments + 1, 3, 3 + cables)
        Derivatives of `turns`, each in its own frame; valid for connectors that do not rotate.
    points : (segments, 3)
        Distal end of each segment's flexible part, relative to the base [m].
    tip_slope : (3, 3 + cables)
        Derivative of the tip position, for a base that is met.
    lengths : (cables,)
        Path lengths of the cables [m].
    length_slopes : (cables, 3 + cables)
        Derivatives of `lengths`.
    strains : (steps, 7, 6)
        Strains at the stages of every step; a start for neighbours.
    folds : int
        Number of unstable modes under dead tensions (Morse index).

    """

    tip_rotation: Array
    tensions: Array
    turns: Array
    turn_slopes: Array
    points: Array
    tip_slope: Array
    lengths: Array
    length_slopes: Array
    strains: Array
    folds: int


class RodShots:
    """
    Shots over one rod, with its tables and work space.

    Parameters
    ----------
    config
        The arm; its gravity is ignored, as every shot gets its own load.

    """

    def __init__(self, config: CosseratConfig) -> None:
        self.config = config
        segments, cables = len(config.segments), len(config.cables)
        self._grid = build_grid(config, config.steps)
        self._trace = new_trace(len(self._grid.step_length), segments, cables)
        self._connectors = np.zeros((segments, 6))
        per = config.steps + 1
        # Trace rows (counted from the tip) of the segments' distal ends, ordered from the base.
        self._distal = per * np.arange(segments - 1, -1, -1)
        self._columns = np.array([0, 1, 2, *range(9, 9 + cables)])
        self._base_slope = np.zeros((1, 3, 3 + cables))
        nothing = DeadLoad(np.zeros(6), np.zeros(3))
        # At rest, the tip rotation is the inverse of the base rotation reached from the identity.
        away = self._reached(_NO_FRAME, np.zeros(cables), nothing)
        x, y, z, w = away
        self.rest_rotation = np.array([-x, -y, -z, w])
        self.rest_lengths = self._trace.cable_lengths.copy()

    def shot(
        self, tip_rotation: Array, tensions: Array, load: DeadLoad, strains: Array | None = None
    ) -> Shot:
        """
        Return a shot with its derivatives, started from the `strains` of a neighbour if given.

        Raises
        ------
        ModelError
            If a section cannot carry its wrench.

        """
        trace, cables = self._trace, len(self.config.cables)
        loads = Loads(tensions, load.tip, load.gravity, self._connectors)
        fresh = strains is None
        if strains is not None:
            trace.strains[:] = strains
        count = 9 + cables
        status, _ = shoot(self._grid, loads, tip_rotation, count, True, fresh, trace)
        if status != OK and not fresh:
            status, _ = shoot(self._grid, loads, tip_rotation, count, True, True, trace)
        if status != OK:
            raise ModelError(
                'the loads crush the arm or a cable, or a section cannot carry its wrench: '
                f'tensions {np.round(tensions, 3).tolist()} N'
            )
        columns = self._columns
        variation = trace.variation[:, columns]
        base = matrix_from_quaternion(trace.base_rotation)
        turns = np.stack(
            [base, *(matrix_from_quaternion(trace.quaternions[row]) for row in self._distal)]
        )
        slopes = np.concatenate([variation[None, :3], trace.turn_variation[:, :, columns]])
        return Shot(
            tip_rotation,
            tensions,
            turns,
            slopes,
            trace.points[self._distal] - trace.base_point,
            -variation[6:9],
            trace.cable_lengths.copy(),
            variation[9:].copy(),
            trace.strains.copy(),
            int(trace.crossings[0]),
        )

    def state(self, shot: Shot, load: DeadLoad) -> RodState:
        """Return the state along the whole rod, for a shot that meets the base."""
        loads = Loads(shot.tensions, load.tip, load.gravity, self._connectors)
        self._trace.strains[:] = shot.strains
        shoot(self._grid, loads, shot.tip_rotation, 0, False, False, self._trace)
        trace = Trace._make(array.copy() for array in self._trace)
        return RodState(
            True, True, 0.0, 1, '', shot.tensions, shot.tip_rotation, self.rest_lengths,
            self.config, self._grid, trace,
        )  # fmt: skip

    def _reached(self, tip_rotation: Array, tensions: Array, load: DeadLoad) -> Array:
        loads = Loads(tensions, load.tip, load.gravity, self._connectors)
        shoot(self._grid, loads, tip_rotation, 0, False, True, self._trace)
        return self._trace.base_rotation.copy()
