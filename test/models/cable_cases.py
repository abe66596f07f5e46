"""A section with cables that cut into the body, with the parameters of its paper."""

import numpy as np
from model_cases import (
    BENDING,
    CUTTING,
    LENGTH,
    RADIUS,
    THREE,
    section_config,
)

from softarm_ros.models.cable_driven.cable_statics import (
    CableSection,
)

PARAMETERS = (LENGTH, RADIUS, BENDING, CUTTING)


def cable_section(angles_deg=THREE, **changes):
    return CableSection(section_config(**changes), np.radians(angles_deg))
