"""A file of results is whole, or the old one is still there."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from softarm_ros.whole_file import NotWrittenError, require_writable, whole_file

# Every write beyond 1 KB fails, as on a full disk.
FULL = """
import resource, sys
from softarm_ros.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
main()
"""


def put(path, text, then=None):
    with whole_file(path) as part:
        part.write_text(text)
        if then is not None:
            raise then


@pytest.mark.parametrize('end', [KeyboardInterrupt, ValueError, SystemExit])
def test_an_interrupted_file_leaves_the_old_one_and_nothing_beside_it(tmp_path, end):
    old = tmp_path / 'result.json'
    old.write_text('old')
    with pytest.raises(end):
        put(old, 'half', end)
    with pytest.raises(end):
        put(tmp_path / 'new.json', 'half', end)
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {'result.json': 'old'}
    put(old, 'whole')
    assert old.read_text() == 'whole'


def test_link_mode_and_long_name_stay(tmp_path):
    goal, link = tmp_path / ('ö' * 127), tmp_path / 'link'
    goal.write_text('old')
    goal.chmod(0o640)
    link.symlink_to(goal.name)
    put(link, 'whole')
    assert link.is_symlink()
    assert goal.read_text() == 'whole'
    assert stat.S_IMODE(goal.stat().st_mode) == 0o640


def test_a_pipe_is_written_directly(tmp_path):
    pipe = tmp_path / 'pipe'
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    put(pipe, 'whole')
    reader.join(timeout=10.0)
    assert read == ['whole']
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_the_error_names_the_file_itself(tmp_path):
    path = tmp_path / 'none' / 'result.json'
    with pytest.raises(NotWrittenError, match=f'^{path}: cannot be written .No such file'):
        put(path, '')
    with pytest.raises(NotWrittenError, match=f'^{path}: cannot be written .No such file'):
        require_writable(path)


def test_the_check_keeps_a_link_to_a_file_that_is_not_there_yet(tmp_path):
    link = tmp_path / 'link'
    link.symlink_to('later')
    require_writable(link)
    assert link.is_symlink()
    assert not link.exists()


@pytest.mark.parametrize(
    ('name', 'command'),
    [
        ('arm.urdf', 'urdf cable_arm_single --output {}'),
        ('film.gif', 'render cable_arm_single --seconds 1 --output {}'),
        ('film.mp4', 'render cable_arm_single --seconds 1 --output {}'),
    ],
)
def test_a_full_disk_is_a_line_that_names_the_file(tmp_path, name, command):
    if name.endswith('.mp4'):
        pytest.importorskip('imageio_ffmpeg')
    old = tmp_path / name
    old.write_text('old')
    arguments = command.format(old).split()
    environment = {**os.environ, 'PYTHONDONTWRITEBYTECODE': '1'}
    run = subprocess.run(
        [sys.executable, '-c', FULL, *arguments],
        env=environment, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert run.returncode == 2, run.stderr
    assert f'{old}: cannot be written' in run.stderr
    assert 'Traceback' not in run.stderr
    assert [p.name for p in Path(tmp_path).iterdir()] == [name]
    assert old.read_text() == 'old'
