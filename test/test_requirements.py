"""Missing packages are named with the command that installs them; lists are those of setup.py."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import softarm_ros
from softarm_ros import requirements

ROOT = Path(__file__).parents[1]


def test_versions_are_those_of_setup_py():
    text = (ROOT / 'setup.py').read_text()
    optional = (*requirements.DEVICES.values(), *requirements.SENSING.values())
    for package in (*requirements.CORE.values(), *optional):
        assert f"'{package}'" in text
    assert f"'{requirements.BAG['rosbags']}'" in text
    needed = re.search(r'install_requires=\[(.*?)\n    \]', text, re.DOTALL).group(1)
    assert re.findall(r"^\s+'([^']+)'", needed, re.MULTILINE) == list(requirements.CORE.values())


def test_the_readme_has_the_same_line():
    assert requirements.install_line() in (ROOT / 'README.md').read_text()


@pytest.mark.parametrize('module', ['tracker_node', 'prepare_kernels'])
def test_an_executable_without_a_package_ends_with_one_line(module, tmp_path):
    (tmp_path / 'pydantic.py').write_text("raise ModuleNotFoundError('none', name='pydantic')")
    code = f'import sys; from softarm_ros.nodes.executables import {module} as f; sys.exit(f())'
    done = subprocess.run(
        [sys.executable, '-c', f'import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}'],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.count('\n') == 1
    assert requirements.install_line() in done.stderr or 'ROS 2 is missing' in done.stderr


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(requirements.BAG, 'softarm_no_such_module', 'no-such-package')
    requirements.require(devices=False, bag=False)
    with pytest.raises(
        RuntimeError, match=r"missing: softarm_no_such_module: .*'no-such-package'"
    ):
        requirements.require(devices=False, bag=True)


def test_version_is_the_same_wherever_it_is_stated():
    stated = {
        'setup.py': r"version='([^']+)'",
        'package.xml': r'<version>([^<]+)</version>',
        'softarm_ros/__init__.py': r"__version__ = '([^']+)'",
        'CITATION.cff': r'(?m)^version: (.+)$',
    }
    found = {file: re.search(what, (ROOT / file).read_text())[1] for file, what in stated.items()}
    assert set(found.values()) == {softarm_ros.__version__}, found
