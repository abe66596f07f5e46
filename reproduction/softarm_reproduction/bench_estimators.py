"""Times of a step of each estimator: a command, a sighting of every section tip, the estimate."""

from __future__ import annotations

import timeit
from itertools import count

import numpy as np

from softarm_reproduction.bench_rows import BenchRow
from softarm_ros.control.config import EstimatorConfig
from softarm_ros.control.estimator import Estimator
from softarm_ros.control.measurement_frame import MeasurementFrame
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.assembly import build_estimator
from softarm_ros.runtime.pose_intake import sighting_of

# The command's posture is the tracker's; a bar where the issue of the estimator states one.
CASES = (
    ('cable_arm', 'filter', 200.0),
    ('hydraulic_arm', 'filter', 200.0),
    ('pneumatic_arm', 'filter', 200.0),
    ('trunk', 'filter', None),
    ('fishbone_arm', 'filter', None),
    ('pam_arm', 'filter', 1000.0),
    ('cable_arm', 'window', None),
    ('pam_arm', 'window', None),
)
_WARM = 60  # steps, after which every log is as long as it gets


def rows(repeats: int) -> list[BenchRow]:
    """Return the median time of a step, with `direct` as the reference."""
    return [
        BenchRow(
            f'{kind} of {name}, a step',
            step_us(name, kind, repeats),
            step_us(name, 'direct', repeats),
            'direct',
            bar,
        )
        for name, kind, bar in CASES
    ]


def step_us(name: str, kind: str, repeats: int) -> float:
    """Return the median time of a step [us] of a rig's estimator."""
    rig = load_rig(name)
    rig = rig.model_copy(update={'estimator': EstimatorConfig(kind=kind)})
    model = rig.model()
    posture = model.posture_of(model.rest_configuration)
    tips = np.ascontiguousarray(posture.section_tips)
    estimator: Estimator = build_estimator(rig, model)
    period_ns = round(1e9 / rig.feedback.rate_hz)
    stamps = count(0, period_ns)
    tip = tips[-1, :3, 3]

    def step() -> None:
        stamp_ns = next(stamps)
        estimator.observe(sighting_of(MeasurementFrame(stamp_ns, tip, tips)))
        now_s = 1e-9 * stamp_ns + rig.feedback.delay_s
        estimator.estimate(now_s)
        estimator.command(now_s, posture)

    for _ in range(_WARM):
        step()
    return 1e6 * float(np.median(timeit.repeat(step, number=1, repeat=10 * repeats)))
