"""
Bound the accuracy of tip load estimates: `python -m softarm_reproduction.load_observability`.

A simulated arm follows its default path in closed loop. The same machine then repeats the same
commands with a tenth of its mass attached to the tip midway. The tip displacement by the load over
time is compared with that of the controller's model.

Within a second after the load, an estimator can distinguish the load from a change of the model
error only by direction. The covariance of such changes bounds the standard deviation of an
unbiased linear estimate (Gauss-Markov), for a pure weight and for the force along gravity if the
force may have any direction. The bound holds even if the arm settled under the load immediately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from softarm_reproduction.estimation_of_load import (
    HUNG_S,
    LOADS_KG,
    WATER_KG_M3,
    loaded_rig,
    loads_parser,
)
from softarm_ros.control.estimation.tip_force import TipForceObserver
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import displacement
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.assembly import build_control_loop, build_pose_intake
from softarm_ros.runtime.control_loop import ControlLoop
from softarm_ros.runtime.loop import Phase
from softarm_ros.runtime.pose_intake import measure

AFTER_S = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
SECOND_S, EVERY_S = (
    1.0,
    0.5,
)  # span of a change of the model error; interval between evaluations of the model's compliance
MACHINES = (1, 2)


@dataclass
class Driven:
    """
    The record of a run.

    Attributes
    ----------
    commands : list of (m,)
        Command of every cycle.
    tips : list of (4, 4)
        True tip poses.
    measured : list of (m,)
        Measured actuators, without pretension.
    began : int
        Cycle in which tracking began.

    """

    commands: list[Array]
    tips: list[Array]
    measured: list[Array]
    began: int


def driven(rig: Rig, loop: ControlLoop, seed: int) -> Driven:
    """Run the default path without load, until some seconds after the time of the load."""
    plant, intake = build_plant(rig, seed), build_pose_intake(rig, loop.model)
    run, end = Driven([], [], [], -1), HUNG_S + AFTER_S[-1]
    loop.start(plant.time_s)
    while loop.phase is not Phase.DONE:
        now = plant.time_s
        if loop.phase is Phase.TRACK and run.began < 0:
            run.began = len(run.tips)
        if run.began >= 0 and (len(run.tips) - run.began) * loop.period_s > end:
            break
        measure(plant, intake, now)
        taken = intake.take(now)
        output = loop.cycle(now, None if taken is None else taken[0])
        intake.estimator.command(now, loop.tracker.posture)
        run.tips.append(plant.true_section_tips()[-1].copy())
        run.measured.append(loop.tracker.measured(plant.actuator_state().position).copy())
        run.commands.append(loop.limits.check(output.actuation).copy())
        plant.step(run.commands[-1], loop.period_s)
    return run


def under_load(
    rig: Rig, loop: ControlLoop, seed: int, run: Driven, hung: int, mass_kg: float
) -> Driven:
    """Repeat the commands of a run with a load [kg] attached from cycle `hung` on."""
    plant, again = build_plant(rig, seed), Driven([], [], [], run.began)
    for k, command in enumerate(run.commands):
        if k == hung:
            plant.inject(f'tip load {mass_kg}')
        again.tips.append(plant.true_section_tips()[-1].copy())
        again.measured.append(loop.tracker.measured(plant.actuator_state().position).copy())
        plant.step(command, loop.period_s)
    return again


def lines(name: str, seed: int) -> list[str]:
    """Return the results of one machine as text."""
    rig = loaded_rig(name, 'force')
    loop = build_control_loop(rig, None, laps=1)
    run, model = driven(rig, loop, seed), loop.model
    hung = run.began + round(HUNG_S / loop.period_s)
    loaded = under_load(rig, loop, seed, run, hung, LOADS_KG[name])
    gravity = np.array(rig.gravity_m_s2)
    wet = WATER_KG_M3 / rig.arm.payload_density_kg_m3 if rig.medium == 'water' else 0.0
    weight = LOADS_KG[name] * (1.0 - wet) * gravity
    size = float(np.linalg.norm(weight))
    beyond = rig.gripper.centre_m if rig.gripper is not None else 0.0
    observer = TipForceObserver(model, beyond, 10.0 * size, 0.0, 1.0)

    def slope_at(actuation: Array) -> Array:
        """Return the derivative (6, 3) of the tip pose by a force, at the weight."""
        return observer._give(model.configuration_of(actuation), actuation, weight).slope

    def moved(k: int) -> Array:
        """Return the tip displacement (3,) by the load, without that of the actuators."""
        by_load = loaded.tips[k][:3, 3] - run.tips[k][:3, 3]
        bare, other = (model.forward(one.measured[k]).tip for one in (run, loaded))
        way: Array = by_load - (other - bare)[:3, 3]
        return way

    at = [hung + round(after / loop.period_s) for after in AFTER_S]
    foreseen = observer._give(
        model.configuration_of(loaded.measured[at[5]]), loaded.measured[at[5]], weight
    ).moved[:3]
    length = float(np.linalg.norm(foreseen))
    shares = [float(moved(k) @ foreseen) / length**2 if k < len(run.tips) else np.nan for k in at]
    least_weight, least_force = bounds(run, loop, slope_at, weight)
    return [
        f'{name:14} machine {seed}: the model gives way by {1e3 * length:.1f} mm; the arm, as a '
        f'share of that: '
        + ', '.join(f'{share:.2f} after {s:g} s' for s, share in zip(AFTER_S, shares)),
        f'{"":14} least standard deviation after a second, as a share of the load: weight '
        f'{100.0 * least_weight:.0f} %, force along gravity {100.0 * least_force:.0f} %',
    ]


def bounds(
    run: Driven, loop: ControlLoop, slope_at: Callable[[Array], Array], weight: Array
) -> tuple[float, float]:
    """Return the least standard deviations of a weight and a force along it, as load shares."""
    tracked = range(run.began, len(run.tips))
    errors = np.array(
        [displacement(loop.model.forward(run.measured[k]).tip, run.tips[k]) for k in tracked]
    )
    second, every = (round(span / loop.period_s) for span in (SECOND_S, EVERY_S))
    changes = errors[second:] - errors[:-second]
    size = float(np.linalg.norm(weight))
    sds = [least_sds(changes, slope_at(run.measured[k]), weight / size) for k in tracked[::every]]
    of_weight, of_force = np.median(sds, axis=0) / size
    return float(of_weight), float(of_force)


def least_sds(changes: Array, slope: Array, along: Array) -> tuple[float, float]:
    """
    Return the least standard deviations of a weight and of a force's component along it [N].

    Parameters
    ----------
    changes : (n, 6)
        Changes of the model error: position [m] and rotation vector [rad].
    slope : (6, 3)
        Derivative of the tip pose by a force.
    along : (3,)
        Unit vector of the weight.

    """
    information = np.linalg.inv(changes.T @ changes / len(changes))
    of_force = slope.T @ information @ slope
    return (
        float(along @ of_force @ along) ** -0.5,
        float(along @ np.linalg.inv(of_force) @ along) ** 0.5,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the results of each arm."""
    given = loads_parser(__doc__, MACHINES).parse_args(arguments)
    for name in given.rigs:
        for seed in given.seeds:
            print(*lines(name, seed), sep='\n', flush=True)


if __name__ == '__main__':
    main()
