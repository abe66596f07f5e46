"""
Compare the Cosserat rod with a real arm: a tapered, hanging silicone tentacle with two tendons.

Young's modulus and density are identified from half of the runs, and the markers of the other half
are predicted; then the halves are exchanged. The baselines are a constant-curvature arc with an
identified bending per tension, and the errors that the authors of the data report for their model.

Run `python -m softarm_reproduction.tentacle_study DATA_DIR`, where DATA_DIR is the folder with
`static_means.csv` or its parent (source: github tud-phi/soromox, MIT; see its README).
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from softarm_reproduction.data_folder import folder_of
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.cosserat.config import (
    CableRoute,
    CosseratConfig,
    RodCableConfig,
    RodSegmentConfig,
    RoundProfile,
)
from softarm_ros.models.cosserat.rod import CosseratRod

AUTHORS_RMS_MM = (11.3, 18.4, 19.2, 35.6)
AUTHORS_MODULUS_PA, AUTHORS_DENSITY, POISSON = 315e3, 1318.0, 0.45
# The rod is divided at the markers and at the tendons' ends (all in m from the base).
MARKER_ARCS = (0.1291, 0.2195, 0.2800, 0.3600)
CUTS = (0.0, 0.1291, 0.2195, 0.2800, 0.3050, 0.3600)
MARKER_SEGMENTS = (0, 1, 2, 4)
LINK_END, ARM_END = 0.3050, 0.3600
RADII = ((0.0, 0.01541), (LINK_END, 0.00642), (ARM_END, 0.00480))
TENDON_ANGLES_DEG = (30.0, 150.0)
# Marker offsets in the local frame (x, y across, z tangent) [m].
MARKER_OFFSETS = np.array(
    [[0.0, 0.025, 0.0], [0.0, -0.021, 0.0], [0.0, 0.020, 0.0], [0.0, 0.0, 0.008]]
)


@dataclass(frozen=True)
class Run:
    """One static run: tendon tensions (2,) [N] and markers (4, 3) [m] in the arm's base frame."""

    name: str
    tensions: Array
    markers: Array


@dataclass(frozen=True)
class StudyResult:
    """Identified values, and RMS error of each marker [mm] on training and test runs."""

    trained_on: tuple[str, ...]
    modulus_Pa: float
    density_kg_m3: float
    rod_train_mm: Array
    rod_test_mm: Array
    arc_test_mm: Array
    authors_values_test_mm: Array


def load_runs(folder: Path) -> list[Run]:
    """Return the runs of `static_means.csv`."""
    runs = []
    with (folder / 'static_means.csv').open(encoding='utf-8') as file:
        for line in csv.DictReader(file):

            def point(name: str, line: dict[str, str] = line) -> Array:
                return np.array([float(line[f'{name}_{axis}_m']) for axis in 'xyz'])

            markers = []
            for name in ('p1', 'p2', 'p3', 'p4'):
                d = point(name) - point('pb') - np.array([-0.03, -0.013, 0.0])
                # The source's frame is (d_x, d_z, -d_y), the arm pointing along its -z; ours has
                # z along the arm and x, y along the source's y, x.
                markers.append([d[2], d[0], d[1]])
            tensions = np.array([float(line['tension1_N']), float(line['tension2_N'])])
            runs.append(Run(line['run'], tensions, np.array(markers)))
    return runs


def tentacle(modulus_Pa: float, density_kg_m3: float, steps: int = 2) -> CosseratRod:
    """Return the hanging tentacle, divided into segments at its markers."""
    arcs, radii = zip(*RADII)
    names = [f'piece_{k}' for k in range(len(CUTS) - 1)]
    segments = [
        RodSegmentConfig(
            name=name,
            length_m=end - start,
            profile=RoundProfile(
                young_modulus_Pa=modulus_Pa,
                poisson_ratio=POISSON,
                density_kg_m3=density_kg_m3,
                radius_m=float(np.interp(start, arcs, radii)),
                tip_radius_m=float(np.interp(end, arcs, radii)),
            ),
        )
        for name, start, end in zip(names, CUTS, CUTS[1:])
    ]
    cables = [
        RodCableConfig(
            name=f'tendon_{k + 1}',
            routes=tuple(
                CableRoute(
                    segment=name,
                    radius_m=0.0114 - 0.0295 * start,
                    end_radius_m=0.0114 - 0.0295 * end,
                    angle_deg=angle,
                )
                for name, start, end in zip(names[:4], CUTS, CUTS[1:])
            ),
        )
        for k, angle in enumerate(TENDON_ANGLES_DEG)
    ]
    return CosseratRod(
        CosseratConfig(
            segments=tuple(segments),
            cables=tuple(cables),
            gravity_m_s2=(0.0, 0.0, 9.81),
            steps=steps,
        )
    )


