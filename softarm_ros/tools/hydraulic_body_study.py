"""
The hydraulic arm's body alone: limit poses, static tips, responses to steps and ramps.

The experiments of Chen et al. (Micromachines 2022, 13, 130), sections 3 and 4, with the chamber
pressures as first-order lags of the motor torque (0.4 MPa per N m, 20 ms) instead of the water
hydraulics. Run as `python -m softarm_ros.tools.hydraulic_body_study`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.models.arm_model import Array
from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.drive import ChamberDrive
from softarm_ros.models.dynamics.hydraulic_arm import GRAVITY_M_S2, LENGTH_M, hydraulic_arm
from softarm_ros.models.dynamics.layout import Loads
from softarm_ros.models.dynamics.simulation import ArmIntegrator
from softarm_ros.models.dynamics.tangents import equilibrium

PRESSURE_PER_TORQUE = 0.4e6  # Pa per N m
LAG_S = 0.020


@dataclass(frozen=True)
class StaticPose:
    """Section angles [deg], lengths [m] and tips (sections, 3) [m] under constant pressures."""

    angles_deg: Array
    lengths_m: Array
    tips_m: Array
    stable: bool


@dataclass(frozen=True)
class Response:
    """
    Motion of a two-section arm under torques over time.

    Attributes
    ----------
    time_s, curvature, tip_m : (t,), (t, 2), (t, 3)
        Mean curvature of the sections in the x-z plane [1/m], tip of the second.
    curvature_settling_s, tip_settling_s : (2,), float
        Time after `begin_s` from which the curvature stays within 5 % of the larger final one,
        the tip within 5 % of its displacement.
    overshoot : float
        Furthest tip distance beyond the final pose's, over the displacement.

    """

    time_s: Array
    curvature: Array
    tip_m: Array
    curvature_settling_s: Array
    tip_settling_s: float
    overshoot: float


def static_pose(torques_N_m: Sequence[float], segments: int = 1) -> StaticPose:
    """Return the hanging pose for motor torques, three a section."""
    arm, drive = hydraulic_arm(len(torques_N_m) // 3, segments)
    pressures = PRESSURE_PER_TORQUE * np.array(torques_N_m)
    found = equilibrium(arm, arm.loads(GRAVITY_M_S2, drive=drive.drive(pressures)))
    if not found.converged:
        raise ValueError(f'torques {list(torques_N_m)}: {found.message}')
    mean = found.strains.reshape(len(arm.sections), segments, 4).mean(axis=1)
    return StaticPose(
        np.degrees(LENGTH_M * mean[:, 2]),
        LENGTH_M * (1.0 + mean[:, 0]),
        arm.shape(found.strains).section_tips[:, :3, 3],
        found.stable,
    )


def response(
    torques_N_m: Callable[[float], Sequence[float]],
    *,
    begin_s: float = 0.0,
    end_s: float = 4.0,
    segments: int = 1,
) -> Response:
    """Return the motion from the hanging arm under torques (6,) as a function of time [s]."""
    arm, drive = hydraulic_arm(2, segments)
    times = np.arange(0.0, end_s + 1e-9, 0.002)
    pressures = _lagged(torques_N_m, times)
    return _measured(arm, drive, times, pressures, begin_s)


def _lagged(torques_N_m: Callable[[float], Sequence[float]], times: Array) -> Array:
    """Return pressures (t - 1, 6) [Pa] in the middle of each interval behind the lag."""
    pressure, rows = np.zeros(6), []
    step = times[1] - times[0]
    half = np.exp(-0.5 * step / LAG_S)
    for t in times[:-1]:
        target = PRESSURE_PER_TORQUE * np.array(torques_N_m(t + 0.5 * step))
        middle = target + (pressure - target) * half
        pressure = target + (middle - target) * half
        rows.append(middle)
    return np.array(rows)


def _measured(
    arm: ArmDynamics, drive: ChamberDrive, times: Array, pressures: Array, begin_s: float
) -> Response:
    step = times[1] - times[0]

    def loads(t: float) -> Loads:
        row = min(int(t / step), len(pressures) - 1)
        return arm.loads(GRAVITY_M_S2, drive=drive.drive(pressures[row]))

    hanging = equilibrium(arm, arm.loads(GRAVITY_M_S2))
    run = ArmIntegrator(arm)
    motion = run.simulate(run.start(loads(0.0), hanging.strains), loads, times)
    if not motion.converged:
        raise ValueError(motion.message)
    tip = motion.tips[:, :3, 3]
    curvature = motion.strains[:, :, 2].reshape(len(times), 2, -1).mean(axis=2)
    final = np.abs(curvature[-1]).max()
    settling = [
        _settling(times, np.abs(curvature[:, i] - curvature[-1, i]), 0.05 * final, begin_s)
        for i in range(2)
    ]
    distance = np.linalg.norm(tip - tip[-1], axis=1)
    along = (tip - tip[0]) @ (tip[-1] - tip[0]) / distance[0] ** 2
    return Response(
        times,
        curvature,
        tip,
        np.array(settling),
        _settling(times, distance, 0.05 * distance[0], begin_s),
        float(along.max() - 1.0),
    )


def _settling(times: Array, error: Array, limit: float, begin_s: float) -> float:
    outside = np.nonzero(error > limit)[0]
    return max(0.0, float(times[outside[-1] + 1] - begin_s)) if outside.size else 0.0


def step(*actuators: int, torque_N_m: float = 1.5) -> Callable[[float], Sequence[float]]:
    """Return torques that step at 0 s on actuators 1..6."""
    held = [torque_N_m if i + 1 in actuators else 0.0 for i in range(6)]
    return lambda t: held


def ramps(
    begin_s: dict[int, float], rate_N_m_s: float, torque_N_m: float = 1.5
) -> Callable[[float], Sequence[float]]:
    """Return torques that rise from each actuator's time on and hold `torque_N_m`."""

    def torques(t: float) -> list[float]:
        values = [0.0] * 6
        for actuator, begin in begin_s.items():
            values[actuator - 1] = float(np.clip(rate_N_m_s * (t - begin), 0.0, torque_N_m))
        return values

    return torques


