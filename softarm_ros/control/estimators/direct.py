"""Estimator that returns measured poses unchanged, at the time of their measurement."""

from __future__ import annotations

import contextlib

import numpy as np

from softarm_ros.control.estimator import SECTION, TIP, Estimate, Estimator, Surroundings
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.geometry.parts import Part
from softarm_ros.geometry.sightings import Sighting
from softarm_ros.models.arm_model import ArmModel


class DirectConfig(ConfigBlock):
    """No fields."""


class Direct(Estimator):
    """
    Returns every sighting of the tip once, newest first, without filter or prediction.

    If all section tips were seen, the model computes the configuration from them.
    """

    def __init__(self, model: ArmModel) -> None:
        self._model = model
        self._sections = len(model.posture_of(model.rest_configuration).section_tips)
        self.reset()

    def reset(self) -> None:
        """Forget all sightings."""
        self._newest: Estimate | None = None
        self._stamp_ns: int | None = None

    def observe(self, sighting: Sighting) -> str | None:
        """Take a sighting of the tip, with or without section tips."""
        if self._stamp_ns is not None and sighting.stamp_ns <= self._stamp_ns:
            behind = 1e-6 * (self._stamp_ns - sighting.stamp_ns)
            return f'sighting is {behind:.1f} ms older than the newest'
        tips = _sections_of(sighting, self._sections)
        tip = _tip_of(sighting, tips)
        if tip is None:
            return 'sighting without a tip'
        self._stamp_ns = sighting.stamp_ns
        stamp_s = 1e-9 * sighting.stamp_ns
        seen = None
        if tips is not None:
            with contextlib.suppress(ValueError):  # no configuration follows from the tips
                seen = self._model.observed_configuration(tips)
        self._newest = Estimate(stamp_s, stamp_s, tip, section_tips=tips, configuration=seen)
        return None

    def estimate(self, now_s: float) -> Estimate | None:
        """Return the newest measurement, once."""
        taken, self._newest = self._newest, None
        return taken


def _tip_of(sighting: Sighting, section_tips: Array | None) -> Array | None:
    """Return the pose (4, 4) of the tip; its attitude is NaN if only a position was seen."""
    for body in sighting.bodies:
        if body.name == TIP:
            return body.pose
    for point in sighting.points:
        if point.name == TIP:
            tip = np.full((4, 4), np.nan) if section_tips is None else section_tips[-1].copy()
            tip[:3, 3], tip[3] = point.position, (0.0, 0.0, 0.0, 1.0)
            return tip
    return None


def _sections_of(sighting: Sighting, sections: int) -> Array | None:
    """Return the tips (n, 4, 4) of sections 0, 1, ... up to the first missing, then the arm's."""
    found = {body.name: body.pose for body in sighting.bodies}
    tips: list[Array] = []
    while (name := f'{SECTION}{len(tips)}') in found:
        tips.append(found[name])
    if TIP in found and len(tips) < sections:
        tips.append(found[TIP])
    return np.array(tips) if tips else None


def build(
    config: DirectConfig, model: ArmModel, surroundings: Surroundings | None = None
) -> Direct:
    """Return the estimator of an arm."""
    return Direct(model)


PART = Part(
    'estimator',
    'direct',
    DirectConfig,
    {'estimator': f'{__name__}:build'},
    'measured poses without a filter, at their time stamps',
)
