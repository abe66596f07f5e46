"""Measure how a single motor step moves the tip of an arm at rest."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np

from softarm_reproduction.derivatives import WINDOW_S, derivative
from softarm_reproduction.nominal import NOMINAL
from softarm_ros import load_rig
from softarm_ros.plant.config import PlantConfig
from softarm_ros.rigs.arguments import settings_of
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_plant

RIGS = ('cable_arm_single', 'cable_arm', 'trunk')
_LOOK_S, _SETTLED_S, _ANSWER_S = 0.01, 5.0, 1.0


@dataclass(frozen=True)
class MotorStep:
    """
    The largest response of a resting arm's tip to a single motor step.

    Attributes
    ----------
    way_m : float
        Displacement of the tip from rest to rest.
    tip_m_s2, tip_m_s3 : float
        Largest acceleration and jerk of the true tip, over `WINDOW_S`.
    limits : (float, float)
        Limits of the reference [m/s^2, m/s^3].

    """

    way_m: float
    tip_m_s2: float
    tip_m_s3: float
    limits: tuple[float, float]


def motor_step(rig: Rig) -> MotorStep:
    """
    Move each motor by one step with its backlash taken up; return the largest response.

    No sensor or controller is involved: one step is the smallest motion a controller can command.

    Raises
    ------
    ValueError
        If the arm has no stepper motors.

    """
    config = rig.plant_for('sim')
    if not isinstance(config, PlantConfig) or not isinstance(rig.arm, CableArm):
        raise ValueError(f'{rig.name}: has no stepper motors')
    step, backlash = config.stepper.step_m, config.stepper.backlash_m
    ways, answers = [], []
    for motor in range(len(rig.actuator_names)):
        plant, tips = build_plant(rig, 0), []
        wound = np.zeros(len(rig.actuator_names))
        wound[motor] = step * np.ceil(backlash / step + 1.0)
        for _ in range(round(_SETTLED_S / _LOOK_S)):
            plant.step(wound, _LOOK_S)
        before = plant.true_section_tips()[-1, :3, 3]
        further = wound.copy()
        further[motor] += step
        for k in range(round(2.0 * _ANSWER_S / _LOOK_S)):
            plant.step(wound if k < round(_ANSWER_S / _LOOK_S) else further, _LOOK_S)
            tips.append(plant.true_section_tips()[-1, :3, 3].copy())
        ways.append(float(np.linalg.norm(tips[-1] - before)))
        answers.append(
            [
                float(np.max(np.linalg.norm(derivative(tips, order, _LOOK_S), axis=1)))
                for order in (2, 3)
            ]
        )
    acceleration, jerk = np.max(answers, axis=0)
    tracker = rig.tracker
    limits = float(tracker.max_acceleration_m_s2), float(tracker.max_jerk_m_s3)
    return MotorStep(max(ways), float(acceleration), float(jerk), limits)


def main(arguments: list[str] | None = None) -> int:
    """Print one line for each arm; return 2 if an arm has no stepper motors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('rigs', nargs='*', default=list(RIGS))
    parser.add_argument('--set', action='append', default=[], metavar='FIELD=VALUE')
    options = parser.parse_args(arguments)
    for name in options.rigs:
        try:
            step = motor_step(load_rig(name, (*NOMINAL, *settings_of(options.set))))
        except ValueError as error:
            parser.error(str(error))
        print(_line(name, step), flush=True)
    return 0


def _line(name: str, step: MotorStep) -> str:
    return (
        f'{name}: one motor step moves the tip by {1e3 * step.way_m:.2f} mm; over {WINDOW_S:g} s '
        f'{step.tip_m_s2:.3f} m/s^2, {step.tip_m_s3:.2f} m/s^3 (limits of the reference: '
        f'{step.limits[0]:.3f}, {step.limits[1]:.2f})'
    )


if __name__ == '__main__':
    sys.exit(main())
