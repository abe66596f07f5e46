"""Folders of reports: created, or refused in one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from report_cases import (
    circle_record,
)

from softarm_ros.cli.cli_errors import is_user_error
from softarm_ros.cli.report import write_report
from softarm_ros.cli.report_files import FolderError, prepare_folder


def test_folder_is_created_with_its_parents_and_left_empty(tmp_path):
    folder = tmp_path / 'a' / 'b'
    prepare_folder(folder)
    assert list(folder.iterdir()) == []
    prepare_folder(folder)


def bad_folders(tmp_path):
    (tmp_path / 'file').write_text('mine')
    (tmp_path / 'page' / 'index.html').mkdir(parents=True)
    return {
        'file': (tmp_path / 'file', 'a file is in the way'),
        'below a file': (tmp_path / 'file' / 'sub', 'a file is in the way'),
        'page is a folder': (tmp_path / 'page', 'index.html in it is a folder'),
        'too long': (tmp_path / ('x' * 300), 'cannot be created'),
        'null byte': (tmp_path / 'a\0b', 'cannot be created'),
    }


@pytest.mark.parametrize(
    'name', ['file', 'below a file', 'page is a folder', 'too long', 'null byte']
)
def test_bad_folders_are_refused_in_one_line_that_names_them(name, tmp_path):
    folder, reason = bad_folders(tmp_path)[name]
    before = sorted(tmp_path.rglob('*'))
    with pytest.raises(FolderError) as caught:
        prepare_folder(folder)
    assert str(folder) in str(caught.value)
    assert reason in str(caught.value)
    assert '\n' not in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert is_user_error(caught.value)  # the command line shows the message, not a traceback
    assert sorted(tmp_path.rglob('*')) == before
    with pytest.raises(FolderError):
        write_report(circle_record((0.001,)), folder)


@pytest.mark.skipif(not Path('/proc/self').is_dir(), reason='needs a folder nobody may write to')
def test_existing_folder_that_cannot_be_written_is_refused():
    with pytest.raises(FolderError, match='report folder /proc/self: cannot be written'):
        prepare_folder(Path('/proc/self'))


@pytest.mark.skipif(
    not hasattr(os, 'geteuid') or os.geteuid() == 0, reason='the superuser may write anywhere'
)
def test_read_only_folder_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(FolderError, match='cannot be'):
            prepare_folder(tmp_path / 'sub')
        with pytest.raises(FolderError, match='cannot be written'):
            prepare_folder(tmp_path)
    finally:
        tmp_path.chmod(0o700)
