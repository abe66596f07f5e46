"""Drive curves point by point on the muscle arm and evaluate the use of its valves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softarm_reproduction.minimum_energy_study import (
    POINTS,
    curve_points,
)
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.minimum_energy.arm import MinimumEnergyArm
from softarm_ros.models.minimum_energy.muscles import clamp_lengths
from softarm_ros.plant.pam_arm.muscle_arm_plant import MuscleArmPlant
from softarm_ros.plant.pam_arm.valves import Pulse
from softarm_ros.rigs.arms.muscle import MuscleArm
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_plant

GRAVITY_M_S2 = 9.81
DWELL_S = 2.0
_SEEN_S = 0.5  # at the end of a dwell, over which the tip is averaged
_SPEED_SHARE = 0.7


@dataclass(frozen=True)
class PointRun:
    """
    A curve driven point by point in open loop.

    Attributes
    ----------
    targets, tips : (20, 3)
        Target points and measured tips [m].
    model_miss_m : (20,)
        Distance of the controller model's tip from the target at the commanded lengths [m].
    pulses
        Pulses of all valves.

    """

    curve: str
    load_N: float
    length_m: float
    targets: Array
    tips: Array
    model_miss_m: Array
    pulses: tuple[Pulse, ...]

    @property
    def errors_percent(self) -> Array:
        """Return the normalised errors (20,) [%] of eq. 55."""
        return 100.0 * np.linalg.norm(self.tips - self.targets, axis=1) / self.length_m


@dataclass(frozen=True)
class ValveUse:
    """Statistics of the valve pulses over some runs; times in s."""

    pulses: int
    shortest_on_s: float
    shortest_gap_s: float
    smallest_delay_s: float
    largest_delay_s: float
    open_together: int


def with_load(rig: Rig, load_N: float) -> Rig:
    """Return the rig with a weight [N] at the tip that the controller knows."""
    return rig.model_copy(update={'tip_load_kg': load_N / GRAVITY_M_S2})


def muscle_model(rig: Rig) -> MinimumEnergyArm:
    """Return the minimum-energy model of the rig's muscle arm."""
    return MuscleArm.of(rig).muscle_model(rig.around)


def drive_points(
    rig: Rig, curve: str, load_N: float, seed: int, corrected: bool = False
) -> PointRun:
    """
    Drive the 20 points of a curve one after the other in open loop, with a dwell at each.

    The gas commands reproduce the moments of a rod held at its tip, as in the paper's model. With
    `corrected`, they are those for which the forward model reaches the points.
    """
    loaded = with_load(rig, load_N)
    model = muscle_model(loaded)
    limits, period = loaded.actuator_limits(), 1.0 / loaded.tracker.rate_hz
    plant = build_plant(loaded, seed)
    if not isinstance(plant, MuscleArmPlant):
        raise TypeError(f'{type(plant).__name__}: expected the plant of the muscle arm')
    present, held = model.rest_configuration, None
    tips, miss = np.empty((POINTS, 3)), np.empty(POINTS)
    targets = curve_points(curve)
    for k, point in enumerate(targets):
        if corrected:
            lengths = model.inverse(point).actuation
        else:
            lengths, held = model.commands_of_held_tip(point, guess=held)
            lengths, _ = clamp_lengths(lengths, model.modules)
        lengths = np.clip(lengths, limits.position_min, limits.position_max)
        miss[k] = np.linalg.norm(model.forward(lengths).tip[:3, 3] - point)
        way = float(np.max(np.abs(lengths - present) / limits.max_speed))
        steps = max(int(np.ceil(way / _SPEED_SHARE / period)), 1)
        for i in range(steps):
            plant.step(present + (i + 1) / steps * (lengths - present), period)
        for _ in range(round(DWELL_S / period)):
            plant.step(lengths, period)
        frames = [f for f in plant.poll_poses() if f.stamp_s > plant.time_s - _SEEN_S]
        tips[k] = np.mean([f.section_tips[-1, :3, 3] for f in frames], axis=0)
        present = lengths
    return PointRun(
        curve, load_N, model.rest_length_m, targets, tips, miss, tuple(plant.drives.board.log)
    )


def valve_use(runs: Sequence[PointRun]) -> ValveUse:
    """Return pulses, gaps, delays and times with both valves open, from the valve logs."""
    gaps, together, pulses = [], 0, [p for run in runs for p in run.pulses]
    for run in runs:
        last: dict[int, Pulse] = {}
        for pulse in run.pulses:
            before = last.get(pulse.muscle)
            if before is not None:
                gaps.append(pulse.on_s - before.off_s)
                unlike = pulse.inflate != before.inflate
                together += bool(unlike and pulse.open_s < before.close_s)
            last[pulse.muscle] = pulse
    delays = [p.open_s - p.on_s for p in pulses] + [p.close_s - p.off_s for p in pulses]
    return ValveUse(
        len(pulses),
        min(p.off_s - p.on_s for p in pulses),
        min(gaps),
        min(delays),
        max(delays),
        together,
    )


def pull_share(rig: Rig, curve: str, load_N: float) -> float:
    """
    Return the largest share of its maximum pull that a muscle needs at a curve's points.

    The folded skeleton reduces the pull of the vacuum, to zero for an empty muscle.
    """
    model, law = muscle_model(with_load(rig, load_N)), MuscleArm.of(rig).valves.law
    largest = 0.0
    for point in curve_points(curve):
        state = model.equilibrium(model.inverse(point).actuation)
        possible = law.skeleton_N_m * (state.lengths - law.shortest_m)
        largest = max(largest, float(np.max(state.tensions / possible)))
    return largest
