"""Parameters of pneumatic arms with three chambers per section in a rig file."""

from __future__ import annotations

from pydantic import Field, model_validator

from softarm_ros.geometry.configs import (
    ConfigBlock,
    Length,
    Modulus,
    NonNegative,
    NonNegativeMass,
    NonNegativeModulus,
    NonNegativeShortLength,
    ShortLength,
)
from softarm_ros.models.monotone_curve import MonotoneCurve


class PressureCurveConfig(ConfigBlock):
    """Identified curve of a chamber: a table of its extension [m] over gauge pressure [Pa]."""

    pressure_Pa: tuple[float, ...] = Field(min_length=2)
    extension_m: tuple[float, ...] = Field(min_length=2)

    @model_validator(mode='after')
    def _is_a_curve_from_rest(self) -> PressureCurveConfig:
        if self.pressure_Pa[0] != 0.0 or self.extension_m[0] != 0.0:
            raise ValueError(
                f'the table must start at rest, 0 Pa and 0 m, not at {self.pressure_Pa[0]} Pa and '
                f'{self.extension_m[0]} m'
            )
        MonotoneCurve(self.pressure_Pa, self.extension_m, 'pressure_Pa', 'extension_m')
        return self


class ChamberSectionConfig(ConfigBlock):
    """
    One section: a bending part with chambers at 90, 210 and 330 degrees, then a rigid part.

    The defaults are those of the arm of Gong et al. 2018: radius 17 mm (chamber lengths are
    measured on the outer surface). The division of its 100 mm into 80 and 20 mm is assumed; each
    section has half of its 0.251 kg.
    """

    name: str = Field(pattern=r'^[a-z][a-z0-9_]*$')
    bending_length_m: Length = 0.080
    rigid_length_m: NonNegativeShortLength = 0.020
    chamber_radius_m: ShortLength = 0.017
    mass_kg: NonNegativeMass = 0.1255
    bend_per_moment_rad_N_m: NonNegative = Field(
        default=0.0, description='compliance of the bending part, L / (E I); 0 in the paper'
    )
    give_growth: NonNegative = Field(
        default=0.0, description='relative growth of the compliance per strain of the bending part'
    )
    softens_as_one: bool = Field(
        default=False,
        description='whether the pressures of all three chambers soften the section together, or '
        'each chamber extends by its own pressure alone',
    )
    curves: tuple[PressureCurveConfig, ...] = Field(
        description='one curve for all three chambers, or one for each'
    )

    @model_validator(mode='after')
    def _one_or_three(self) -> ChamberSectionConfig:
        if len(self.curves) not in (1, 3):
            raise ValueError(f'section {self.name}: {len(self.curves)} curves, expected 1 or 3')
        return self


class MountConfig(ConfigBlock):
    """
    Soft mount at the base of a section; a moment tilts it (Gong et al. 2018, eq. 15-22 corrected).

    The material is Yeoh's in plane strain. `deforming_length_m` is assumed; the paper does not
    give it.
    """

    diameter_m: ShortLength = 0.034
    deforming_length_m: Length = 0.020
    c10_Pa: Modulus = 0.11e6
    c20_Pa: NonNegativeModulus = 0.02e6


def placeholder_curve() -> PressureCurveConfig:
    """
    Return an invented curve, a p + b p^2 up to 31 mm at 90 kPa, for arms without measurements.

    The curve of the paper is lost with its supplement; an arm should use its own curve.
    """
    pressure = tuple(1e4 * i for i in range(10))
    share = tuple(p / 9e4 for p in pressure)
    return PressureCurveConfig(
        pressure_Pa=pressure, extension_m=tuple(0.031 * (0.6 * x + 0.4 * x * x) for x in share)
    )
