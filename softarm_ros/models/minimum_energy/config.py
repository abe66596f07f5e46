"""Parameters of the minimum-energy models in a rig file."""

from __future__ import annotations

import math

from pydantic import Field, model_validator

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import (
    ConfigBlock,
    Length,
    Modulus,
    NonNegative,
    NonNegativeMass,
    Positive,
    ShortLength,
    Stiffness,
)
from softarm_ros.models.minimum_energy.gas_springs import GasSprings, linear_springs
from softarm_ros.models.minimum_energy.muscle_kernels import Springs


class BackboneConfig(ConfigBlock):
    """
    Round, elastic, inextensible backbone of an arm (Chen et al. 2022, table 1).

    The table prints E = 6.2 MPa and G = 2.4 MPa, with which the arm would hang like a string.
    The defaults of 62 and 24 GPa (a NiTi or glass-fibre rod) give the shapes of the paper's
    figures. The mass is that of the whole arm, spread along it: 4 N of weight.
    """

    length_m: Length = 1.0
    diameter_m: ShortLength = 2.5e-3
    youngs_modulus_Pa: Modulus = 62e9
    shear_modulus_Pa: Modulus = 24e9
    mass_per_length_kg_m: NonNegativeMass = 4.0 / 9.81

    @property
    def bending_stiffness_N_m2(self) -> float:
        """Bending stiffness E pi d^4 / 64, eq. 10."""
        return self.youngs_modulus_Pa * math.pi * self.diameter_m**4 / 64.0

    @property
    def torsional_stiffness_N_m2(self) -> float:
        """Torsional stiffness G pi d^4 / 32, eq. 10."""
        return self.shear_modulus_Pa * math.pi * self.diameter_m**4 / 32.0


class ParallelModulesConfig(ConfigBlock):
    """
    Modules of three parallel muscles between disks; neighbours are rotated by 60 degrees (eq. 1).

    Two assumptions are not from the paper. The muscles act on the edges of the disks (20 mm). A
    muscle extends a little beyond the 100 mm of its airbag; otherwise a backbone of ten times
    100 mm could not bend. Muscles are gas springs (`GasSprings`), whose commands are amounts of
    gas, given as lengths without load; with `muscle_stiffness_N_m` they are linear springs.
    """

    modules: int = Field(default=10, ge=1)
    anchor_radius_m: ShortLength = 0.02
    min_length_m: Length = 0.05
    max_length_m: Length = 0.11
    muscle_stiffness_N_m: Stiffness | None = Field(
        default=None, description='of linear springs in place of gas springs; for studies only'
    )
    max_pull_N: Positive = Field(default=22.8, description='pull of a muscle under full vacuum')
    supply_push_N: NonNegative = Field(
        default=13.5, description='supply pressure times cross-section, of gas springs'
    )

    @model_validator(mode='after')
    def _ordered(self) -> ParallelModulesConfig:
        if not self.min_length_m < self.max_length_m:
            raise ValueError(
                f'min_length_m = {self.min_length_m} must be below max_length_m = '
                f'{self.max_length_m}'
            )
        return self

    @property
    def gas_springs(self) -> GasSprings | None:
        """The law of the gas springs, or None for linear springs."""
        if self.muscle_stiffness_N_m is not None:
            return None
        return GasSprings(
            self.min_length_m, self.max_length_m, self.max_pull_N, self.supply_push_N
        )

    @property
    def command_range_m(self) -> tuple[float, float]:
        """Shortest and longest length [m] that can be commanded; for gas springs, without load."""
        law = self.gas_springs
        return self.min_length_m, self.max_length_m if law is None else law.most_m

    def springs(self, commands: Array) -> Springs:
        """Return the springs of the muscles under commands (modules, 3) [m]."""
        law, stiffness = self.gas_springs, self.muscle_stiffness_N_m
        if law is None:
            assert stiffness is not None
            return linear_springs(commands, stiffness)
        return law.springs(commands)
