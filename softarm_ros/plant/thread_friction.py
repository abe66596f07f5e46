"""Friction of threads in the chain: nodes, and the angles at which the threads turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.cable_friction import CableFriction
from softarm_ros.plant.config import PlantCable, PlantConfig


class ThreadFriction(NamedTuple):
    """
    Friction of m cables at n nodes: at node g, a cable enters the segment of joint g.

    Without friction all arrays are empty, and the motion of the arm is the same to the bit.

    Attributes
    ----------
    coefficient : (1,)
        Of friction.
    nodes
        State of the friction law at the nodes.
    crossing : (m, n)
        Angle through which a cable turns in the rigid endcaps before a node [rad].
    leaving, arriving : (m, n, 3)
        Direction of the cable at the start of each segment, in the axes of the body that it
        leaves, and at the end, in the axes of the body at which it arrives.
    push : (m, N + 1, 2)
        Force of friction on the points of a cable, across the section [N].

    """

    coefficient: Array
    nodes: CableFriction
    crossing: Array
    leaving: Array
    arriving: Array
    push: Array

    def copy(self) -> ThreadFriction:
        """Return an independent copy."""
        return ThreadFriction(
            self.coefficient.copy(),
            self.nodes.copy(),
            self.crossing.copy(),
            self.leaving.copy(),
            self.arriving.copy(),
            self.push.copy(),
        )


def thread_friction(config: PlantConfig, cables: Sequence[PlantCable]) -> ThreadFriction:
    """Return the friction of all cables, in the straight arm and with undeflected bristles."""
    count = config.segments_per_section
    m, n = len(cables), count * len(config.sections)
    if config.cable_friction_coefficient == 0.0:
        m = n = 0
    friction = ThreadFriction(
        coefficient=np.array([config.cable_friction_coefficient]),
        nodes=CableFriction.of_stiffness(np.zeros((m, n))),
        crossing=np.zeros((m, n)),
        leaving=np.zeros((m, n, 3)),
        arriving=np.zeros((m, n, 3)),
        push=np.zeros((m, count + 1, 2)),
    )
    for i, cable in enumerate(cables[:m]):
        for k, section in enumerate(config.sections[: cable.section_index + 1]):
            here = slice(k * count, (k + 1) * count)
            ds = section.length_m / count
            friction.nodes.stiffness[i, here] = config.cable_presliding_stiffness_N_m2 * ds
            if k > 0:
                friction.crossing[i, k * count] = _crossing(config, cable, k)
        lengths = np.repeat([section.length_m / count for section in config.sections], count)
        lengths[(cable.section_index + 1) * count :] = 0.0
        friction.nodes.beyond[i] = np.cumsum(lengths[::-1])[::-1]
    return friction


def _crossing(config: PlantConfig, cable: PlantCable, k: int) -> float:
    """Return the wrap angle [rad] of a cable where it passes from section k - 1 to section k."""
    before, section = config.sections[k - 1], config.sections[k]
    own = k == cable.section_index
    radius = section.cable_radius_m if own else section.passing_radius_m
    height = before.endcap_length_m + section.endcap_length_m
    return 2.0 * math.atan2(abs(radius - before.passing_radius_m), height)
