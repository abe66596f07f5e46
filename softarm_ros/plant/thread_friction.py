"""Friction of cables in their guides: parameters, memory and working memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.config import PlantCable, PlantConfig


class ThreadFriction(NamedTuple):
    """
    Friction of m cables at n nodes: node g is where a cable enters the segment of joint g.

    All arrays are empty without friction, which leaves the arm as it is to the bit.

    Attributes
    ----------
    coefficient : (1,)
        Of friction.
    stiffness : (m, n)
        Of the bristle at each node [N/m]: what the thread's surroundings give way by before it
        slides.
    crossing : (m, n)
        Angle by which a cable turns in the rigid endcaps before a node [rad].
    bristle : (m, n)
        Memory: deflection of the bristles [m], positive where they hold back what is pulled in.
    beyond : (m, n)
        Memory: length of the cable from each node to its end [m].
    leaving, arriving : (m, n, 3)
        Direction of the cable at the start of each segment, in the axes of the body it leaves,
        and at its end, in the axes of the body where it arrives.
    arc : (m, n)
        Length of the cable along each segment [m].
    lost : (m, n)
        Tension that the nodes up to and with g have taken from the cable [N].
    push : (m, N + 1, 2)
        What friction adds to the force of a cable on its points, across the section [N].

    """

    coefficient: Array
    stiffness: Array
    crossing: Array
    bristle: Array
    beyond: Array
    leaving: Array
    arriving: Array
    arc: Array
    lost: Array
    push: Array

    def copy(self) -> ThreadFriction:
        """Return an independent copy."""
        return ThreadFriction(*(array.copy() for array in self))

    @property
    def stored(self) -> float:
        """Elastic energy of the bristles [J]."""
        return float(0.5 * np.sum(self.stiffness * self.bristle**2))


def thread_friction(config: PlantConfig, cables: Sequence[PlantCable]) -> ThreadFriction:
    """Return the friction of all cables, in the straight arm and without memory."""
    count = config.segments_per_section
    m, n = len(cables), count * len(config.sections)
    if config.cable_friction_coefficient == 0.0:
        m = n = 0
    friction = ThreadFriction(
        coefficient=np.array([config.cable_friction_coefficient]),
        stiffness=np.zeros((m, n)),
        crossing=np.zeros((m, n)),
        bristle=np.zeros((m, n)),
        beyond=np.zeros((m, n)),
        leaving=np.zeros((m, n, 3)),
        arriving=np.zeros((m, n, 3)),
        arc=np.zeros((m, n)),
        lost=np.zeros((m, n)),
        push=np.zeros((m, count + 1, 2)),
    )
    for i, cable in enumerate(cables[:m]):
        for k, section in enumerate(config.sections[: cable.section_index + 1]):
            here = slice(k * count, (k + 1) * count)
            ds = section.length_m / count
            friction.stiffness[i, here] = config.cable_presliding_stiffness_N_m2 * ds
            if k > 0:
                friction.crossing[i, k * count] = _crossing(config, cable, k)
        lengths = np.repeat([section.length_m / count for section in config.sections], count)
        lengths[(cable.section_index + 1) * count :] = 0.0
        friction.beyond[i] = np.cumsum(lengths[::-1])[::-1]
    return friction


def _crossing(config: PlantConfig, cable: PlantCable, k: int) -> float:
    """Return what a cable turns by [rad] between sections k - 1 and k: out and along again."""
    before, section = config.sections[k - 1], config.sections[k]
    own = k == cable.section_index
    radius = section.cable_radius_m if own else section.passing_radius_m
    height = before.endcap_length_m + section.endcap_length_m
    return 2.0 * math.atan2(abs(radius - before.passing_radius_m), height)
