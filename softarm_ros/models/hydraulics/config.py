"""Parameters of one water-hydraulic axis in a rig file."""

from __future__ import annotations

import math

from pydantic import Field, model_validator

from softarm_ros.geometry.configs import (
    ConfigBlock,
    Finite,
    Mass,
    Modulus,
    NonNegative,
    Positive,
    ShortLength,
)


class HydraulicAxisConfig(ConfigBlock):
    """
    Servo motor -> lead screw -> piston -> cylinder -> pipe -> soft chamber (Chen et al. 2022).

    The default values are set B of docs/models_hydraulics.md, which gives the reasons for them:
    the paper's table is lost. Pressures are gauge.

    `chamber_compliance_m3_Pa` is the compliance of the chamber wall alone. For an axis without an
    arm model the paper sets it to A_d^2 l_0 / (E A_s), the stretch of the chamber. With a moving
    arm that stretch is part of the arm's motion and must not be counted twice.

    `line_cells` = 0 is the paper's line: laminar resistance only. With n >= 1 cells the water in
    the line has mass and compressibility, so pressure travels at the speed of sound.
    """

    name: str = Field(pattern=r'^[a-z][a-z0-9_]*$', default='axis')
    transmission_efficiency: float = Field(gt=0.0, le=1.0, default=0.8)
    lead_m_per_rev: Positive = 0.010
    piston_mass_kg: Mass = 2.0
    piston_bore_m: ShortLength = 0.040
    piston_damping_N_s_m: NonNegative = 4000.0
    coulomb_friction_N: NonNegative = 0.0
    static_friction_N: NonNegative | None = Field(
        default=None, description='breakaway force; by default the Coulomb friction'
    )
    stroke_min_m: Finite = -0.2
    stroke_max_m: Finite = 0.2
    cylinder_volume_m3: Positive = Field(default=2.513e-4, description='V_2')
    line_bore_m: ShortLength = 0.006
    line_length_m: Positive = 2.0
    line_cells: int = Field(ge=0, le=64, default=0)
    line_roughness_m: NonNegative = 0.0
    turbulent_line: bool = False
    chamber_volume_m3: Positive = Field(default=4.49e-5, description='V_1')
    chamber_compliance_m3_Pa: NonNegative = 6.736e-13
    viscosity_Pa_s: Positive = 1.0e-3
    density_kg_m3: Positive = 998.0
    bulk_modulus_Pa: Modulus = 2.1e9
    relief_pressure_Pa: Positive | None = None
    relief_conductance_m3_s_Pa: Positive = Field(
        default=1e-9, description='flow per pressure above the relief pressure'
    )

    @model_validator(mode='after')
    def _check(self) -> HydraulicAxisConfig:
        static = self.static_friction_N
        if static is not None and static < self.coulomb_friction_N:
            raise ValueError(
                f'static_friction_N = {static:g} N is below coulomb_friction_N = '
                f'{self.coulomb_friction_N:g} N'
            )
        if self.stroke_min_m >= self.stroke_max_m:
            raise ValueError(
                f'stroke_min_m = {self.stroke_min_m:g} m is not below stroke_max_m = '
                f'{self.stroke_max_m:g} m'
            )
        return self

    @property
    def lead_m_per_rad(self) -> float:
        """Travel of the piston per radian of the motor, s [m]."""
        return self.lead_m_per_rev / (2.0 * math.pi)

    @property
    def piston_area_m2(self) -> float:
        """Area of the piston, A_c [m^2]."""
        return 0.25 * math.pi * self.piston_bore_m**2

    @property
    def line_area_m2(self) -> float:
        """Open area of the pipe [m^2]."""
        return 0.25 * math.pi * self.line_bore_m**2

    @property
    def force_per_torque(self) -> float:
        """Force on the piston per motor torque, eta / s [1/m] (eq. 33 corrected)."""
        return self.transmission_efficiency / self.lead_m_per_rad

    @property
    def pressure_per_torque_Pa_Nm(self) -> float:
        """Pressure at rest per motor torque, without friction [1/m^3]."""
        return self.force_per_torque / self.piston_area_m2

    @property
    def line_resistance_Pa_s_m3(self) -> float:
        """Laminar pressure loss per flow, 128 mu l / (pi d^4) (eq. 34)."""
        return 128.0 * self.viscosity_Pa_s * self.line_length_m / (math.pi * self.line_bore_m**4)

    @property
    def line_inertance_Pa_s2_m3(self) -> float:
        """Pressure per rate of flow of the water in the line, rho l / A."""
        return self.density_kg_m3 * self.line_length_m / self.line_area_m2

    @property
    def line_delay_s(self) -> float:
        """Travel time of a pressure wave along the line with rigid wall, l sqrt(rho / K)."""
        return self.line_length_m * math.sqrt(self.density_kg_m3 / self.bulk_modulus_Pa)

    @property
    def chamber_capacity_m3_Pa(self) -> float:
        """Volume per pressure of the chamber, wall and water, C_a (eq. 34)."""
        return self.chamber_compliance_m3_Pa + self.chamber_volume_m3 / self.bulk_modulus_Pa

    @property
    def cylinder_capacity_m3_Pa(self) -> float:
        """Volume per pressure of the cylinder, V_2 / K (eq. 35)."""
        return self.cylinder_volume_m3 / self.bulk_modulus_Pa