def experiments(segments: int = 1) -> list[tuple[str, Response]]:
    """Return the four dynamic experiments (PAPER sections 3.2 and 4.3)."""
    return [
        ('step on 1, 5, 6', response(step(1, 5, 6), segments=segments)),
        ('step on 1, 4', response(step(1, 4), segments=segments)),
        (
            'ramps 1.5 N m/s on 5, 6 at 2 s, on 1 at 6 s',
            response(ramps({5: 2.0, 6: 2.0, 1: 6.0}, 1.5), begin_s=7.0, end_s=11.0),
        ),
        (
            'steps on 4 at 2 s, on 1 at 6 s',
            response(ramps({4: 2.0, 1: 6.0}, 1e6), begin_s=6.0, end_s=10.0),
        ),
        (
            'ramps 0.75 N m/s on 4 at 2 s, on 1 at 6 s',
            response(ramps({4: 2.0, 1: 6.0}, 0.75), begin_s=8.0, end_s=12.0),
        ),
    ]


def main() -> None:
    """Print all tables."""
    print('one section, 1 MPa (2.5 N m): length, angle, tip x and z; reported 165.7 and 168 deg')
    for name, torques in (('2, 3', (0.0, 2.5, 2.5)), ('1', (2.5, 0.0, 0.0))):
        for segments in (1, 10):
            pose = static_pose(torques, segments)
            print(
                f'  actuators {name:5s} {segments:2d} segments  {pose.lengths_m[0]:.4f} m  '
                f'{pose.angles_deg[0]:8.2f} deg  '
                f'{pose.tips_m[0, 0]:7.3f} {pose.tips_m[0, 2]:6.3f} m'
            )
    print('two sections, one actuator: tips x, z of sections 1 and 2, angles')
    for actuator in (1, 4):
        for torque in (0.5, 1.0, 1.5, 2.0):
            pose = static_pose(step(actuator, torque_N_m=torque)(0.0))
            tips, angles = pose.tips_m, pose.angles_deg
            print(
                f'  actuator {actuator}  {torque:.1f} N m  ({tips[0, 0]:6.3f}, {tips[0, 2]:.3f})  '
                f'({tips[1, 0]:6.3f}, {tips[1, 2]:.3f}) m  {angles[0]:6.1f} {angles[1]:6.1f} deg'
            )
    print('responses: 5 % settling of the curvatures and of the tip after the last change ended')
    for name, found in experiments():
        a, b = found.curvature_settling_s
        print(
            f'  {name:44s} {a:.2f} {b:.2f} s, tip {found.tip_settling_s:.2f} s, overshoot '
            f'{100.0 * found.overshoot:4.1f} %'
        )


if __name__ == '__main__':
    main()
