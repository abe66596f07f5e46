"""Half files and temporary folders of killed processes are removed, others are not."""

import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

import softarm_ros
from softarm_ros.leftovers import mark, temporary_folder
from softarm_ros.whole_file import half_of, whole_file

pytestmark = pytest.mark.skipif(sys.platform != 'linux', reason='process ids are not compared')

AT_WORK = """
import sys
from pathlib import Path
from softarm_ros.leftovers import temporary_folder
from softarm_ros.whole_file import whole_file
with temporary_folder() as folder, whole_file(Path(sys.argv[1])) as part:
    (Path(folder) / 'node.log').touch()
    part.write_text('half')
    print(folder, part, sep='\\n', flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv('TMPDIR', str(tmp_path))
    monkeypatch.setattr(tempfile, 'tempdir', None)


@contextmanager
def at_work(goal):
    """Run a process that writes a file; give the paths of its folder and half file; kill it."""
    command = [sys.executable, '-c', AT_WORK, str(goal)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield [Path(process.stdout.readline().rstrip('\n')) for _ in range(2)]
        finally:
            process.kill()


def test_only_this_module_makes_temporary_folders():
    made = re.compile(r'\b(mkdtemp|TemporaryDirectory)\(')
    package = Path(softarm_ros.__file__).parent
    sources = {path.relative_to(package).as_posix(): path for path in package.rglob('*.py')}
    makers = [name for name, path in sources.items() if made.search(path.read_text())]
    assert makers == ['leftovers.py']


def test_leftovers_of_killed_processes_are_removed_and_no_others(tmp_path):
    goal = tmp_path / 'run [1].json'
    with at_work(goal) as living:
        with at_work(goal) as killed:
            pass
        # Of another boot, computer or container: its process may be alive.
        others = [Path(str(path).replace(mark()[:8], '00000000')) for path in killed]
        others[0].mkdir()
        others[1].touch()
        other_file = half_of(tmp_path / 'another.json')
        other_file.touch()
        assert [path.exists() for path in killed] == [True, True]
        with whole_file(goal) as part, temporary_folder() as folder:
            part.write_text('whole')
            assert [path.exists() for path in killed] == [False, False]
            own = {goal.name, part.name, Path(folder).name}
        assert all(path.exists() for path in (*living, *others, other_file))
        assert {path.name for path in tmp_path.iterdir()} - own == {
            path.name for path in (*living, *others, other_file)
        }
    assert goal.read_text() == 'whole'
