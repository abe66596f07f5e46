"""
Stiffness of the silicone of an inflated part: Yeoh's law at the elongation caused by pressure.

With I1 = l^2 + 2/l of an incompressible fibre stretched by l, the energy C10 (I1 - 3) +
C20 (I1 - 3)^2 has the second derivative by l

    2 C10 (1 + 2/l^3) + 4 C20 (1 + 2/l^3) (I1 - 3) + 8 C20 (l - 1/l^2)^2,      6 C10 at rest.

The bending stiffness of a part of mean stretch l is this times the second moment of its walls (a
fibre's stretch is l - kappa x; the energy is taken to second order in kappa). Pressure adds no
stiffness here: in a chamber whose ribs keep its width, the volume is linear in the stretch, so the
force of the pressure does not depend on the stretch. In the moment of a bent part, tension in the
walls and thrust of the gas on the end cancel.
"""

from __future__ import annotations

from softarm_ros.geometry.kernels import kernel


@kernel(allocates=False)
def softened(strain: float, c20_share: float) -> float:
    """
    Return the tangent modulus at a mean elongation relative to that at rest, 1 without elongation.

    `c20_share` is C20 / C10. Under compression (strain < 0) the modulus at rest is used.
    """
    if strain <= 0.0:
        return 1.0
    stretch = 1.0 + strain
    falling = 1.0 + 2.0 / stretch**3
    first = stretch * stretch + 2.0 / stretch - 3.0
    slope = stretch - 1.0 / (stretch * stretch)
    return (falling * (1.0 + 2.0 * c20_share * first) + 4.0 * c20_share * slope * slope) / 3.0
