"""`softarm compare`: the error ratio of two runs, refused rigs and trajectories."""

import re
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from softarm_ros.cli.backend_comparison import (
    BackendPair,
    compare_backends,
    comparison_table,
)
from softarm_ros.rigs.errors import RigError
from softarm_ros.runtime.direct import run_direct

SHORT = 'type: line\nstart: [0.06, 0, 0.2]\nend: [0.06, 0.01, 0.2]\nspeed: 0.015\n'


@pytest.fixture(scope='module')
def record(tmp_path_factory):
    from softarm_ros.rigs.loader import load_rig

    path = tmp_path_factory.mktemp('line') / 'line.yaml'
    path.write_text(SHORT)
    return run_direct(load_rig('cable_arm'), str(path))


def text_of(table):
    output = StringIO()
    Console(width=200, file=output).print(table)
    return output.getvalue()


def worse(record, factor):
    """Return the run with its tip errors multiplied by `factor`."""
    samples = record.samples
    moved = {
        name: samples.reference + factor * (getattr(samples, name) - samples.reference)
        for name in ('tip', 'true_tip')
    }
    return replace(record, samples=replace(samples, **moved))


def test_ratio_of_two_runs_is_the_ratio_of_their_mean_errors(record):
    pair = BackendPair('cable_arm', 'line', record, worse(record, 1.5))
    assert pair.ratio == pytest.approx(1.5)
    table = text_of(comparison_table([pair]))
    assert ' 1.50 ' in table and 'cable_arm line' in table
    assert f'{1e3 * record.error().mean:.2f}' in table


def test_a_run_without_measured_tips_has_no_ratio(record):
    lost = replace(record.samples, tip=np.full_like(record.samples.tip, np.nan))
    pair = BackendPair('cable_arm', 'line', record, replace(record, samples=lost))
    assert pair.ratio is None
    assert ' - ' in text_of(comparison_table([pair]))


def test_rigs_without_devices_are_refused(tmp_path):
    from softarm_ros.rigs.loader import load_rig

    shipped = load_rig('trunk').source.read_text(encoding='utf-8')
    bare = tmp_path / 'bare.yaml'
    bare.write_text(re.sub(r'(?ms)^drives:.*?^(?=#|sensors)', '', shipped), encoding='utf-8')
    with pytest.raises(RigError, match="'trunk' declares no devices"):
        compare_backends([str(bare)], (), None, None, 0, Console(quiet=True))


def test_a_trajectory_that_one_of_the_rigs_lacks_is_refused():
    """Earlier, the run of the first rig was lost if the second had no such trajectory."""
    with pytest.raises(RigError, match="unknown trajectory 'sweep'"):
        compare_backends(['pneumatic_arm', 'cable_arm'], (), 'sweep', None, 0, Console(quiet=True))
