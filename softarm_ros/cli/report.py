"""Report of one run: figures, samples, numbers and one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path

from softarm_ros.cli.report_figures import run_figures
from softarm_ros.cli.report_files import (
    DATA,
    MAX_EVENTS,
    PAGE,
    SUMMARY,
    prepare_folder,
    write_json,
    write_samples,
)
from softarm_ros.cli.report_html import facts, figures, page, paragraph, section, table
from softarm_ros.cli.report_tables import (
    ERROR_COLUMNS,
    control_text,
    error_rows,
    machine_text,
    millimetres,
    missed_text,
    number,
    pair_text,
    tip_text,
)
from softarm_ros.runtime.run_record import RunRecord
from softarm_ros.whole_file import write_text


def write_report(record: RunRecord, folder: Path) -> Path:
    """
    Write samples, numbers, figures and the HTML page of one run; return the path of the page.

    Raises
    ------
    FolderError
        If the folder cannot be used.

    """
    prepare_folder(folder)
    write_samples(record, folder / DATA)
    write_json(record.summary(), folder / SUMMARY)
    drawn = run_figures(record, folder)
    info = record.info
    names = ', '.join([DATA, SUMMARY, *[png.name for _, png in drawn]])
    parts = [
        *_warnings(record),
        section('What was run', facts(_run_facts(record))),
        section(
            'Tip error',
            table(ERROR_COLUMNS, error_rows(record)),
            paragraph(_error_note(record), 'small'),
        ),
        *_machine_parts(record),
        section('Loop timing', facts(_timing_facts(record))),
        section('Events', *_event_parts(record)),
        section('Figures', *figures(drawn)),
        section('Files', paragraph(f'In the same folder as this page: {names}.')),
    ]
    lead = f'{info.model}, {control_text(record)}, backend {info.backend}, seed {info.seed}'
    file = folder / PAGE
    write_text(file, page(f'{info.rig}: {info.motion}', lead, parts))
    return file


def _warnings(record: RunRecord) -> list[str]:
    found = []
    if not record.completed:
        found.append(
            f'Stopped early: the run ended after {number(record.duration_s, 1)} s, before the end '
            'of the trajectory. See the events below.'
        )
    if record.error() is None:
        found.append(
            'No tracking samples: the tip was never measured while the trajectory was tracked, '
            'so there is no tracking error.'
        )
    return [paragraph(text, 'warning') for text in found]


def _run_facts(record: RunRecord) -> list[tuple[str, str]]:
    info = record.info
    speed = 'as fast as possible' if info.rate <= 0.0 else f'{info.rate:g} × real time'
    return [
        ('rig', info.rig),
        ('trajectory', info.motion),
        ('model of the controller', info.model),
        ('control', control_text(record)),
        ('backend', info.backend),
        ('runner', 'one process, without topics' if info.direct else 'ROS 2 nodes and topics'),
        ('speed', speed),
        ('seed', f'{info.seed}{machine_text(record)}'),
        ('arm length', f'{millimetres(info.arm_length_m)} mm'),
        ('actuators', ', '.join(info.actuator_names)),
        ('duration', f'{number(record.duration_s)} s'),
        ('completed', 'yes' if record.completed else 'no, stopped early'),
    ]


def _machine_parts(record: RunRecord) -> list[str]:
    drawn = record.info.drawn
    if not drawn:
        return []
    text = 'Fields of `plant` in which this machine differs from the rig file, as drawn.'
    rows = [(name, f'{value:.6g}') for name, value in drawn.items()]
    return [section('Machine', paragraph(text, 'small'), table(('field', 'drawn'), rows))]


def _error_note(record: RunRecord) -> str:
    error = record.error()
    count = 0 if error is None else error.samples
    return (
        f'Distance between the {tip_text(record)} and the reference at the time of the '
        f'measurement, while tracking: {count} measurements. Arm length '
        f'{millimetres(record.info.arm_length_m)} mm.'
    )


def _timing_facts(record: RunRecord) -> list[tuple[str, str]]:
    t = record.timing
    return [
        ('rate', f'{t.rate_hz:g} Hz'),
        ('missed cycles', missed_text(record)),
        ('pose to command, p50 / p99', pair_text(t.latency_p50_ms, t.latency_p99_ms)),
        ('computation of a cycle, p50 / p99', pair_text(t.compute_p50_ms, t.compute_p99_ms)),
    ]


def _event_parts(record: RunRecord) -> list[str]:
    if not record.events:
        return [paragraph('None.')]
    rows = [(number(e.time_s), e.level, e.source, e.message) for e in record.events[:MAX_EVENTS]]
    parts = [table(('time, s', 'level', 'source', 'message'), rows, text_columns=(0, 1, 2, 3))]
    if len(record.events) > MAX_EVENTS:
        text = f'The first {MAX_EVENTS} of {len(record.events)} events; all are in {SUMMARY}.'
        parts.append(paragraph(text, 'small'))
    return parts
