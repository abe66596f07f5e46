"""
Chambers of a section that softens as a whole, whichever of its chambers stretches it.

Curves are measured one chamber at a time: with the others empty, chamber i extends by f_i(p). If
the softness of a section depends on its mean elongation only, the extensions follow from the sum P
of the pressures and the share of each chamber in it:

    e_i = f_i(P) p_i / P,    and back:    sum_i e_i / f_i(P) = 1,    p_i = P e_i / f_i(P).

A single filled chamber extends as measured. Sums of two or three pressures exceed the measured
pressures; there f_i continues with the slope at its end.
"""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.pneumatic.chambers import ChamberCurves, MeasuredCurves
from softarm_ros.models.pneumatic.config import ChamberSectionConfig

_TINY = 1e-9  # of the measured pressures: below it, curves are taken as straight lines
_ROUNDING = 1e-9
_FLAT = 1e-12
_FAR = 10.0  # times the measured pressures: as far as a search may look beyond them


class CommonSoftening(MeasuredCurves):
    """Extension [m] over pressure [Pa] of three chambers that soften their section together."""

    def largest_extensions(self, most: Array) -> Array:
        """
        Return the largest extension (3,) [m] of each chamber, with pressures up to `most` (3,).

        A chamber extends furthest alone or with all three filled; not all combinations of these
        extensions are possible.
        """
        alone = np.array([float(c(p)) for c, p in zip(self.curves, most.tolist())])
        return np.maximum(alone, self.extensions(most))

    def extensions(self, pressures: Array) -> Array:
        """
        Return the extensions (3,) [m] under pressures (3,) [Pa].

        Raises
        ------
        ModelError
            For a pressure outside the measured range.

        """
        values = self._measured(pressures)
        total = max(float(values.sum()), self._least)
        return np.asarray(self._alone(total)[0] * values / total)

    def pressures(self, extensions: Array) -> Array:
        """
        Return the pressures (3,) [Pa] for extensions (3,) [m].

        Raises
        ------
        ModelError
            For extensions that need a pressure beyond the measured range.

        """
        return self._measured(self._needed(extensions, float(self.max_pressure_Pa.sum())))

    def needed(self, extensions: Array) -> tuple[Array, Array]:
        """
        Return the pressures (3,) [Pa] for extensions (3,) [m] and their slope (3, 3) [Pa/m].

        Unlike those of `pressures`, they may exceed the measured range.

        Raises
        ------
        ModelError
            For extensions far beyond those of the measured pressures.

        """
        values = self._needed(extensions, _FAR * float(self.max_pressure_Pa.sum()))
        # At the flat end of a curve, extensions do not depend on all pressures.
        return values, np.asarray(np.linalg.pinv(self._slopes_at(values)), dtype=float)

    def _needed(self, extensions: Array, most: float) -> Array:
        """Return the pressures (3,) [Pa] for extensions (3,) [m]; their sum is at most `most`."""
        from scipy.optimize import brentq  # late: importing it delays every start by 0.5 s

        values = np.asarray(extensions, dtype=float)

        def beyond(total: float) -> float:
            # The margin chooses the least pressures where a curve is flat at its end.
            return float(np.sum(values / self._alone(total)[0])) - (1.0 + _FLAT)

        if beyond(self._least) <= 0.0:
            total = self._least
        elif beyond(most) > 0.0:
            raise ModelError(
                f'extensions {np.round(1e3 * values, 3).tolist()} mm: not reached with pressures '
                f'of up to {self.max_pressure_Pa.max():g} Pa'
            )
        else:
            total = brentq(beyond, self._least, most, xtol=1e-12 * most, rtol=1e-14)
        return np.asarray(total * values / self._alone(total)[0])

    def pressures_by(self, pressures: Array, extensions_by: Array) -> Array:
        """Convert a derivative of the extensions (3, k) to that of the pressures (3, k)."""
        return np.asarray(np.linalg.solve(self._slopes(pressures), extensions_by), dtype=float)

    def by_pressures(self, pressures: Array, by_extensions: Array) -> Array:
        """Convert a derivative by extensions (r, 3) to one by pressures (r, 3)."""
        return np.asarray(by_extensions @ self._slopes(pressures))

    @property
    def _least(self) -> float:
        return _TINY * float(self.max_pressure_Pa.min())

    def _slopes(self, pressures: Array) -> Array:
        """Return d extension / d pressure (3, 3) [m/Pa]."""
        return self._slopes_at(self._measured(pressures))

    def _slopes_at(self, values: Array) -> Array:
        total = max(float(values.sum()), self._least)
        alone, slope = self._alone(total)
        gain = (slope * total - alone) * values / total**2
        return np.diag(alone / total) + gain[:, None]

    def _alone(self, total: float) -> tuple[Array, Array]:
        """Return f_i(P) (3,) [m] and its slope (3,) [m/Pa], linear beyond the curve's end."""
        found, slopes = np.empty(3), np.empty(3)
        for i, (curve, end) in enumerate(zip(self.curves, self.max_pressure_Pa)):
            at = min(total, float(end))
            extension, slopes[i] = curve.at(at)
            found[i] = extension + slopes[i] * (total - at)
        return found, slopes

    def _measured(self, pressures: Array) -> Array:
        """Return pressures clipped to the measured range; ModelError if one exceeds rounding."""
        values = np.asarray(pressures, dtype=float)
        slack = _ROUNDING * self.max_pressure_Pa
        if np.any(values < -slack) or np.any(values > self.max_pressure_Pa + slack):
            raise ModelError(
                f'pressures {values.round(1).tolist()} Pa: outside the identified range 0 to '
                f'{self.max_pressure_Pa.tolist()}'
            )
        return np.asarray(np.clip(values, 0.0, self.max_pressure_Pa))


def curves_of(section: ChamberSectionConfig) -> MeasuredCurves:
    """Return the curves of a section's chambers: independent, or softening together."""
    return (CommonSoftening if section.softens_as_one else ChamberCurves)(section)
