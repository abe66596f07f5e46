"""
Identify arms of other laboratories; tabulate prediction errors on held-out rows by model.

`python -m softarm_reproduction.identification_table DATA_DIR [--only NAME] [--write DIR]` prints a
Markdown table. Rows are held out by time or by file, never interleaved. `--write` identifies each
arm from all of its rows and writes the rig files, which are not used for the table.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from softarm_ros.cli.identification.command import errors_of
from softarm_ros.cli.identification.common import all_parameters, spelled_out
from softarm_ros.cli.identification.fit import chosen
from softarm_ros.cli.identification.identified import Identified, identified
from softarm_ros.cli.identification.learn import Learned, learn_best
from softarm_ros.cli.identification.recordings import Recorded, read_recordings
from softarm_ros.cli.identification.written import files_of, write
from softarm_ros.models.identifiable import Parameter
from softarm_ros.rigs.field_values import values_of
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.schema import Rig

RIGS = Path(__file__).parents[1] / 'rigs'


@dataclass(frozen=True)
class Part:
    """Rows of a file: the selection `rows` (as `--rows`), split by `hold_out`."""

    file: str
    rows: str | None = None
    hold_out: str = 'nothing'


@dataclass(frozen=True)
class Case:
    """One identification: training data, test data and settings."""

    name: str
    rig: str
    train: tuple[Part, ...]
    test: tuple[Part, ...] = ()  # in addition to the rows that `train` holds out
    groups: tuple[str, ...] = ()
    features: tuple[tuple[str, ...], ...] = ()  # choices, selected by cross-validation
    settings: tuple[str, ...] = ()
    most_rows: int = 600
    prior_factor: float = 1.0
    written: str | None = None  # name of the rig file to write from all rows, if any
    window: tuple[Part, ...] = ()  # a few rows to re-identify `window_groups`
    window_groups: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files with training or test rows, each once."""
        return tuple(dict.fromkeys(part.file for part in (*self.train, *self.test)))


_TRUNK = 'asl_trunk/servo_controlled_1_0g.csv'
_LOADED = 'asl_trunk/servo_controlled_1_100g.csv'
_STEPS = 'asl_trunk/servo_steps_settled.csv'
_TENTACLE = 'tendon_tentacle/static_means.csv'
_MODULE = 'stiffflop_pneumatic/'
_ASU = tuple(
    f'asu_pneumatic/{name}.csv'
    for name in (
        'apr4_1', 'apr4_2', 'apr4_3', 'apr4_4', 'apr4_5', 'apr18_1',
        'jan10_seg_LR_5_10psi', 'jan23_seg_LR_10_15psi',
    )
)  # fmt: skip
_PAIRS = ('mount', 'lengths', 'rest_bends', 'bends', 'delay')
_REMEMBERED = (
    ('cube',),
    ('linear', 'square', 'cube'),
    ('lag 0.1', 'lag 0.3', 'lag 1.0', 'play 0.1', 'play 0.25', 'play 0.5', 'cube'),
)
_ROD = (
    'stiffness', 'stiffness_profile', 'weight', 'angles', 'radii', 'radii_profile',
    'rest_curvature', 'mount', 'markers',
)  # fmt: skip
_FEW = ('stiffness', 'weight', 'angles', 'mount', 'markers')
# Values stated with the measurements; those of the rig file were identified from both tendons.
_STATED = (
    *(f'arm.segments[{k}].profile.density_kg_m3=1318' for k in range(5)),
    *(f'arm.actuators[0].routes[{k}].angle_deg=30' for k in range(4)),
    *(f'arm.actuators[1].routes[{k}].angle_deg=150' for k in range(4)),
    'recording.markers.p1.offset_m=[0, 0.025, 0]', 'recording.markers.p2.offset_m=[0, -0.021, 0]',
    'recording.markers.p3.offset_m=[0, 0.02, 0]', 'recording.markers.p4.offset_m=[0, 0, 0.008]',
    'recording.mount.z_axis=[0, 1, 0]', 'recording.mount.x_axis=[0, 0, 1]',
)  # fmt: skip
_TENDON_1, _TENDON_2 = Part(_TENTACLE, '0:7'), Part(_TENTACLE, '7:14')
_LEVERS = ('stiffness', 'levers', 'mount')
_AIR = (('linear', 'lag 0.1', 'lag 0.6', 'lag 1.5', 'highest 0.6', 'worked 0.6'),)
_LOCAL = ('local', 'linear')
# Delay and valve constants with which commands predict the measured pressures best: _HALF for the
# first half of jan10, _WHOLE for all of jan10.
_WIDTHS = (0.1, 0.05, 0.2, 0.4)
_HALF = (*((*_LOCAL, 'valve 0.37 0.98', f'stiffened {w}') for w in _WIDTHS), *_AIR)
_WHOLE = (*((*_LOCAL, 'valve 0.29 1.02', f'stiffened {w}') for w in _WIDTHS), *_AIR)

