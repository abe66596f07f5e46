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


def test_the_files_that_come_with_it_are_those_of_a_rig_and_its_firmware(names):
    """Nothing of test/ and reproduction/: neither folder is among those that are packed."""
    shared = [name for name in names if name.parts[1:4] == ('data', 'share', PACKAGE)]
    folders = {'config', 'firmware', 'launch', 'package.xml', 'udev', 'urdf'}
    assert {name.parts[4] for name in shared} == folders
    for name in shared:
        assert ROOT.joinpath(*name.parts[4:]).is_file()
    others = {name for name in names if name.parts[1:2] == ('data',)} - set(shared)
    assert {str(name).partition('/data/')[2] for name in others} == {
        f'share/ament_index/resource_index/packages/{PACKAGE}'
    }
