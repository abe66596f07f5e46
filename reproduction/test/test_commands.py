"""The commands that this package adds to `softarm`."""

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from softarm_reproduction import bench
from softarm_reproduction.bench_rows import BenchRow
from softarm_reproduction.cli import bench_app
from softarm_ros.cli.command_group import ELSEWHERE, PROVIDED

PROJECT = (Path(__file__).parents[1] / 'pyproject.toml').read_text(encoding='utf-8')


def declared():
    """Return the entry points that pyproject.toml declares, by name."""
    _, _, block = PROJECT.partition(f'[project.entry-points."{PROVIDED}"]\n')
    lines = re.findall(r'^(\w+) = "([\w.:]+)"$', block.partition('\n[')[0], re.MULTILINE)
    return {name: EntryPoint(name, value, PROVIDED) for name, value in lines}


def test_declared_commands_are_those_that_softarm_expects_in_this_package():
    package = re.search(r'^name = "(\w+)"$', PROJECT, re.MULTILINE).group(1)
    assert dict.fromkeys(declared(), package) == {
        name: package for name, (package, _) in ELSEWHERE.items()
    }


@pytest.mark.parametrize('name', declared())
def test_every_entry_point_loads_a_command_of_its_name(name):
    command = get_command(declared()[name].load())
    assert command.name == name
    assert command.help


def test_bench_command_runs_the_benchmark_and_prints_its_rows(monkeypatch):
    def measured(topics, repeats):
        assert (topics, repeats) == (['cable_arm'], 5)
        return [BenchRow('a row', 1.0, 5.0, 'x', 3.0)]

    monkeypatch.setattr(bench, 'run_bench', measured)
    result = CliRunner().invoke(bench_app, ['cable_arm', '--repeats', '5'])
    assert result.exit_code == 0
    assert 'a row' in result.stdout and '5.0 x' in result.stdout and 'pass' in result.stdout
