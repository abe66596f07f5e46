"""The estimator that the block `estimator` of a rig names, and its fields in that block."""

from __future__ import annotations

from softarm_ros.control.config import EstimatorConfig
from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.geometry.parts import Part
from softarm_ros.rigs.part_registry import find_part


def estimator_part(block: EstimatorConfig) -> tuple[Part, ConfigBlock]:
    """Return the part that an estimator block names, and the fields it gives it."""
    part = find_part('estimator', block.kind)
    return part, part.config.model_validate(block.of_part)
