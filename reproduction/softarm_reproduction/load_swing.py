"""
Measure the swing of an arm under a load: `python -m softarm_reproduction.load_swing`.

The experiment can be repeated in a laboratory. The arm follows its default path, stops midway with
its commands held, and comes to rest. A tenth of its mass is attached to the tip, and the filter's
tip pose is recorded for some seconds. The step response of a damped oscillator is fitted to the
tip displacement relative to the model at the measured actuators. Its frequency is compared with
the one that a weight-estimating filter expects from the model's compliance and the swinging mass.
Every seed is another machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import least_squares

from softarm_reproduction.estimation_of_load import HUNG_S, LOADS_KG, loaded_rig, loads_parser
from softarm_ros.control.estimation.tip_weight import natural_rad_s, step_answer
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import displacement
from softarm_ros.models.arm_model import ArmModel
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.swung_mass import swung_mass_kg
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.assembly import build_control_loop, build_pose_intake
from softarm_ros.runtime.loop import Phase
from softarm_ros.runtime.pose_intake import measure

REST_S, SEEN_S = 6.0, 4.0  # time to come to rest; time of recording
STARTS_HZ = (0.4, 0.7, 1.2, 2.0, 3.5)  # initial frequencies of the fits
MACHINES = (1, 2)  # seeds that the load tables do not use


def expected_hz(rig: Rig, model: ArmModel, load_kg: float, actuation: Array) -> float:
    """Return the frequency [Hz] expected from the model's compliance and the swinging mass."""
    gravity = np.array(rig.gravity_m_s2)
    down = gravity / np.linalg.norm(gravity)
    weight = load_kg * float(np.linalg.norm(gravity))
    way = displacement(model.forward(actuation).tip, model.forward(actuation, weight * down).tip)
    mass = np.array([swung_mass_kg(rig, model) + load_kg])
    return float(natural_rad_s(way[:3] / weight, down, mass)[0]) / (2.0 * np.pi)


def swung(name: str, seed: int) -> tuple[Array, Array, float]:
    """
    Return times since the load (n,) [s], tip displacements (n, 3) [m], and expected [Hz].

    Displacements are relative to the model and to their mean before the load.
    """
    rig = loaded_rig(name, 'weight')
    loop, plant = build_control_loop(rig, None, laps=1), build_plant(rig, seed)
    intake = build_pose_intake(rig, loop.model)
    began, held, hung = None, None, False
    rows: list[tuple[float, Array]] = []
    loop.start(plant.time_s)
    while loop.phase is not Phase.DONE:
        now = plant.time_s
        if began is None and loop.phase is Phase.TRACK:
            began = now
        since = -np.inf if began is None else now - began - HUNG_S - REST_S
        if since >= 0.0 and not hung:
            plant.inject(f'tip load {LOADS_KG[name]}')
            hung = True
        if since > SEEN_S:
            break
        measure(plant, intake, now)
        taken = intake.take(now)
        if held is None:
            loop.pace = intake.estimator.pace(now)
            output = loop.cycle(now, None if taken is None else taken[0])
            intake.estimator.command(now, loop.tracker.posture)
            command = loop.limits.check(output.actuation)
            if since >= -REST_S:
                held = command
        actuators = loop.tracker.measured(plant.actuator_state().position)
        intake.on_actuators(now, actuators)
        if intake.newest is not None and taken is not None and since >= -1.0:
            model = loop.model.forward(actuators).tip
            rows.append((since, displacement(model, intake.newest.tip)[:3]))
        plant.step(command, loop.period_s)
    since_s, apart = (np.array(column) for column in zip(*rows))
    hz = expected_hz(rig, loop.model, LOADS_KG[name], actuators)
    return since_s, apart - apart[since_s < 0.0].mean(axis=0), hz


def swing(since_s: Array, apart: Array) -> tuple[float, float, float]:
    """
    Return frequency [Hz], damping ratio and rms residual (share of the displacement) of a swing.

    Parameters
    ----------
    since_s, apart : (n,), (n, 3)
        Times since the load [s], and tip displacements [m].

    """
    since_s, apart = since_s[since_s >= 0.0], apart[since_s >= 0.0]
    way = apart[since_s > since_s[-1] / 2.0].mean(axis=0)
    along = apart @ way / (way @ way)

    def off(values: Array) -> Array:
        size, late, w, damping = values
        turn = w * np.maximum(since_s - late, 0.0)
        return np.asarray(size * step_answer(turn, np.array(damping)) - along)

    low, high = [0.1, 0.0, 0.6, 0.005], [10.0, 0.15, 60.0, 0.95]
    fits = [
        least_squares(off, [1.0, 0.01, 2.0 * np.pi * f, 0.2], bounds=(low, high), x_scale=high)
        for f in STARTS_HZ
    ]
    best = min(fits, key=lambda fit: float(fit.cost))
    left = float(np.sqrt(np.mean(best.fun**2))) / float(best.x[0])
    return float(best.x[2]) / (2.0 * np.pi), float(best.x[3]), left


def main(arguments: Sequence[str] | None = None) -> None:
    """Print fitted and expected swing of each arm."""
    given = loads_parser(__doc__, MACHINES).parse_args(arguments)
    for name in given.rigs:
        runs = [swung(name, seed) for seed in given.seeds]
        found = [(*swing(since_s, apart), hz) for since_s, apart, hz in runs]
        listed = ', '.join(
            f'{f:.2f} Hz {z:.2f} ({100 * left:.0f} %), expected {hz:.2f} Hz'
            for f, z, left, hz in found
        )
        print(f'{name:14} swings on {LOADS_KG[name]:g} kg: {listed}', flush=True)


if __name__ == '__main__':
    main()
