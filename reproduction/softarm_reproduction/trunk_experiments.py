"""Recordings of the ASL trunk and our predictions, prepared for the report page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from softarm_reproduction.experiments import Experiment, Picture, Table
from softarm_reproduction.nominal import NOMINAL
from softarm_reproduction.trunk_study import (
    AT_REST,
    BY_FORCE,
    MOVING,
    MovingStudy,
    Prediction,
    data_folder,
    force_study,
    moving_study,
    rest_study,
    servo_study,
)
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.loader import load_rig_of
from softarm_ros.rigs.schema import Rig

AXES = ('x', 'height', 'z')
SHOWN_S = 20.0
COLOURS = {'measured': '#000000', 'identified': '#0072b2', 'nominal': '#d55e00'}
SPLITS = {
    'blocks': 'every second block of 2.5 s is predicted from the others',
    'halves': 'the second half is predicted from the first',
}


def experiments(progress: Callable[[str], None], seed: int = 0) -> list[Experiment]:
    """Predict the recordings; nothing is random, so `seed` has no effect."""
    rig = load_rig_of(CableArm, 'trunk', NOMINAL)
    folder = data_folder()
    if folder is None:
        return [
            Experiment(
                'Recordings of the trunk',
                'not reproduced',
                'There are no recordings here. Put those of github.com/StanfordASL/trunk-stack '
                'into a folder asl_trunk and let SOFTARM_DATA name the folder around it.',
            )
        ]
    result = []
    studies = []
    for split in SPLITS:
        progress(f'moving run, {split}')
        studies.append(moving_study(rig, folder, split))
        result.append(_moving(rig, studies[-1]))
    progress('poses at rest')
    rest = rest_study(rig, folder, studies[0].found)
    apart = ', '.join(f'{1e3 * d:.1f}' for d in rest.repeatability_m)
    result.append(
        Experiment(
            f'Poses at rest of another session ({AT_REST})',
            'prediction',
            f'{rest.commands} different commands, each three times. Poses of one command are up '
            f'to {apart} mm apart (base, middle, tip; the largest of the middle disk is a body '
            'mistaken by the cameras). The arm reaches less far than in the moving run with the '
            'same commands: that session is not this one.',
            (),
            _table(rig, rest.predictions),
        )
    )
    progress('earlier motors')
    force = force_study(rig, folder)
    result.append(
        Experiment(
            f'Poses at rest with the earlier motors ({BY_FORCE})',
            'prediction',
            f'{force.identified_from} poses identify, {force.predicted} are predicted. The '
            'command is a duty, roughly a force, not a contraction, and the motors drove other '
            'tendons: the gains take that up as far as bending is proportional to force.',
            (),
            _table(rig, force.predictions),
        )
    )
    result.append(_servos(rig, folder))
    return result


def _moving(rig: Rig, study: MovingStudy) -> Experiment:
    picture = Picture(
        f'moving_{study.split}',
        'Tip of the trunk: measured, and predicted from the commands. Grey: rows that the '
        'identification has seen, or that are too near to them.',
        lambda figure: draw_moving(figure, study),
    )
    return Experiment(
        f'Replay of the moving run ({MOVING}): {SPLITS[study.split]}',
        'prediction',
        'Commands are replayed through the arm; errors are those of the three disks on rows that '
        'identified nothing. Nominal: disks at their resting heights, all tendons at 20 mm, '
        'pulleys of 10 mm (both unpublished), straight at rest.',
        (),
        _table(rig, study.predictions),
        (picture,),
    )


def _servos(rig: Rig, folder: Path) -> Experiment:
    servos = servo_study(rig, folder)
    return Experiment(
        f'Servos of the moving run ({MOVING})',
        'prediction',
        'Measured angle against command: the delay, and the play of the simulated servos, are '
        'taken from here. The base motors do not reach their commands: they carry the whole arm.',
        (),
        Table(
            ('motor', 'angle / command', 'delay, ms', 'left, deg rms'),
            tuple(
                (
                    servo.name,
                    f'{servo.gain:.2f}',
                    f'{1e3 * servo.delay_s:.0f}',
                    f'{np.rad2deg(servo.left_rad):.2f}',
                )
                for servo in servos
            ),
        ),
    )


def _table(rig: Rig, predictions: Sequence[Prediction]) -> Table:
    return Table(
        ('mean / rms / max, mm', 'unknowns', *rig.section_names),
        tuple(
            (
                p.name,
                str(p.unknowns),
                *(
                    ' / '.join(f'{1e3 * value:.1f}' for value in row)
                    for row in zip(p.errors.mean, p.errors.rms, p.errors.max)
                ),
            )
            for p in predictions
        ),
    )


def draw_moving(figure: Figure, study: MovingStudy) -> None:
    """Plot the tip's coordinates over time, with scored rows on a white background."""
    shown = study.time_s >= study.time_s[-1] - SHOWN_S
    axes = figure.subplots(3, 1, sharex=True)
    counts = np.zeros(len(study.time_s), dtype=bool)
    counts[study.test] = True
    for k, (axis, label) in enumerate(zip(axes, AXES)):
        lines = (
            ('measured', study.measured),
            ('nominal', study.nominal),
            ('identified', study.predicted),
        )
        for name, tips in lines:
            axis.plot(
                study.time_s[shown],
                1e3 * tips[shown, -1, k],
                color=COLOURS[name],
                lw=1.6 if name == 'measured' else 1.0,
                label=name,
            )
        axis.fill_between(
            study.time_s[shown],
            0.0,
            1.0,
            transform=axis.get_xaxis_transform(),
            where=~counts[shown],
            color='0.9',
            lw=0.0,
            zorder=0,
        )
        axis.set_ylabel(f'{label}, mm')
        axis.margins(x=0.0)
    axes[-1].set_xlabel('time, s')
    figure.legend(*axes[0].get_legend_handles_labels(), loc='outside upper right', ncols=3)
