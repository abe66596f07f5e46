"""A command whose reader or terminal ends stops in order and keeps its results."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from softarm_ros.cli import run_command
from softarm_ros.cli.consoles import lasting
from softarm_ros.cli.run_command import RunOptions
from softarm_ros.cli.stop_request import StopRequest, stop_on_signals
from softarm_ros.rigs.loader import load_rig

pytestmark = pytest.mark.usefixtures('heard_hangup')

RUN = ['-m', 'softarm_ros.cli', 'run', 'cable_arm_single', '--direct']
PATH = 'type: waypoints\npoints: [[0.005, 0, 0.1228], [0.006, 0, 0.1227]]\nspeed: 0.01\nlaps: 1\n'


def say(stream, text):
    stream.write(text)
    stream.flush()


@pytest.fixture
def unread():
    """Return a text stream into a pipe whose reader has ended."""
    reader, writer = os.pipe()
    os.close(reader)
    stream = os.fdopen(writer, 'w')
    yield stream
    # What it could not write is still in its buffer.
    with pytest.raises(BrokenPipeError):
        stream.close()


def test_output_without_a_reader_asks_the_running_command_to_stop(unread):
    output = lasting(unread)
    with stop_on_signals() as stopped:
        assert not stopped()
        say(output, 'lap 1')
        assert stopped()
        say(output, 'stopping')
    with pytest.raises(BrokenPipeError):
        say(output, 'done')


def test_under_nohup_the_command_goes_on_without_a_reader(unread):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stop_on_signals() as stopped:
        say(lasting(unread), 'lap 1')
        signal.raise_signal(signal.SIGHUP)
        assert not stopped()


def test_a_full_disk_under_the_log_does_not_stop_the_command():
    full = Path('/dev/full').open('w')  # noqa: SIM115, closing it fails
    output = lasting(full)
    with stop_on_signals() as stopped:
        say(output, 'lap 1')
        assert not stopped()
    with pytest.raises(OSError, match='No space left'):
        say(output, 'done')
    with pytest.raises(OSError, match='No space left'):
        full.close()


def test_only_a_second_ctrl_c_interrupts_at_once():
    request = StopRequest()
    request.on_output_ended()
    request(signal.SIGHUP, None)
    request(signal.SIGINT, None)
    request(signal.SIGHUP, None)
    assert request.asked
    with pytest.raises(KeyboardInterrupt):
        request(signal.SIGINT, None)


@pytest.mark.parametrize(
    ('number', 'name'),
    [(signal.SIGINT, 'Ctrl-C'), (signal.SIGTERM, 'SIGTERM'), (signal.SIGHUP, 'SIGHUP')],
)
def test_a_run_that_a_signal_ends_names_it(tmp_path, monkeypatch, number, name):
    direct = run_command._run_direct

    def signalled(*arguments):
        signal.raise_signal(number)
        return direct(*arguments)

    monkeypatch.setattr(run_command, '_run_direct', signalled)
    (tmp_path / 'path.yaml').write_text(PATH)
    options = RunOptions(direct=True, trajectory=str(tmp_path / 'path.yaml'))
    shown = io.StringIO()
    assert run_command.run(load_rig('cable_arm_single'), options, Console(file=shown)) == 130
    assert shown.getvalue().splitlines()[-1] == f'ended by {name}'


def test_ctrl_z_asks_to_stop_where_a_suspended_command_could_not_stop_the_arm():
    with stop_on_signals(signal.SIGTSTP) as stopped:
        signal.raise_signal(signal.SIGTSTP)
        assert stopped()
    with stop_on_signals():
        assert signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL


def test_a_closed_terminal_asks_to_stop_and_handlers_are_restored():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)]
    with stop_on_signals() as stopped:
        signal.raise_signal(signal.SIGHUP)
        assert stopped()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)] == before


def test_a_run_without_a_reader_keeps_its_record(tmp_path):
    file = tmp_path / 'run.json'
    reader, writer = os.pipe()
    os.close(reader)
    (tmp_path / 'path.yaml').write_text(PATH)
    command = [sys.executable, *RUN, '--trajectory', 'path.yaml', '--json', str(file)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path)
    os.close(writer)
    assert done.returncode == 1
    assert done.stderr == b''
    assert json.loads(file.read_text())['completed'] is True


def test_a_summary_that_cannot_be_written_does_not_cost_the_report(tmp_path):
    (tmp_path / 'path.yaml').write_text(PATH)
    command = [sys.executable, *RUN, '--trajectory', 'path.yaml', '--json', '/dev/full']
    done = subprocess.run(
        [*command, '--report', 'report'], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 2
    assert done.stderr == (
        'softarm: --json /dev/full: cannot be written (No space left on device)\n'
    )
    assert (tmp_path / 'report' / 'index.html').is_file()


def test_the_reader_of_a_pipe_gets_the_summary(tmp_path):
    (tmp_path / 'path.yaml').write_text(PATH)
    pipe = tmp_path / 'run.json'
    os.mkfifo(pipe)
    command = [sys.executable, *RUN, '--trajectory', 'path.yaml', '--json', str(pipe)]
    with (
        subprocess.Popen(['cat', str(pipe)], stdout=subprocess.PIPE) as reader,
        subprocess.Popen(command, cwd=tmp_path) as process,
    ):
        try:
            assert json.loads(reader.communicate(timeout=60)[0])['completed'] is True
            assert process.wait(timeout=60) == 0
        finally:
            reader.kill()
            process.kill()


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_results_are_written_comes_too_late_to_lose_them(tmp_path, number):
    (tmp_path / 'path.yaml').write_text(PATH)
    pipe, report = tmp_path / 'run.json', tmp_path / 'report'
    os.mkfifo(pipe)  # the command waits at its first file until it is read
    keeper = os.open(pipe, os.O_RDWR)  # the check before the run does not wait
    command = [sys.executable, *RUN, '--trajectory', 'path.yaml', '--json', str(pipe)]
    command += ['--report', str(report)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        os.read(keeper, 1)
        process.send_signal(number)
        _, complaints = process.communicate(timeout=60)
    os.close(keeper)
    assert complaints == b''
    assert process.returncode == 0
    assert (report / 'index.html').is_file()


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_command_without_traces(tmp_path, number):
    film = tmp_path / 'film.gif'
    command = [sys.executable, '-m', 'softarm_ros.cli', 'render', 'cable_arm_single']
    command += ['--seconds', '600', '--output', str(film)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        while not list(tmp_path.glob('*.part')):
            assert process.poll() is None
            os.sched_yield()
        process.send_signal(number)
        _, complaints = process.communicate(timeout=60)
    assert b'Traceback' not in complaints
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []
