"""
Time one step of each estimator: a command, a sighting of every section tip, the estimate.

A fixed Python loop is timed alternately with the steps. The speed of computers differs, and varies
on a shared one; the ratio of step and loop varies less.
"""

from __future__ import annotations

import time
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

# Rig, estimator, bar of the median time [us] (for two and for ten sections; None: no bar).
CASES = (
    ('cable_arm', 'filter', 200.0),
    ('hydraulic_arm', 'filter', 200.0),
    ('pneumatic_arm', 'filter', 200.0),
    ('trunk', 'filter', None),
    ('fishbone_arm', 'filter', None),
    ('pam_arm', 'filter', 1000.0),
    ('cable_arm', 'window', 200.0),
    ('pam_arm', 'window', 1000.0),
)
_ALSO_DIRECT = ('cable_arm', 'pam_arm')
_WARM = 60  # steps until the estimator's logs have reached their full length
_ROUNDS = 10_000  # iterations of the fixed loop


def rows(repeats: int) -> list[BenchRow]:
    """Return the median times of a step and of the fixed loop for every case."""
    return [
        BenchRow(f'{kind} of {name}, a step', *step_us(name, kind, repeats), 'fixed loop', bar)
        for name, kind, bar in (*CASES, *((name, 'direct', None) for name in _ALSO_DIRECT))
    ]


def step_us(name: str, kind: str, repeats: int) -> tuple[float, float]:
    """Return the median times of a step of a rig's estimator and of the fixed loop [us]."""
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
    steps, loops = [], []
    for _ in range(repeats):
        steps += timeit.repeat(step, timer=time.thread_time, number=1, repeat=10)
        loops += timeit.repeat(_fixed_loop, timer=time.thread_time, number=1, repeat=10)
    return 1e6 * float(np.median(steps)), 1e6 * float(np.median(loops))


def _fixed_loop() -> float:
    total = 0.0
    for k in range(_ROUNDS):
        total += 0.5 * k
    return total
