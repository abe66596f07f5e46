"""
Identify a real pneumatic module without load and predict it under load.

`python -m softarm_reproduction.stiffflop_study DATA_DIR` reads the folder `stiffflop_pneumatic` of
measurements (Sadati et al. 2020). The curves are identified from `noload.csv` alone. The
compliance under load follows from the curves and the geometry of the chambers; `load1.csv` is only
predicted. The models are static, so samples within a second after a change of pressure are left
out of both files. A sensor on the tip measures the force in its own frame, which turns with the
tip.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from softarm_reproduction.data_folder import folder_of
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import exp_so3, log_so3
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.pneumatic.angle_correction import PneumaticArm
from softarm_ros.models.pneumatic.chambers import CHAMBER_DIRECTIONS
from softarm_ros.models.pneumatic.config import (
    ChamberSectionConfig,
    MountConfig,
    PressureCurveConfig,
)
from softarm_ros.models.pneumatic.rod import RodOfChambers

LENGTH_M, TIP_LENGTH_M = 0.044, 0.0145
TIP_MASS_KG = 13.47e-3
DIAMETER_M = 0.025
CHAMBER_AREA_M2 = 2.0 * math.pi * 2.5e-3**2  # a pair of bores
CHAMBER_RADIUS_M = 8.5e-3
YOUNGS_MODULUS_PA = 120e3  # of the source; affects only the shape of the Yeoh curve here
KNOTS_PA = np.array([0.0, 0.35e5, 0.72e5, 1.12e5])
COLUMN_OF_CHAMBER = (0, 2, 1)  # p1, p3, p2 sit at 90, 210 and 330 degrees
PRESSED_N = 0.06
_NO_MOUNT, _ROD_STEPS = MountConfig(deforming_length_m=1e-9), 4
_TURNS, _RELAXATIONS = 100, (0.7, 0.3, 0.1)
SETTLING_S, STEADY_PA = 1.0, 3e3
BEYOND = 0.01  # share by which a pressure may exceed the last knot, to which it is clipped


@dataclass(frozen=True)
class Recording:
    """Gauge pressures (m, 3) [Pa] at 90, 210, 330 deg; tip minus base (m, 3) [m]; force [N]."""

    pressures: Array
    tip: Array
    force: Array | None


@dataclass(frozen=True)
class Identified:
    """
    Values identified from `noload.csv`.

    `radius` [m] is the effective radius of the chambers and `yaw` [rad] the rotation of the base
    about its axis. `base` (3,) [m] is the module's base relative to the base tracker, in the
    tracker's frame; `tip` (3,) [m] is the tip tracker's position in the tip's frame.
    """

    curves: tuple[PressureCurveConfig, ...]
    radius: float
    yaw: float
    base: Array
    tip: Array
    rms_m: float


@dataclass(frozen=True)
class Row:
    """Tip RMS errors [m] of one model on noload, load1, and load1 while pressed or free."""

    model: str
    noload_m: float
    load1_m: float
    pressed_m: float
    free_m: float


def read_recording(path: Path) -> Recording:
    """Return the settled samples of a recording; raise `ValueError` if a column is missing."""
    table = np.genfromtxt(path, delimiter=',', names=True)
    columns = table.dtype.names or ()
    for name in ('p1_bar', 'p2_bar', 'p3_bar', 'base_x_mm', 'tip_x_mm'):
        if name not in columns:
            raise ValueError(f'{path}: no column {name}')
    absolute = np.stack([table[f'p{j}_bar'] for j in (1, 2, 3)], axis=1)
    gauge = 1e5 * np.clip(absolute - absolute[0], 0.0, None)
    tip = np.stack([table[f'tip_{a}_mm'] - table[f'base_{a}_mm'] for a in 'xyz'], axis=1)
    force = None
    if 'fx_N' in columns:
        force = np.stack([table[f'f{a}_N'] for a in 'xyz'], axis=1)
        force = force - force[0]
    before = round(SETTLING_S / float(table['time_s'][1] - table['time_s'][0]))
    settled = np.ones(len(gauge), dtype=bool)
    for back in range(1, before + 1):
        settled[back:] &= np.abs(gauge[back:] - gauge[:-back]).max(axis=1) < STEADY_PA
    return Recording(
        gauge[settled][:, COLUMN_OF_CHAMBER],
        1e-3 * tip[settled],
        None if force is None else force[settled],
    )


def within_knots(recording: Recording, name: str) -> tuple[Recording, int]:
    """
    Clip pressures slightly above the last knot; return the recording and number of clipped rows.

    Raises
    ------
    ValueError
        If a pressure exceeds the last knot by more than `BEYOND`: the curves are undefined there.

    """
    last = float(KNOTS_PA[-1])
    highest = float(recording.pressures.max())
    if highest > (1.0 + BEYOND) * last:
        raise ValueError(
            f'{name}: {highest:.0f} Pa is {100.0 * (highest / last - 1.0):.1f} % above the last '
            f'knot of the curves, {last:.0f} Pa; expected at most {100.0 * BEYOND:g} %'
        )
    rows = int(np.sum(recording.pressures.max(axis=1) > last))
    return replace(recording, pressures=np.minimum(recording.pressures, last)), rows


def identify(recording: Recording, knots_Pa: Array = KNOTS_PA) -> Identified:
    """Identify curves and tracker offsets by least squares from a recording without load."""
    intervals = len(knots_Pa) - 1

    def unpack(unknown: Array) -> Identified:
        rises = np.exp(unknown[7:]).reshape(3, intervals)
        curves = tuple(
            PressureCurveConfig(
                pressure_Pa=tuple(knots_Pa), extension_m=(0.0, *np.cumsum(rise).tolist())
            )
            for rise in rises
        )
        base, tip = unknown[2:5], np.array([unknown[5], unknown[6], 0.0])
        return Identified(curves, math.exp(unknown[0]), unknown[1], base, tip, 0.0)

    def residual(unknown: Array) -> Array:
        return (_predict(unpack(unknown), recording.pressures) - recording.tip).ravel()

    start = np.concatenate(
        [
            [math.log(CHAMBER_RADIUS_M), 0.0, 0.0, 0.0, 0.007, 0.0, 0.0],
            np.full(3 * intervals, -5.8),
        ]
    )
    found = least_squares(residual, start, x_scale='jac', max_nfev=200)
    best = unpack(found.x)
    rms = _rms(found.fun.reshape(-1, 3))
    return Identified(best.curves, best.radius, best.yaw, best.base, best.tip, rms)


def module(
    found: Identified,
    mount: MountConfig | None = None,
    tip_mass_kg: float = 0.0,
    bend_per_moment: float = 0.0,
    softens_as_one: bool = False,
) -> PneumaticArm:
    """Return the identified hanging module; its own mass is already part of the curves."""
    section = ChamberSectionConfig(
        name='module',
        bending_length_m=LENGTH_M,
        rigid_length_m=TIP_LENGTH_M,
        chamber_radius_m=found.radius,
        mass_kg=0.0,
        bend_per_moment_rad_N_m=bend_per_moment,
        curves=found.curves,
        softens_as_one=softens_as_one,
    )
    return PneumaticArm([section], mount, tip_mass_kg=tip_mass_kg)


def module_as_rod(
    found: Identified, bend_per_moment: float, softens_as_one: bool = False
) -> PneumaticArm:
    """Return the identified module as a Cosserat rod of equal compliance, without a mount."""
    arm = module(found, None, 0.0, bend_per_moment, softens_as_one)
    return RodOfChambers(arm.sections, _NO_MOUNT, arm.gravity, 0.0, 0.0, 0.0, _ROD_STEPS)


def compliance_of_curves(found: Identified) -> float:
    """
    Return L / (E I) [rad/(N m)], the bending per moment, from the bending per pressure.

    A chamber exerts the force p A at its radius: M = p A r. The slope is the mean of the three
    curves over their whole range.
    """
    slopes = [c.extension_m[-1] / c.pressure_Pa[-1] for c in found.curves]
    bend_per_pressure = 2.0 / (3.0 * found.radius) * float(np.mean(slopes))
    return bend_per_pressure / (CHAMBER_AREA_M2 * CHAMBER_RADIUS_M)


def mount_of_compliance(bend_per_moment: float) -> MountConfig:
    """
    Return the mount with the same lateral tip compliance as the bending part.

    For a beam of length L with a rigid part l, d/F = (L/EI) ((l + L/2)^2 + L^2/12); for a mount,
    d/F = (L+l)^2 times its tilt per moment.
    """
    beam = (TIP_LENGTH_M + 0.5 * LENGTH_M) ** 2 + LENGTH_M**2 / 12.0
    tilt_per_moment = bend_per_moment * beam / (LENGTH_M + TIP_LENGTH_M) ** 2
    c10 = YOUNGS_MODULUS_PA / 6.0
    length = tilt_per_moment * DIAMETER_M**4 * c10 / 3.0
    return MountConfig(diameter_m=DIAMETER_M, deforming_length_m=length, c10_Pa=c10, c20_Pa=0.0)


def study(folder: Path) -> tuple[Identified, list[Row]]:
    """Return the identified values and the errors of every model."""
    noload, _ = within_knots(read_recording(folder / 'noload.csv'), 'noload.csv')
    load1, _ = within_knots(read_recording(folder / 'load1.csv'), 'load1.csv')
    if load1.force is None:
        raise ValueError(f'{folder / "load1.csv"}: no column fx_N')
    pressed = np.linalg.norm(load1.force, axis=1) > PRESSED_N
    none = np.zeros_like(load1.force)

    def row(name: str, before: Array, after: Array) -> Row:
        miss = after - load1.tip
        return Row(
            name, _rms(before - noload.tip), _rms(miss), _rms(miss[pressed]), _rms(miss[~pressed])
        )

    rest = noload.tip[0]
    straight = identify(noload, KNOTS_PA[[0, -1]])
    found = identify(noload)
    compliance = compliance_of_curves(found)
    mount = mount_of_compliance(compliance)
    plain, soft, heavy = module(found), module(found, mount), module(found, mount, TIP_MASS_KG)
    spread = module(found, bend_per_moment=compliance)
    as_one = module(found, bend_per_moment=compliance, softens_as_one=True)
    rod, rod_as_one = module_as_rod(found, compliance), module_as_rod(found, compliance, True)
    fitted = _predict(found, noload.pressures)
    rows = [
        row(
            'tip stays at rest',
            np.tile(rest, (len(noload.tip), 1)),
            np.tile(rest, (len(pressed), 1)),
        ),
        row(
            'constant curvature, extension proportional to pressure',
            _predict(straight, noload.pressures),
            _predict(straight, load1.pressures),
        ),
        row('constant curvature, identified curves', fitted, _simulate(plain, found, load1, none)),
        row(
            'angle correction, measured force', fitted, _simulate(soft, found, load1, load1.force)
        ),
        row(
            'give along the arc, measured force',
            fitted,
            _simulate(spread, found, load1, load1.force),
        ),
        row(
            'the same, softening as one',
            _simulate(as_one, found, noload, np.zeros_like(noload.tip)),
            _simulate(as_one, found, load1, load1.force),
        ),
        row('rod, measured force', fitted, _simulate(rod, found, load1, load1.force)),
        row(
            'rod, softening as one',
            _simulate(rod_as_one, found, noload, np.zeros_like(noload.tip)),
            _simulate(rod_as_one, found, load1, load1.force),
        ),
        row(
            'angle correction, weight of the sensor', fitted, _simulate(heavy, found, load1, none)
        ),
        row(
            'angle correction, measured force and weight of the sensor',
            fitted,
            _simulate(heavy, found, load1, load1.force),
        ),
    ]
    return found, rows


def main() -> None:
    """Print the identified values and the table of errors."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('data_dir', type=Path, help='folder stiffflop_pneumatic, or its parent')
    folder = folder_of(parser.parse_args().data_dir, 'stiffflop_pneumatic', 'noload.csv')
    try:
        found, rows = study(folder)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    compliance = compliance_of_curves(found)
    mount = mount_of_compliance(compliance)
    print(f'effective chamber radius {1e3 * found.radius:.2f} mm')
    print(f'yaw of the base {math.degrees(found.yaw):.1f} deg')
    print(f'tracker on the tip at {np.round(1e3 * found.tip, 1).tolist()} mm off the axis')
    for angle, curve in zip((90, 210, 330), found.curves):
        extensions = ', '.join(f'{1e3 * e:.2f}' for e in curve.extension_m)
        print(f'chamber at {angle} deg: extension {extensions} mm')
    print(f'bending per moment {compliance:.1f} rad/(N m)')
    print(f'soft mount of {1e3 * mount.deforming_length_m:.1f} mm')
    print(f'\n{"RMS of the tip [mm]":58s} noload  load1  pressed  free')
    for r in rows:
        print(
            f'{r.model:58s} {1e3 * r.noload_m:6.2f} {1e3 * r.load1_m:6.2f} '
            f'{1e3 * r.pressed_m:8.2f} {1e3 * r.free_m:5.2f}'
        )


