"""URDF of an arm and the joint positions that give it the shape of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from softarm_ros.rigs import centreline_urdf, jointed_urdf
from softarm_ros.rigs.schema import Rig

Array = NDArray[np.float64]
JointMap = Callable[[Sequence[float] | Array], tuple[list[str], Array]]
DEFAULT_LINKS_PER_SECTION = 8


def build_urdf(rig: Rig, links_per_section: int = DEFAULT_LINKS_PER_SECTION) -> str:
    """Return the URDF text of an arm, with links `base`, `<section>_tip` and `tip`."""
    jointed = rig.outline().jointed
    if jointed:
        return jointed_urdf.build_urdf(rig.name, jointed, links_per_section)
    return centreline_urdf.build_urdf(rig, links_per_section)


def joint_names(rig: Rig, links_per_section: int = DEFAULT_LINKS_PER_SECTION) -> list[str]:
    """Return the names of all movable joints, from base to tip."""
    jointed = rig.outline().jointed
    if jointed:
        return jointed_urdf.joint_names(jointed, links_per_section)
    return centreline_urdf.joint_names(rig, links_per_section)


def joint_map(rig: Rig, links_per_section: int = DEFAULT_LINKS_PER_SECTION) -> JointMap:
    """
    Return the function from a configuration (dof,) to names and positions [rad, m] of all joints.

    It raises ValueError if the configuration has the wrong size or is not finite.
    """
    jointed = rig.outline().jointed
    if jointed:
        return partial(jointed_urdf.joint_positions, jointed, links_per_section)
    return centreline_urdf.CentrelineJoints(rig, links_per_section).positions


def joint_positions(
    rig: Rig,
    configuration: Sequence[float] | Array,
    links_per_section: int = DEFAULT_LINKS_PER_SECTION,
) -> tuple[list[str], Array]:
    """Return names and positions [rad, m] of all joints once; see `joint_map`."""
    return joint_map(rig, links_per_section)(configuration)
