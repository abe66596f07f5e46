"""The part `medium.air`: no effect on the arm beyond the damping of its body."""

from __future__ import annotations

from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.geometry.parts import Part


class AirConfig(ConfigBlock):
    """Air has no fields: its density is a thousandth of the arm's."""


PART = Part(
    'medium',
    'air',
    AirConfig,
    {'fluid': f'{__name__}:build'},
    'too thin to be felt; what damps the arm stands with its body',
)


def build(config: AirConfig) -> None:
    """Return no fluid."""