CASES = (
    Case(
        'trunk, second half', 'asl_trunk', (Part(_TRUNK, hold_out='later'),), groups=_PAIRS,
        features=_REMEMBERED,
    ),
    Case(
        'trunk with 100 g, second half', 'asl_trunk', (Part(_LOADED, hold_out='later'),),
        groups=(*_PAIRS, 'compliance'), settings=('tip_load_kg=0.1',),
    ),
    Case(
        'trunk without and with 100 g, second halves', 'asl_trunk',
        (Part(_TRUNK, hold_out='later'), Part(f'{_LOADED}:tip_load_kg=0.1', hold_out='later')),
        groups=(*_PAIRS, 'compliance'), most_rows=1200, written='asl_trunk',
    ),
    # The rig file was identified from the first half; wide priors remove that information.
    Case(
        'trunk, first half from the second', 'asl_trunk', (Part(_TRUNK, '30s:'),),
        (Part(_TRUNK, ':29.5s'),), _PAIRS, prior_factor=20.0,
    ),
    Case(
        'trunk with 100 g, first half from the second', 'asl_trunk', (Part(_LOADED, '30s:'),),
        (Part(_LOADED, ':29.5s'),), (*_PAIRS, 'compliance'), settings=('tip_load_kg=0.1',),
        prior_factor=20.0,
    ),
    Case(
        'trunk, steps from both files', 'asl_trunk',
        (Part(_TRUNK), Part(f'{_LOADED}:tip_load_kg=0.1')), (Part(_STEPS),),
        (*_PAIRS, 'compliance'), most_rows=1200,
    ),
    Case(
        'tentacle, other session', 'tendon_tentacle', (Part(_TENTACLE, '1,3,5,6,8,10,12,13'),),
        (Part(_TENTACLE, '0,2,4,7,9,11'),), _ROD, prior_factor=4.0,
    ),
    Case(
        'tentacle, other session, few groups', 'tendon_tentacle',
        (Part(_TENTACLE, '1,3,5,6,8,10,12,13'),), (Part(_TENTACLE, '0,2,4,7,9,11'),), _FEW,
        written='tendon_tentacle',
    ),
    Case(
        'tentacle, one session from the other', 'tendon_tentacle',
        (Part(_TENTACLE, '0,2,4,7,9,11'),), (Part(_TENTACLE, '1,3,5,6,8,10,12,13'),), _ROD,
        settings=_STATED, prior_factor=4.0,
    ),
    Case(
        'tentacle, tendon 2 from tendon 1', 'tendon_tentacle', (_TENDON_1,), (_TENDON_2,),
        _ROD, settings=_STATED, prior_factor=4.0,
    ),
    Case(
        'tentacle, tendon 2 from tendon 1, few groups', 'tendon_tentacle', (_TENDON_1,),
        (_TENDON_2,), _FEW, settings=_STATED,
    ),
    Case(
        'tentacle, tendon 1 from tendon 2', 'tendon_tentacle', (_TENDON_2,), (_TENDON_1,),
        _ROD, settings=_STATED, prior_factor=4.0,
    ),
    Case(
        'tentacle, tendon 1 from tendon 2, few groups', 'tendon_tentacle', (_TENDON_2,),
        (_TENDON_1,), _FEW, settings=_STATED,
    ),
    Case(
        'tentacle, other session, markers by a window', 'tendon_tentacle',
        (Part(_TENTACLE, '1,3,5,6,8,10,12,13'),), (Part(_TENTACLE, '2,4,9,11'),), _ROD,
        prior_factor=4.0, window=(Part(_TENTACLE, '0,7'),), window_groups=('markers',),
    ),
    Case(
        'module, load1 from noload', 'stiffflop_pneumatic', (Part(f'{_MODULE}noload.csv'),),
        (Part(f'{_MODULE}load1.csv'),), ('curves', 'radii', 'mount', 'markers'), most_rows=60,
    ),
    Case(
        'module, second half of load1 from the rest', 'stiffflop_pneumatic',
        (Part(f'{_MODULE}noload.csv'), Part(f'{_MODULE}load1.csv', hold_out='later')),
        groups=('curves', 'radii', 'compliance', 'softening', 'mount', 'markers'), most_rows=120,
        written='stiffflop_pneumatic',
    ),
    Case(
        'module, first half of load1 from the rest', 'stiffflop_pneumatic',
        (Part(f'{_MODULE}noload.csv'), Part(f'{_MODULE}load1.csv', '446:')),
        (Part(f'{_MODULE}load1.csv', ':436'),),
        ('curves', 'radii', 'compliance', 'softening', 'mount', 'markers'), most_rows=120,
    ),
    Case(
        'planar arm, second halves', 'asu_pneumatic',
        tuple(Part(file, hold_out='later') for file in _ASU), groups=_LEVERS, features=_AIR,
        settings=('recording.delay_s=0.0',),
    ),
    Case(
        'planar arm, same protocol', 'asu_pneumatic', (Part(_ASU[6], hold_out='later'),),
        groups=_LEVERS, features=_HALF, settings=('recording.delay_s=0.36',),
    ),
    Case(
        'planar arm, another day from all others', 'asu_pneumatic',
        tuple(Part(file) for file in _ASU[:7]), (Part(_ASU[7]),),
        groups=_LEVERS, features=_AIR, settings=('recording.delay_s=0.0',),
        written='asu_pneumatic',
    ),
    Case(
        'planar arm, the day before', 'asu_pneumatic', (Part(_ASU[7]),), (Part(_ASU[6]),),
        groups=_LEVERS, features=_WHOLE, settings=('recording.delay_s=0.24',),
    ),
    Case(
        'planar arm, another day', 'asu_pneumatic', (Part(_ASU[6]),), (Part(_ASU[7]),),
        groups=_LEVERS, features=_WHOLE, settings=('recording.delay_s=0.24',),
        written='asu_pneumatic_january',
    ),
)  # fmt: skip


