"""
Compiled pressure loss of a pipe, continuous from laminar to turbulent flow.

Darcy's law with Churchill's friction factor (Chem. Eng. 84, 1977, p. 91), written as a factor on
the laminar loss so that it stays regular at rest: dp = R Q phi(Re), phi -> 1 for Re -> 0.
"""

from __future__ import annotations

import math

from softarm_ros.geometry.kernels import kernel

# Below this Reynolds number phi - 1 is less than 1e-30.
_CREEPING = 1.0


@kernel(allocates=False)
def loss_factor(reynolds: float, relative_roughness: float) -> tuple[float, float]:
    """Return (phi, d phi / d ln Re) for a Reynolds number >= 0."""
    if reynolds <= _CREEPING:
        return 1.0, 0.0
    seven = (7.0 / reynolds) ** 0.9
    inside = seven + 0.27 * relative_roughness
    root = -2.457 * math.log(inside)
    a = root**16
    b = (37530.0 / reynolds) ** 16
    a_slope = 16.0 * root**15 * 2.457 * 0.9 * seven / inside
    log_x = 12.0 * math.log(reynolds / 8.0) - 1.5 * math.log(a + b)
    slope_x = 12.0 - 1.5 * (a_slope - 16.0 * b) / (a + b)
    x = math.exp(log_x)
    phi = (1.0 + x) ** (1.0 / 12.0)
    return phi, phi / 12.0 * x / (1.0 + x) * slope_x


@kernel(allocates=False)
def pipe_loss(
    flow: float, resistance: float, reynolds_per_flow: float, relative_roughness: float
) -> tuple[float, float]:
    """
    Return (pressure loss [Pa], its derivative by the flow [Pa s/m^3]).

    `resistance` is that of laminar flow; `reynolds_per_flow` <= 0 keeps the law laminar.
    """
    if reynolds_per_flow <= 0.0:
        return resistance * flow, resistance
    phi, slope = loss_factor(reynolds_per_flow * abs(flow), relative_roughness)
    return resistance * flow * phi, resistance * (phi + slope)
