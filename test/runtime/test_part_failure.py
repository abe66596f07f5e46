"""Tracebacks of failures are kept for whoever looks for the cause."""

import tempfile
from pathlib import Path

from softarm_ros.runtime.part_failure import failure_text


def said(name):
    try:
        {}[name]
    except KeyError as error:
        return failure_text(error)


def test_a_failure_that_repeats_keeps_one_traceback_the_last(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    texts = [said('gain'), said('gain'), said('offset')]
    (kept,) = tmp_path.iterdir()
    assert all(text.endswith(f'(traceback: {kept})') for text in texts)
    assert "KeyError: 'offset'" in Path(kept).read_text()