def recordings(rig: Rig, data: Path, parts: Sequence[Part], use: bool) -> list[Recorded]:
    """Return the recordings of parts, for training or, without `use`, only for prediction."""
    found = []
    for part in parts:
        one = read_recordings(rig, [data / part.file], part.hold_out, part.rows)[0]
        found.append(one if use else Recorded(one.whole, one.train[:0], one.train))
    return found


def parameters_of(case: Case, rig: Rig) -> tuple[Parameter, ...] | None:
    """Return the parameters to identify with priors widened by the case, or None if none."""
    if not case.groups:
        return None
    found = chosen(all_parameters(rig), case.groups)
    return tuple(p.wider(case.prior_factor) for p in found)


def learned_of(case: Case, rig: Rig, recorded: Sequence[Recorded], after: Rig) -> Learned:
    """Learn the residual of the identified rig `after`; `rig` is the rig before identification."""

    def again(rows: Sequence[Recorded]) -> Rig:
        return identified(rig, rows, parameters_of(case, rig), case.most_rows).rig

    return learn_best(after, recorded, case.features, case.name, again)


def lines_of(case: Case, data: Path) -> Iterator[str]:
    """Identify a case and yield its lines of the Markdown table."""
    rig = spelled_out(load_rig(RIGS / f'{case.rig}.yaml', case.settings))
    recorded = [
        *recordings(rig, data, case.train, True),
        *recordings(rig, data, case.test, False),
    ]
    after = identified(rig, recorded, parameters_of(case, rig), case.most_rows)
    if case.window:
        few = recordings(rig, data, case.window, True)
        free = chosen(all_parameters(after.rig), case.window_groups)
        after = identified(after.rig, few, free, case.most_rows)
    learned = None
    if case.features:
        learned = learned_of(case, rig, recorded, after.rig)
        if not learned.helps:
            yield f'| {case.name} | learned: no help, {100 * learned.left:.0f} % left | | | |'
            learned = None
    for one in recorded:
        if not len(one.test):
            continue
        for name, errors, low, high in errors_of(rig, after.rig, learned, one, one.test):
            if name == 'identified' and not case.groups:
                continue
            yield (
                f'| {case.name}, {Path(one.whole.source).stem} | {name} | {errors.what} | '
                f'{errors.rms:.2f} ({low:.2f} to {high:.2f}) | {errors.unit} |'
            )


