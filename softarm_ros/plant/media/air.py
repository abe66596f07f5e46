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
    'no effect on the arm; the body has its own damping',
)


def build(config: AirConfig) -> None:
    """Return no fluid."""
