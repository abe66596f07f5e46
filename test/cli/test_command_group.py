"""Commands of other packages: listed without an import, called with their arguments."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from softarm_ros.cli import command_group
from softarm_ros.cli.main import app

REPOSITORY = Path(__file__).parents[2]
COMMAND = """
import typer

app = typer.Typer()


@app.command()
def greet(name: str, times: int = 1) -> None:
    \"\"\"Greet.\"\"\"
    if times > 9:
        from softarm_ros.cli.cli_errors import UsageError

        raise UsageError(f'--times {times}: expected at most 9')
    for _ in range(times):
        typer.echo(f'hello {name}')
"""


@pytest.fixture
def call(tmp_path):
    """Return a function that runs `softarm` beside an installed package with commands."""
    (tmp_path / 'greetings.py').write_text(COMMAND)
    metadata = tmp_path / 'greetings-1.0.dist-info'
    metadata.mkdir()
    (metadata / 'METADATA').write_text('Metadata-Version: 2.1\nName: greetings\nVersion: 1.0\n')
    (metadata / 'entry_points.txt').write_text(
        f'[{command_group.PROVIDED}]\ngreet = greetings:app\nrigs = greetings:app\n'
    )
    code = (
        'import sys\n'
        'from softarm_ros.cli.main import app\n'
        'try: app()\n'
        'finally: print("imported" if "greetings" in sys.modules else "not imported")'
    )

    def run(*arguments):
        return subprocess.run(
            [sys.executable, '-c', code, *arguments],
            env={**os.environ, 'PYTHONPATH': f'{REPOSITORY}{os.pathsep}{tmp_path}'},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def test_help_lists_an_outside_command_without_importing_it(call):
    done = call('--help')
    assert done.returncode == 0
    assert 'greet ' in done.stdout and done.stdout.count('From the package greetings.') == 1
    assert done.stdout.endswith('not imported\n')


def test_an_outside_command_receives_its_arguments(call):
    done = call('greet', 'arm', '--times', '2')
    assert (done.returncode, done.stdout) == (0, 'hello arm\nhello arm\nimported\n')
    assert 'Greet.' in call('greet', '--help').stdout


def test_a_user_error_of_an_outside_command_is_one_line(call):
    done = call('greet', 'arm', '--times', '10')
    assert (done.returncode, done.stdout) == (2, 'imported\n')
    assert done.stderr == 'softarm: --times 10: expected at most 9\n'


def test_a_built_in_command_takes_precedence_over_an_outside_one_of_the_same_name(call):
    assert 'List the rigs that come with the package.' in call('--help').stdout
    done = call('rigs')
    assert done.returncode == 0
    assert done.stdout.startswith('cable_arm ') and done.stdout.endswith('not imported\n')


@pytest.mark.parametrize('name', command_group.ELSEWHERE)
def test_a_command_of_a_missing_package_names_the_package_to_install(name, monkeypatch):
    monkeypatch.setattr(importlib.metadata, 'entry_points', lambda group: ())
    result = CliRunner().invoke(app, [name, '--anything'])
    assert (result.exit_code, result.stdout) == (2, '')
    assert result.stderr.startswith(f"softarm: the command '{name}' belongs to the package ")
    assert 'pip install ./reproduction' in result.stderr
    assert result.stderr.count('\n') == 1
