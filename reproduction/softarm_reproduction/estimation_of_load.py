"""
A tip load, estimated: `python -m softarm_reproduction.estimation_of_load`.

Two simulated arms under one command, one with a load that the controller does not know; each is
seen for a few seconds, and the force follows from the tips. Cable-driven arms are not in it: their
models know no loads.
"""

from __future__ import annotations

import numpy as np

from softarm_reproduction.estimation_runs import rig_of
from softarm_ros.control.estimation.tip_load import TipLoad, tip_compliance, tip_load
from softarm_ros.control.estimator import Estimate
from softarm_ros.control.measurement_frame import MeasurementFrame
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.assembly import build_estimator
from softarm_ros.runtime.pose_intake import sighting_of

# A tenth of the mass of each arm [kg], by its rig file, rounded.
LOADS_KG = {
    'pneumatic_arm': 0.025,
    'fishbone_arm': 0.010,
    'hydraulic_arm': 0.070,
    'pam_arm': 0.040,
}
WATER_KG_M3 = 1000.0
SECONDS, BAR = 8.0, 0.2
_STEP_N = 0.01
DRIFT = np.array([5e-4] * 3 + [5e-3] * 3)  # as the plants' hysteresis may leave, chosen before


def settled(rig: Rig, model: ArmModel, actuation: Array, seconds: float, seed: int) -> Estimate:
    """Return the estimate of a rig's plant after a command has been held."""
    plant, estimator = build_plant(rig, seed), build_estimator(rig, model)
    posture, period = model.posture_of(model.configuration_of(actuation)), 0.02
    start = plant.actuator_state().position
    estimate = None
    while plant.time_s < seconds:
        now = plant.time_s
        share = min(now / (0.5 * seconds), 1.0)
        estimator.command(now, posture)
        for frame in plant.poll_poses():
            tip = frame.section_tips[-1, :3, 3]
            whole = MeasurementFrame(round(1e9 * frame.stamp_s), tip, frame.section_tips)
            estimator.observe(sighting_of(whole))
        estimate = estimator.estimate(now)
        plant.step((1.0 - share) * start + share * actuation, period)
    if estimate is None:
        raise RuntimeError(f'{rig.name}: nothing was seen in {seconds:g} s')
    return estimate


def load_of(name: str, seed: int = 0, seconds: float = SECONDS) -> tuple[TipLoad, Array]:
    """Return the estimated load of a rig and the true force (3,) [N]."""
    rig = rig_of(name, estimator='filter')
    model = rig.model()
    somewhere = rig.sample_configurations(np.random.default_rng(seed), 1)[0]
    rest = model.rest_configuration
    limits = rig.actuator_limits()
    actuation = np.clip(
        model.actuation_of(rest + 0.5 * (somewhere - rest)),
        limits.position_min,
        limits.position_max,
    )
    mass = LOADS_KG[name]
    loaded = rig.model_copy(update={'tip_load_kg': mass})
    before, now = (settled(one, model, actuation, seconds, seed) for one in (rig, loaded))
    gravity = np.array(rig.gravity_m_s2)
    wet = WATER_KG_M3 / rig.arm.payload_density_kg_m3 if rig.medium == 'water' else 0.0
    truth = mass * gravity * (1.0 - wet)
    compliance = tip_compliance(model, actuation, _STEP_N)
    spread = 10.0 * mass * float(np.linalg.norm(gravity))  # the weight of the arm
    return tip_load(before, now, compliance, spread, DRIFT), truth


def main() -> None:
    """Print the load of each arm."""
    for name in LOADS_KG:
        found, truth = load_of(name)
        size = float(np.linalg.norm(truth))
        along = float(found.force @ truth) / size
        sd = float(np.sqrt(truth @ found.covariance @ truth)) / size
        off = abs(along - size) / size
        verdict = 'met' if off <= BAR else 'missed'
        print(
            f'{name:14} load {size:.3f} N, estimated {along:.3f} N along gravity (sd {sd:.3f}), '
            f'off by {100 * off:.0f} % (bar {100 * BAR:.0f} %: {verdict}); across it '
            f'{np.linalg.norm(found.force - along * truth / size):.3f} N',
            flush=True,
        )


if __name__ == '__main__':
    main()
