"""
Compare all models of a cable-driven section: `python -m softarm_reproduction.model_comparison`.

The arm is a silicone rod of 0.2 m with three cables, one of them under tension. The Cosserat rod
and the dynamics receive the tension; the other models receive the Cosserat rod's contractions or
tip pose. Without weight all models must agree; with weight, differences show what each neglects.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softarm_reproduction.bench_rows import median_us
from softarm_reproduction.rod_reference import two_segment_arm
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import Shape
from softarm_ros.models.config import CableConfig, ModelName, SectionConfig
from softarm_ros.models.cosserat.arm import CosseratArm
from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.config import round_section
from softarm_ros.models.dynamics.drive import CableDrive
from softarm_ros.models.dynamics.tangents import equilibrium
from softarm_ros.models.factory import build_model
from softarm_ros.models.minimum_energy.config import BackboneConfig
from softarm_ros.models.minimum_energy.rod import MinimumEnergyRod

Vector = tuple[float, float, float]

LENGTH, RADIUS, OFFSET = 0.2, 0.01, 0.008  # m
MODULUS, DENSITY = 1e6, 1000.0  # Pa, kg/m^3
AREA = math.pi * RADIUS**2
BENDING = MODULUS * math.pi * RADIUS**4 / 4.0  # N m^2
TENSIONS = np.array([6.0, 0.0, 0.0])  # N
ANGLES_DEG = (0.0, 120.0, 240.0)
SEGMENTS, INTERVALS, POINTS, REPEATS = 20, 40, 101, 7
WEIGHTS: dict[str, Vector] = {
    'without weight': (0.0, 0.0, 0.0),
    'hanging': (0.0, 0.0, 9.81),
    'lying': (-9.81, 0.0, 0.0),
}


@dataclass(frozen=True)
class ModelShape:
    """Result of one model: centreline (n, 3) [m], tip (3,) [m], time of one call [us]."""

    name: str
    given: str
    centerline: Array
    tip: Array
    call_us: float


def compare(gravity: Vector, repeats: int = REPEATS) -> list[ModelShape]:
    """Return the shapes of all models under the same cable tension, Cosserat rod first."""
    one_segment = two_segment_arm(steps=20, extensible=False, segments=1)
    cosserat = CosseratArm(one_segment.model_copy(update={'gravity_m_s2': gravity}))
    reference = cosserat.rod.solve(TENSIONS)
    contractions, tip = reference.contractions, reference.tip
    arm, drive = _dynamic_arm()
    loads = arm.loads(
        gravity, cable_offset_m=drive.offset, cable_tension_N=drive.tensions(TENSIONS)
    )
    rod = MinimumEnergyRod(
        BackboneConfig(
            length_m=LENGTH,
            diameter_m=2.0 * RADIUS,
            youngs_modulus_Pa=MODULUS,
            shear_modulus_Pa=MODULUS / 3.0,
            mass_per_length_kg_m=DENSITY * AREA,
        ),
        INTERVALS,
        gravity,
    )

    def by_contraction(name: ModelName) -> ModelShape:
        model = build_model(name, [_section()], _cables())
        return _of_shape(name, 'contractions', lambda: model.forward(contractions), repeats)

    held = rod.reach(tip[:3, 3], tip[:3, :3])
    return [
        _of_shape('cosserat_rod', 'tension', lambda: cosserat.forward(TENSIONS), repeats),
        _of_shape(
            f'dynamics at rest, {SEGMENTS} segments',
            'tension',
            lambda: arm.shape(equilibrium(arm, loads).strains),
            repeats,
        ),
        by_contraction('cable_statics'),
        by_contraction('constant_curvature'),
        ModelShape(
            f'minimum_energy, {INTERVALS} intervals',
            'tip pose',
            held.positions,
            held.positions[-1],
            median_us(lambda: rod.reach(tip[:3, 3], tip[:3, :3]), repeats),
        ),
    ]


def distance_from(shape: ModelShape, reference: ModelShape) -> float:
    """Return the largest distance [m] between points at equal shares of the centreline."""
    share = np.linspace(0.0, 1.0, len(shape.centerline))
    even = np.linspace(0.0, 1.0, len(reference.centerline))
    same = np.stack([np.interp(share, even, reference.centerline[:, k]) for k in range(3)], axis=1)
    return float(np.linalg.norm(shape.centerline - same, axis=1).max())


def _of_shape(name: str, given: str, solve: Callable[[], Shape], repeats: int) -> ModelShape:
    shape = solve()
    points = shape.centerline(POINTS)
    return ModelShape(name, given, points, shape.tip[:3, 3], median_us(solve, repeats))


def _section() -> SectionConfig:
    # Rigid cable guides: the cutting-in stiffness is far above the modulus.
    return SectionConfig(
        name='rod',
        length_m=LENGTH,
        endcap_length_m=0.0,
        cable_radius_m=OFFSET,
        bending_stiffness_N_m2=BENDING,
        cutting_in_stiffness_N_m2=100.0 * MODULUS,
    )


def _cables() -> list[CableConfig]:
    return [CableConfig(name=f'c{a:.0f}', section='rod', angle_deg=a) for a in ANGLES_DEG]


def _dynamic_arm() -> tuple[ArmDynamics, CableDrive]:
    section = round_section(
        length_m=LENGTH,
        radius_m=RADIUS,
        youngs_modulus_Pa=MODULUS,
        density_kg_m3=DENSITY,
        segments=SEGMENTS,
    )
    # Nearly inextensible, like the other models.
    stiffness = np.array(section.stiffness)
    stiffness[0, 0] *= 1e4
    stiff = section.model_copy(update={'stiffness': tuple(map(tuple, stiffness.tolist()))})
    arm = ArmDynamics([stiff])
    angles = np.radians(ANGLES_DEG)
    offsets = OFFSET * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return arm, CableDrive(arm, offsets, [0, 0, 0])


def lines(results: Mapping[str, Sequence[ModelShape]]) -> list[str]:
    """Return the lines of the table, one per model and weight."""
    out = [f'{"":<16}{"model":<32}{"from":<14}{"tip mm":<28}{"off mm":>8}{"call us":>10}']
    for weight, shapes in results.items():
        for shape in shapes:
            tip = '(' + ', '.join(f'{1e3 * x:.2f}' for x in shape.tip) + ')'
            off = 1e3 * distance_from(shape, shapes[0])
            out.append(
                f'{weight:<16}{shape.name:<32}{shape.given:<14}{tip:<28}{off:>8.3f}'
                f'{shape.call_us:>10.1f}'
            )
    return out


def draw(results: Mapping[str, Sequence[ModelShape]], path: Path) -> Path:
    """Plot the shapes in the bending plane, one panel per weight, and return the file."""
    from softarm_ros.cli.report_plotting import LINE_STYLES, PALETTE, new_figure, save

    figure = new_figure(4.2)
    panels = figure.subplots(1, len(results), sharex=True, sharey=True)
    for axes, (weight, shapes) in zip(panels, results.items()):
        for k, shape in enumerate(shapes):
            axes.plot(
                1e3 * shape.centerline[:, 0],
                1e3 * shape.centerline[:, 2],
                LINE_STYLES[k % len(LINE_STYLES)],
                color=PALETTE[k],
                label=f'{shape.name} (from {shape.given})',
                linewidth=6.0 - 1.2 * k,  # curves that agree stay visible
            )
        axes.set_title(weight, fontsize=9.0)
        axes.set_aspect('equal')
        axes.set_xlabel('x [mm]')
        axes.grid(linewidth=0.4, alpha=0.5)
    panels[0].set_ylabel('z [mm]')
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc='outside upper center', ncols=2, fontsize=7.5)
    return save(figure, path)


def main(arguments: Sequence[str]) -> None:
    """Print the table; with a path argument, also write the picture."""
    results = {name: compare(gravity) for name, gravity in WEIGHTS.items()}
    print('\n'.join(lines(results)))
    if arguments:
        print(f'picture: {draw(results, Path(arguments[0]))}')


if __name__ == '__main__':
    import sys

    main(sys.argv[1:])