def _predict(found: Identified, pressures: Array) -> Array:
    """Return tip positions (m, 3) [m] by constant curvature, vectorised over the samples."""
    extensions = np.stack(
        [
            PchipInterpolator(curve.pressure_Pa, curve.extension_m)(pressures[:, j])
            for j, curve in enumerate(found.curves)
        ],
        axis=1,
    )
    bend = -2.0 / (3.0 * found.radius) * extensions @ CHAMBER_DIRECTIONS
    length = LENGTH_M + extensions.mean(axis=1)
    theta = np.linalg.norm(bend, axis=1)
    half = np.sinc(0.5 * theta / np.pi)
    aside = (0.5 * half * half)[:, None] * bend  # (1 - cos) / theta^2 times the bend
    arc = length[:, None] * np.column_stack([aside, np.sinc(theta / np.pi)])
    turn = Rotation.from_rotvec(np.column_stack([-bend[:, 1], bend[:, 0], 0.0 * theta]))
    tip = arc + turn.apply(found.tip + np.array([0.0, 0.0, TIP_LENGTH_M]))
    return Rotation.from_euler('z', found.yaw).apply(tip) + found.base


def _simulate(arm: PneumaticArm, found: Identified, recording: Recording, force: Array) -> Array:
    """
    Return tip positions (m, 3) [m] by the arm model under forces (m, 3) [N] in the tip's frame.

    The force turns with the tip, so each pose is a fixed point; if the iteration fails, it is
    repeated with smaller steps. A sample without equilibrium is NaN.
    """
    yaw = Rotation.from_euler('z', found.yaw).as_matrix()
    tips = np.full_like(recording.tip, np.nan)
    for i, pressures in enumerate(recording.pressures):
        load = force[i] if arm.gives else np.zeros(3)
        for share in _RELAXATIONS:
            pose = _under_following(arm, pressures, load, share)
            if pose is not None:
                tips[i] = yaw @ (pose[:3, 3] + pose[:3, :3] @ found.tip) + found.base
                break
    return tips


def _under_following(
    arm: PneumaticArm, pressures: Array, force: Array, share: float
) -> Array | None:
    """Return the tip (4, 4) under a force in the tip's frame; relax its rotation by `share`."""
    turn = arm.forward(pressures).tip[:3, :3]
    for _ in range(_TURNS):
        try:
            pose = arm.forward(pressures, turn @ force).tip
        except ModelError:
            return None
        before, turn = turn, _toward(turn, pose[:3, :3], share)
        if np.abs(turn - before).max() < 1e-6:
            return np.asarray(pose)
    return None


def _toward(first: Array, second: Array, share: float) -> Array:
    """Return the rotation at a share of the way from the first to the second."""
    return exp_so3(share * log_so3(second @ first.T)) @ first


def _rms(difference: Array) -> float:
    """Return the RMS length [m] of vectors (m, 3)."""
    return float(np.sqrt(np.mean(np.sum(difference * difference, axis=1))))


if __name__ == '__main__':
    main()
