"""What ships: the wheel of softarm_ros holds the package and its files, nothing else."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = 'softarm_ros'
# Not needed to build, or made by earlier builds, whose remains a build in place would pack again.
LEFT_OUT = shutil.ignore_patterns('.*', '__pycache__', 'build', 'install', 'log', '*.egg-info')


@pytest.fixture(scope='module')
def names(tmp_path_factory):
    """Return the paths in the wheel, built from a copy of the repository."""
    # The first that builds wheels without the package of that name.
    pytest.importorskip('setuptools', minversion='70.1')
    folder = tmp_path_factory.mktemp('wheel')
    shutil.copytree(ROOT, folder / 'source', symlinks=True, ignore=LEFT_OUT)
    done = subprocess.run(
        [
            *(sys.executable, '-m', 'pip', 'wheel', '--quiet', '--no-index', '--no-deps'),
            *('--no-build-isolation', '--wheel-dir', str(folder), str(folder / 'source')),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob('*.whl')
    with zipfile.ZipFile(wheel) as file:
        return [PurePosixPath(name) for name in file.namelist()]


def test_one_package_its_files_and_metadata(names):
    roots = {name.parts[0] for name in names}
    assert PACKAGE in roots
    others = {re.sub(r'-[\d.]+\.', '.', root) for root in roots - {PACKAGE}}
    assert others == {f'{PACKAGE}.data', f'{PACKAGE}.dist-info'}


def test_every_module_of_the_package_and_no_other(names):
    ours = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / PACKAGE).rglob('*')
        if path.suffix == '.py' or path.name == 'py.typed'
    }
    assert {str(name) for name in names if name.parts[0] == PACKAGE} == ours
    assert not [name for name in ours if re.search(r'bench_|_study|reproduc', name)]


def test_rigs_launch_files_and_firmware_come_with_it(names):
    shared = {name.parts[4] for name in names if name.parts[1:4] == ('data', 'share', PACKAGE)}
    assert shared == {'config', 'firmware', 'launch', 'package.xml', 'udev', 'urdf'}


def test_neither_tests_nor_the_reproduction(names):
    theirs = {
        path.name
        for folder in ('test', 'reproduction')
        for path in (ROOT / folder).rglob('*')
        if path.is_file() and path.name != '__init__.py' and '__pycache__' not in path.parts
    }
    packed = {name.name for name in names}
    assert 'two_sections.yaml' in theirs  # else nothing is compared
    assert packed & theirs <= {'README.md'}  # that of the firmware
