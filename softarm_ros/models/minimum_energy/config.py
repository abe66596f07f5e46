"""Parameters of the minimum-energy models in a rig file."""

from __future__ import annotations

import math

from pydantic import Field, model_validator

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import ConfigBlock, NonNegative, Positive
from softarm_ros.models.minimum_energy.gas_springs import GasSprings, linear_springs
from softarm_ros.models.minimum_energy.muscle_kernels import Springs


class BackboneConfig(ConfigBlock):
    """
    Round elastic backbone of an arm, inextensible (Chen et al. 2022, table 1).

    The table prints E = 6.2 MPa and G = 2.4 MPa, with which the arm would hang like a string; 62
    and 24 GPa (a NiTi or glass-fibre rod) give the shapes of the paper's figures and are the
    defaults here. The mass is that of the whole arm, spread along it: 4 N of weight.
    """

    length_m: Positive = 1.0
    diameter_m: Positive = 2.5e-3
    youngs_modulus_Pa: Positive = 62e9
    shear_modulus_Pa: Positive = 24e9
    mass_per_length_kg_m: NonNegative = 4.0 / 9.81

    @property
    def bending_stiffness_N_m2(self) -> float:
        """E pi d^4 / 64, eq. 10."""
        return self.youngs_modulus_Pa * math.pi * self.diameter_m**4 / 64.0

    @property
    def torsional_stiffness_N_m2(self) -> float:
        """G pi d^4 / 32, eq. 10."""
        return self.shear_modulus_Pa * math.pi * self.diameter_m**4 / 32.0


class ParallelModulesConfig(ConfigBlock):
    """
    Modules of three parallel muscles between disks; neighbours are turned by 60 degrees (eq. 1).

    Not printed in the paper and assumed: the muscles act on the disks' edge (20 mm); a muscle
    reaches a little more than its airbag's 100 mm, without which a backbone of ten times 100 mm
    could not bend. Muscles are gas springs (`GasSprings`), whose commands are amounts of gas, told
    as lengths without load; with a `muscle_stiffness_N_m` they are linear springs instead.
    """

    modules: int = Field(default=10, ge=1)
    anchor_radius_m: Positive = 0.02
    min_length_m: Positive = 0.05
    max_length_m: Positive = 0.11
    muscle_stiffness_N_m: Positive | None = Field(
        default=None, description='axial, of linear springs in place of gas springs; studies only'
    )
    max_pull_N: Positive = Field(default=22.8, description='of a muscle under full vacuum')
    supply_push_N: NonNegative = Field(
        default=13.5, description='supply pressure by cross-section, of gas springs'
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
        """The law of the muscles, none where they are linear springs."""
        if self.muscle_stiffness_N_m is not None:
            return None
        return GasSprings(
            self.min_length_m, self.max_length_m, self.max_pull_N, self.supply_push_N
        )

    @property
    def command_range_m(self) -> tuple[float, float]:
        """Shortest and longest length that can be commanded: of gas springs, without load."""
        law = self.gas_springs
        return self.min_length_m, self.max_length_m if law is None else law.most_m

    def springs(self, commands: Array) -> Springs:
        """Return the muscles under commands (modules, 3) [m]."""
        law, stiffness = self.gas_springs, self.muscle_stiffness_N_m
        if law is None:
            assert stiffness is not None
            return linear_springs(commands, stiffness)
        return law.springs(commands)