def rod_markers(rod: CosseratRod, tensions: Array) -> Array:
    """
    Return the markers (4, 3) [m] under tendon tensions (2,) [N].

    Raises
    ------
    RuntimeError
        If the rod finds no stable equilibrium.

    """
    state = rod.solve(tensions)
    if not state.stable:
        raise RuntimeError(f'tensions {tensions.tolist()} N: {state.message}')
    tips = state.segment_tips[list(MARKER_SEGMENTS)]
    return tips[:, :3, 3] + np.einsum('kij,kj->ki', tips[:, :3, :3], MARKER_OFFSETS)


def arc_markers(gain: float, tensions: Array) -> Array:
    """Return the markers (4, 3) [m] on an arc of curvature gain * tension, summed over tendons."""
    angles = np.radians(TENDON_ANGLES_DEG)
    bend = gain * tensions @ np.stack([np.cos(angles), np.sin(angles)], axis=1)
    kappa = max(float(np.hypot(*bend)), 1e-9)
    towards = np.array([*bend, 0.0]) / kappa
    ahead = np.array([0.0, 0.0, 1.0])
    axis = np.cross(ahead, towards)
    out = np.empty((4, 3))
    for k, s in enumerate(MARKER_ARCS):
        c, sine = np.cos(kappa * s), np.sin(kappa * s)
        point = (1.0 - c) / kappa * towards + sine / kappa * ahead
        offset = MARKER_OFFSETS[k]
        turned = c * offset + sine * np.cross(axis, offset) + (1.0 - c) * axis * (axis @ offset)
        out[k] = point + turned
    return out


def rms_mm(predict: Callable[[Array], Array], runs: Sequence[Run]) -> Array:
    """Return the RMS errors (4,) [mm] of the markers over some runs."""
    misses = np.array([predict(run.tensions) - run.markers for run in runs])
    return 1e3 * np.sqrt((misses**2).sum(axis=2).mean(axis=0))


def study(train: Sequence[Run], test: Sequence[Run]) -> StudyResult:
    """Identify modulus and density (rod) and gain (arc) from `train`; predict `test`."""

    def rod_misses(x: Array) -> Array:
        rod = tentacle(1e3 * float(np.exp(x[0])), float(np.exp(x[1])))
        return np.concatenate(
            [(rod_markers(rod, run.tensions) - run.markers).ravel() for run in train]
        )

    def arc_misses(x: Array) -> Array:
        return np.concatenate(
            [(arc_markers(float(x[0]), run.tensions) - run.markers).ravel() for run in train]
        )

    rod_fit = least_squares(rod_misses, [np.log(300.0), np.log(1200.0)], x_scale=0.1)
    arc_fit = least_squares(arc_misses, [1.0])
    modulus, density = 1e3 * float(np.exp(rod_fit.x[0])), float(np.exp(rod_fit.x[1]))
    fitted = tentacle(modulus, density)
    authors = tentacle(AUTHORS_MODULUS_PA, AUTHORS_DENSITY)
    gain = float(arc_fit.x[0])
    return StudyResult(
        tuple(run.name for run in train),
        modulus,
        density,
        rms_mm(lambda t: rod_markers(fitted, t), train),
        rms_mm(lambda t: rod_markers(fitted, t), test),
        rms_mm(lambda t: arc_markers(gain, t), test),
        rms_mm(lambda t: rod_markers(authors, t), test),
    )


def both_halves(runs: Sequence[Run]) -> tuple[StudyResult, StudyResult]:
    """Return the study trained on every other run, and the study with exchanged halves."""
    first = [run for k, run in enumerate(runs) if k % 2 == 0]
    second = [run for k, run in enumerate(runs) if k % 2 == 1]
    return study(first, second), study(second, first)


def report(results: Sequence[StudyResult]) -> str:
    """Return the table of results as text."""

    def line(what: str, values: Sequence[float] | Array) -> str:
        return f'  {what:<46}' + ''.join(f'{value:8.1f}' for value in values)

    lines = ['marker RMS [mm]' + 33 * ' ' + ''.join(f'{f"p{k}":>8}' for k in range(1, 5))]
    for result in results:
        lines += [
            f'identified on {", ".join(result.trained_on)}: '
            f'E = {result.modulus_Pa / 1e3:.0f} kPa, rho = {result.density_kg_m3:.0f} kg/m3',
            line('Cosserat rod, runs identified on', result.rod_train_mm),
            line('Cosserat rod, other runs (prediction)', result.rod_test_mm),
            line('constant curvature, other runs (prediction)', result.arc_test_mm),
            line("Cosserat rod with the authors' E, rho", result.authors_values_test_mm),
        ]
    lines.append(line("authors' report (their model, 8 runs)", AUTHORS_RMS_MM))
    return '\n'.join(lines)


def main(arguments: Sequence[str]) -> int:
    """Print the study of the given data folder."""
    if len(arguments) != 1:
        print('usage: python -m softarm_reproduction.tentacle_study DATA_DIR')
        return 2
    folder = folder_of(Path(arguments[0]), 'tendon_tentacle', 'static_means.csv')
    print(report(both_halves(load_runs(folder))))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
