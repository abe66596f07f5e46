"""Muscle length <-> valve time (Chen et al. 2022, fig. 4b) through identified tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.monotone_curve import MonotoneCurve


@dataclass(frozen=True)
class ValveCommand:
    """Opening times (m,) [s] of the inflate and deflate valve of each muscle; one of them is 0."""

    inflate_s: Array
    deflate_s: Array


class MuscleValves:
    """
    Lengths of muscles that two valves inflate and deflate at a constant flow.

    Both tables give the length [m] against the time [s] that a valve has been open since the
    muscle was full (deflating, length falls) or empty (inflating, length rises). The valve time
    from one length to another is the difference of their times on the curve of that direction.

    Parameters
    ----------
    deflating, inflating
        Tables time_s -> length_m.

    Raises
    ------
    ValueError
        If deflating does not shorten the muscle or inflating does not lengthen it.

    """

    def __init__(self, deflating: MonotoneCurve, inflating: MonotoneCurve) -> None:
        if deflating.y[-1] > deflating.y[0]:
            raise ValueError('deflating: the length must fall with time')
        if inflating.y[-1] < inflating.y[0]:
            raise ValueError('inflating: the length must rise with time')
        self.deflating, self.inflating = deflating, inflating

    def times(self, present_m: ArrayLike, wanted_m: ArrayLike) -> ValveCommand:
        """Return the valve times from present to wanted lengths (m,) [m] within the tables."""
        present = np.asarray(present_m, dtype=np.float64)
        wanted = np.asarray(wanted_m, dtype=np.float64)
        shorter = wanted < present
        inflate, deflate = np.zeros(wanted.shape), np.zeros(wanted.shape)
        for curve, moves, out in (
            (self.deflating, shorter, deflate),
            (self.inflating, wanted > present, inflate),
        ):
            out[moves] = curve.inverse(wanted[moves]) - curve.inverse(present[moves])
        return ValveCommand(inflate, deflate)

    def lengths(self, present_m: ArrayLike, command: ValveCommand) -> Array:
        """Return the lengths (m,) [m] after a command; they stop at the end of the tables."""
        lengths = np.array(present_m, dtype=np.float64)
        for curve, time in (
            (self.deflating, command.deflate_s),
            (self.inflating, command.inflate_s),
        ):
            moves = time > 0.0
            end = np.minimum(curve.inverse(lengths[moves]) + time[moves], curve.x[-1])
            lengths[moves] = curve(end)
        return lengths


def exponential_valves(
    min_length_m: float, max_length_m: float, time_constant_s: float, points: int = 25
) -> MuscleValves:
    """
    Return valves with tables of first-order lags between two lengths, over three time constants.

    They replace the paper's measured curve (fig. 4b), which is lost; a rig has its own table.
    """
    if not 0.0 < min_length_m < max_length_m:
        raise ValueError(f'lengths {min_length_m} to {max_length_m} m: expected 0 < min < max')
    if not time_constant_s > 0.0:
        raise ValueError(f'time_constant_s = {time_constant_s}: must be positive')
    time = np.linspace(0.0, 3.0 * time_constant_s, points)
    fall = np.exp(-time / time_constant_s)
    fall = (fall - fall[-1]) / (1.0 - fall[-1])
    span = max_length_m - min_length_m
    return MuscleValves(
        MonotoneCurve(time, min_length_m + span * fall, 'time_s', 'length_m'),
        MonotoneCurve(time, max_length_m - span * fall, 'time_s', 'length_m'),
    )