def from_all_rows(case: Case, data: Path) -> tuple[Rig, list[Recorded], Identified]:
    """Identify an arm from all rows of a case; return the original rig, recordings and result."""
    rig = spelled_out(load_rig(RIGS / f'{case.rig}.yaml', case.settings))
    recorded = recordings(rig, data, [Part(file) for file in case.files], True)
    return rig, recorded, identified(rig, recorded, parameters_of(case, rig), case.most_rows)


def write_rigs(case: Case, data: Path, folder: Path) -> list[Path]:
    """Identify an arm from all rows of a case, write its rig file, and return the paths."""
    source = load_rig(RIGS / f'{case.rig}.yaml')
    rig, recorded, after = from_all_rows(case, data)
    settings = values_of(rig, [s.partition('=')[0] for s in case.settings if 'delay' in s])
    values = {**settings, **after.values}
    learned = None
    if case.features:
        learned = learned_of(case, rig, recorded, after.rig)
    files = files_of([Path(file).name for file in case.files])
    return write(
        source, folder / f'{case.written}.yaml', values,
        None if learned is None or not learned.helps else learned.file,
        f'[I] softarm identify, all rows: {files}',
    )  # fmt: skip


def main() -> None:
    """Print the table, or write the rig files."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('data', type=Path)
    parser.add_argument('--only', default='', help='only cases with this prefix of the name')
    parser.add_argument('--write', type=Path, help='folder for rig files from all rows')
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        parser.error(f'{arguments.data}: no such folder; expected that of the recordings')
    if arguments.write is not None and not arguments.write.is_dir():
        parser.error(f'--write {arguments.write}: no such folder; expected one for rig files')
    cases = [case for case in CASES if case.name.startswith(arguments.only)]
    if arguments.write is not None:
        cases = [case for case in cases if case.written is not None]
    if not cases:
        names = ', '.join(
            repr(case.name) for case in CASES if arguments.write is None or case.written
        )
        parser.error(f'--only {arguments.only}: none of {names} begins so')
    if arguments.write is None:
        print('| set | by | what | RMS (95 %) | unit |\n|---|---|---|---|---|')
    for case in cases:
        if not (arguments.data / case.train[0].file).is_file():
            print(f'{case.train[0].file} is not in {arguments.data}')
        elif arguments.write is not None:
            print(*write_rigs(case, arguments.data, arguments.write), flush=True)
        else:
            for line in lines_of(case, arguments.data):
                print(line, flush=True)


if __name__ == '__main__':
    main()
