"""Ctrl-C of a script that is run by `python -m softarm_reproduction.NAME`."""

import os
import signal
import subprocess
import sys

import pytest


@pytest.fixture
def reading(tmp_path):
    """Yield a study that waits for its data, and the end of a pipe from which it reads them."""
    data = tmp_path / 'static_means.csv'
    os.mkfifo(data)
    study = subprocess.Popen(
        [sys.executable, '-m', 'softarm_reproduction.tentacle_study', str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
    )
    with data.open('w') as pipe:  # opens when the study opens its end
        yield study, pipe
    study.communicate()


def test_interrupted_script_says_so_without_a_traceback(reading):
    study, _ = reading
    study.send_signal(signal.SIGINT)
    _, said = study.communicate(timeout=60)
    assert (study.returncode, said) == (-signal.SIGINT, 'interrupted\n')


def test_other_errors_of_a_script_keep_their_traceback(reading):
    study, pipe = reading
    pipe.write('run\n1\n')
    pipe.close()
    _, said = study.communicate(timeout=60)
    assert study.returncode == 1
    assert 'Traceback' in said
    assert 'KeyError' in said
