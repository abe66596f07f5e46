"""Builds of board emulators, from a checkout or an installation, once."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from boards import Host, running
from firmware_made import FIRMWARE, need

from softarm_ros.drivers.messages import Kind
from softarm_ros.emulation import firmware_build
from softarm_ros.emulation.firmware_build import EMULATORS, FirmwareBuildError, built

REPOSITORY = FIRMWARE.parent
COMPILERS = {'simavr': ('avr-gcc', 'simavr'), 'qemu': ('arm-none-eabi-gcc', 'qemu-system-arm')}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    need('make', 'cc')
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    return tmp_path / 'cache' / 'softarm_ros' / 'firmware'


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """Return a copy of the firmware that a test may change."""
    shutil.copytree(FIRMWARE, tmp_path / 'share' / 'firmware')
    monkeypatch.setattr(firmware_build, 'share_folder', lambda _: tmp_path / 'share')
    return tmp_path / 'share' / 'firmware'


def only(tmp_path, *programs):
    """Return a PATH that has these programs and those that make calls."""
    folder = tmp_path / 'programs'
    folder.mkdir()
    for program in (*programs, 'sh', 'mkdir', 'ld', 'as', 'rm', 'cp'):
        (folder / program).symlink_to(shutil.which(program))
    return str(folder)


@pytest.mark.parametrize('board', ['steppers', 'valves'])
@pytest.mark.parametrize('own', [False, True], ids=['native', 'own'])
def test_built_emulator_runs_its_board(board, own, cache, tmp_path):
    emulator = EMULATORS[board] if own else 'native'
    need(*COMPILERS.get(emulator, ()))
    found = built(board, emulator)
    assert found.emulator == emulator
    assert (found.elf is not None) == own
    command = [found.runner, *(['--elf', found.elf] if own else ['--kind', board])]
    with running(tmp_path, *command) as (port, _):
        host = Host(port, 250000 if board == 'steppers' else 115200)
        assert host.hello().kind is Kind[board.upper()]
        host.close()
    kept = {path for path in cache.rglob('*') if path.is_file()}
    assert kept == {found.runner} | ({found.elf} if own else set())


def test_emulator_is_rebuilt_only_if_its_sources_change(cache, sources):
    first = built('valves', 'native')
    built_at = first.runner.stat().st_mtime_ns
    assert built('steppers', 'native').runner == first.runner
    assert first.runner.stat().st_mtime_ns == built_at
    with (sources / 'core' / 'link.c').open('a') as file:
        file.write('/* another firmware */\n')
    second = built('valves', 'native')
    assert second.runner != first.runner
    assert second.runner.is_file()


def test_concurrent_builds_share_one_result(cache):
    code = 'from softarm_ros.emulation.firmware_build import *; print(built("valves", "native"))'
    processes = [
        subprocess.Popen(
            [sys.executable, '-c', code], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = {process.communicate(timeout=120)[0] for process in processes}
    assert [process.returncode for process in processes] == [0] * 2
    assert len(said) == 1
    assert str(next(cache.iterdir()) / 'native_runner') in said.pop()
    assert len(list(cache.iterdir())) == 1, 'no unfinished build is left'


@pytest.mark.parametrize(
    ('board', 'package'), [('steppers', 'gcc-avr'), ('valves', 'gcc-arm-none-eabi')]
)
def test_native_core_is_used_without_a_cross_compiler(
    board, package, cache, tmp_path, monkeypatch
):
    monkeypatch.setenv('PATH', only(tmp_path, 'make', 'cc'))
    found = built(board)
    assert (found.emulator, found.elf) == ('native', None)
    assert package in found.why
    with pytest.raises(FirmwareBuildError, match=f'apt-get install.* {package}'):
        built(board, EMULATORS[board])


def test_missing_c_compiler_is_reported_with_the_packages_to_install(cache, tmp_path, monkeypatch):
    monkeypatch.setenv('PATH', only(tmp_path, 'make'))
    with pytest.raises(FirmwareBuildError, match=r'apt-get install .*gcc libc6-dev'):
        built('valves')
    assert not cache.exists()


def test_compiler_error_is_shown_and_nothing_is_kept(cache, sources):
    (sources / 'emulation' / 'native_runner.c').write_text('int main(void) { return nothing; }\n')
    with pytest.raises(FirmwareBuildError, match=r'nothing.*undeclared'):
        built('valves', 'native')
    assert list(cache.iterdir()) == []


def test_native_core_is_used_if_the_board_binary_does_not_build(cache, sources):
    need(*COMPILERS['qemu'])
    (sources / 'valves' / 'main.c').write_text('#error broken\n')
    found = built('valves')
    assert found.emulator == 'native'
    assert 'error broken' in found.why


@pytest.mark.parametrize(('board', 'emulator'), [('pumps', 'auto'), ('valves', 'simavr')])
def test_unknown_board_or_emulator_is_refused_with_the_known_ones(board, emulator):
    with pytest.raises(ValueError, match=r'pumps.*steppers, valves|simavr.*auto, qemu or native'):
        built(board, emulator)


def test_installed_files_suffice_for_a_build(cache, tmp_path, monkeypatch):
    """Builds from the files that setup.py lists, laid out as by pip and colcon, read-only."""
    code = (
        'from setuptools import setup; import setuptools, json\n'
        'setuptools.setup = lambda **fields: print(json.dumps(fields["data_files"]))\n'
        'exec(compile(open("setup.py").read(), "setup.py", "exec"))'
    )
    listed = subprocess.run(
        [sys.executable, '-c', f'__file__ = "setup.py"\n{code}'],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    for folder, files in json.loads(listed.stdout):
        if folder.startswith('share/softarm_ros/firmware'):
            (tmp_path / folder).mkdir(parents=True)
            for file in files:
                shutil.copy(REPOSITORY / file, tmp_path / folder)
    share = tmp_path / 'share' / 'softarm_ros'
    for folder, _, _ in os.walk(share):
        Path(folder).chmod(0o555)
    monkeypatch.setattr(firmware_build, 'share_folder', lambda _: share)
    for board, emulator in (('steppers', 'simavr'), ('valves', 'qemu')):
        available = all(shutil.which(program) for program in COMPILERS[emulator])
        assert built(board, emulator if available else 'native').runner.is_file()
    core = share / 'firmware' / 'steppers' / 'src' / 'core'
    assert {p.name for p in core.iterdir()} == {p.name for p in (FIRMWARE / 'core').iterdir()}
