"""
Three parallel chambers <-> bending of a section (Gong et al. 2018, eq. 1-3 and 10-13).

With u_j the direction of chamber j, l_j = L - d u_j . b, b = theta (cos phi, sin phi). This is
linear in both directions, hence smooth through the straight pose, where phi is undefined.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.monotone_curve import MonotoneCurve
from softarm_ros.models.pneumatic.chamber_kernels import CurveTables, inverses, slopes
from softarm_ros.models.pneumatic.config import ChamberSectionConfig

CHAMBER_ANGLES_RAD = np.radians([90.0, 210.0, 330.0])
CHAMBER_DIRECTIONS = np.stack([np.cos(CHAMBER_ANGLES_RAD), np.sin(CHAMBER_ANGLES_RAD)], axis=1)


@dataclass(frozen=True)
class SectionBend:
    """
    Bending of one section.

    Attributes
    ----------
    bend : (2,)
        theta (cos phi, sin phi) [rad].
    length_m : float
        Length of the centre line.

    """

    bend: Array
    length_m: float

    @property
    def theta(self) -> float:
        """Bending angle [rad]."""
        return math.hypot(self.bend[0], self.bend[1])

    @property
    def phi(self) -> float:
        """Bending direction [rad] in -pi..pi; 0 for a straight section."""
        return math.atan2(self.bend[1], self.bend[0])

    @property
    def kappa(self) -> float:
        """Curvature [1/m]."""
        return self.theta / self.length_m


class MeasuredCurves(ABC):
    """Identified extension [m] over pressure [Pa] of each chamber, the others being empty."""

    def __init__(self, section: ChamberSectionConfig) -> None:
        curves = [
            MonotoneCurve(c.pressure_Pa, c.extension_m, 'pressure_Pa', 'extension_m')
            for c in section.curves
        ]
        self.curves = curves * 3 if len(curves) == 1 else curves
        self.max_pressure_Pa = np.array([curve.x[-1] for curve in self.curves])
        self.max_extension_m = np.array([curve.y_limits[1] for curve in self.curves])

    @abstractmethod
    def largest_extensions(self, most: Array) -> Array:
        """Return the largest extension (3,) [m] of each chamber, with pressures up to `most`."""

    @abstractmethod
    def extensions(self, pressures: Array) -> Array:
        """Return the extensions (3,) [m] under pressures (3,) [Pa]."""

    @abstractmethod
    def pressures(self, extensions: Array) -> Array:
        """Return the pressures (3,) [Pa] for extensions (3,) [m]."""

    @abstractmethod
    def pressures_by(self, pressures: Array, extensions_by: Array) -> Array:
        """Convert a derivative of the extensions (3, k) to that of the pressures (3, k)."""

    @abstractmethod
    def by_pressures(self, pressures: Array, by_extensions: Array) -> Array:
        """Convert a derivative by extensions (r, 3) to one by pressures (r, 3)."""


class ChamberCurves(MeasuredCurves):
    """Chambers that each extend by their own pressure, independent of the others."""

    def __init__(self, section: ChamberSectionConfig) -> None:
        super().__init__(section)
        self._alike = len(section.curves) == 1
        self._tables = tables_of(self.curves)

    def extensions(self, pressures: Array) -> Array:
        """Return the extensions (3,) [m] under pressures (3,) [Pa]."""
        if self._alike:
            return self.curves[0](pressures)
        return np.array([c.at(p)[0] for c, p in zip(self.curves, pressures.tolist())])

    def largest_extensions(self, most: Array) -> Array:
        """Return the largest extension (3,) [m] of each chamber, with pressures up to `most`."""
        return self.extensions(most)

    def slopes(self, pressures: Array) -> Array:
        """Return d extension / d pressure (3,) [m/Pa]."""
        found: Array = slopes(pressures, self._tables)
        for curve, pressure, slope in zip(self.curves, pressures.tolist(), found.tolist()):
            if math.isnan(slope):
                curve.at(pressure)  # raises the error
        return found

    def pressures_by(self, pressures: Array, extensions_by: Array) -> Array:
        """Convert a derivative of the extensions (3, k) to that of the pressures (3, k)."""
        return np.asarray(extensions_by / self.slopes(pressures)[:, None])

    def by_pressures(self, pressures: Array, by_extensions: Array) -> Array:
        """Convert a derivative by extensions (r, 3) to one by pressures (r, 3)."""
        return np.asarray(by_extensions * self.slopes(pressures))

    def pressures(self, extensions: Array) -> Array:
        """Return the pressures (3,) [Pa] for extensions (3,) [m]."""
        found: Array = inverses(extensions, self._tables)
        for curve, extension, pressure in zip(self.curves, extensions.tolist(), found.tolist()):
            if math.isnan(pressure):
                curve.inverse(extension)  # raises the error
        return found


def tables_of(curves: Sequence[MonotoneCurve]) -> CurveTables:
    """Return the tables of curves for the kernels."""
    blank = np.zeros((1, 4))
    return CurveTables(
        np.cumsum([0] + [curve.x.size for curve in curves]),
        np.concatenate([curve.x for curve in curves]),
        np.concatenate([curve.y for curve in curves]),
        np.concatenate([part for curve in curves for part in (curve.pieces, blank)]),
    )


def bend_of_chambers(lengths: Array, radius: float) -> SectionBend:
    """Return the bending for chamber lengths (3,) [m] at a radius [m]: eq. 1-3 without arctan."""
    values = np.array(lengths, dtype=np.float64)
    if values.shape != (3,) or not np.isfinite(values).all() or not np.all(values > 0.0):
        raise ValueError(f'chamber lengths {values.tolist()}: expected three positive lengths')
    bend = -2.0 / (3.0 * radius) * (values @ CHAMBER_DIRECTIONS)
    return SectionBend(bend, float(values.mean()))


def chambers_of_bend(bend: Array, length_m: float, radius: float) -> Array:
    """
    Return the chamber lengths (3,) [m] for a bending vector (2,) [rad] at a centre length [m].

    Raises
    ------
    ModelError
        If the length of a chamber would not be positive.

    """
    lengths = length_m - radius * (CHAMBER_DIRECTIONS @ np.asarray(bend, dtype=np.float64))
    if not lengths.min() > 0.0:
        raise ModelError(
            f'a bend of {np.degrees(np.linalg.norm(bend)):.1f} deg at {1e3 * length_m:.1f} mm '
            f'leaves a chamber without length: {np.round(1e3 * lengths, 2).tolist()} mm'
        )
    return lengths


def passive_length(bend: Array, rest_length_m: float, radius: float) -> float:
    """
    Return the centre length [m] with the innermost chamber at rest: eq. 10-13 combined.

    The paper fills at most two chambers of a section; the third keeps its rest length.
    """
    inward = CHAMBER_DIRECTIONS @ np.asarray(bend, dtype=np.float64)
    return rest_length_m + radius * float(inward.max())
