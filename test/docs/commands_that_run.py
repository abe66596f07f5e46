"""
Runs the commands in the documentation pages: `make commands`, too slow for `make test`.

Every command that needs no device, no ROS graph and no file of the reader runs once. For every
other command this file lists the reason why it does not run.
"""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from test_every_page import COMMANDS, PAGES, calls, shown

from softarm_ros.rigs.rig_files import find_rig

ALONE = {'rigs', 'check', 'parts', 'model', 'urdf', 'rviz', 'workspace', 'render'}
# Why the other commands are not run here, and the test or target that runs them.
ELSEWHERE = {
    'bench': 'make bench',
    'calibrate': 'images of a camera: test/perception/stereo, test/cli/test_calibrate_command.py',
    'compare': 'real time: test/nodes/test_emulated_runs.py',
    'demo': 'make demo, make newcomer',
    'excite': 'writes a file: test/cli/test_excite.py',
    'faults': 'minutes: test/cli/test_faults_command.py',
    'goto': 'a running arm: test/nodes/test_goal_topics.py',
    'identify': 'recordings: test/cli/test_identification.py, test/docs/test_add_your_arm.py',
    'jog': 'devices: test/cli/test_jog_command.py, test/emulation/test_ports_and_jog.py',
    'machines': 'hours with --runs: test/cli/test_machine_table.py; without, it runs here',
    'ports': 'devices: test/emulation/test_ports_and_jog.py',
    'record': 'a running arm: test/nodes/test_recording.py',
    'replay': 'a bag: test/nodes/test_replay.py',
    'reproduce': 'make reproduce',
    'score': 'a bag: test/cli/test_score.py',
    'soak': 'hours: make soak; test/cli/test_soak.py',
    'teleop': 'a running arm: test/nodes/test_goal_topics.py, test/cli/test_teleop.py',
    'view': 'a browser: make browser',
    'run': 'over topics: test/nodes/test_topic_run.py; with --direct it runs here',
}
FILES = {'my_arm.yaml', 'my.yaml'}  # made by the fixture `folder` below
_PLACEHOLDER = re.compile(r'[A-Z]{2,}|\.\.\.|[|$\[<…]')


def gathered():
    """Return the commands to run, and the reasons not to run the others, by line."""
    runs, left = {}, {}
    for page in PAGES:
        for line, words in calls(page):
            if words[0] != 'softarm' or len(words) < 2 or words[1] not in COMMANDS:
                continue
            name = words[1]
            named = ' '.join(words[2:])
            short = '--direct' in words if name == 'run' else '--runs' not in words
            here = name in ALONE or (name in ('run', 'machines') and short)
            if len(words) == 2 and name not in ('rigs', 'parts'):
                left[line] = 'the command is named, not called'
            elif not here:
                left[line] = ELSEWHERE.get(name)
            elif _PLACEHOLDER.search(named):
                left[line] = 'a word of it stands for others'
            elif brings_a_file(words[2:]):
                left[line] = 'a file that the reader brings'
            else:
                runs.setdefault(' '.join(words), (page, words))
    return runs, left


def brings_a_file(words):
    """Return whether the command reads a file or a bag that the reader provides."""
    for before, word in zip(['', *words], words):
        if before in ('--output', '--image', '--json', '--report') or word.startswith('-'):
            continue
        if word.endswith(('.yaml', '.csv', '.bag', '.npz')) and word not in FILES:
            return True
    return '--rig' in words  # of a bag


RUNS, LEFT = gathered()


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Return a folder with the rig files that the pages ask the reader to write."""
    path = tmp_path_factory.mktemp('reader')
    text = find_rig('cable_arm').read_text(encoding='utf-8')
    own = re.sub(r'^name: cable_arm$', 'name: my_arm', text, flags=re.MULTILINE)
    (path / 'my_arm.yaml').write_text(own, encoding='utf-8')
    (path / 'my.yaml').write_text(shown('yaml'), encoding='utf-8')
    return path


def test_every_documented_command_runs_or_has_a_reason_why_not():
    assert [line for line, reason in LEFT.items() if reason is None] == []
    assert {words[1] for _, words in RUNS.values()} >= ALONE - {'urdf', 'rviz'} | {'run'}


def test_tests_named_in_the_reasons_exist():
    root = Path(__file__).parents[2]
    for reason in ELSEWHERE.values():
        for name in re.findall(r'test/[\w/.]+', reason):
            assert (root / name).exists(), name


@pytest.mark.timeout(1200)
@pytest.mark.parametrize('line', RUNS)
def test_documented_command_runs(line, folder):
    page, words = RUNS[line]
    done = subprocess.run(
        [sys.executable, '-m', 'softarm_ros.cli', *words[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, f'{page}: {line}\n{done.stdout}{done.stderr}'
    for before, word in pairwise(words):
        if before in ('--output', '--image', '--json'):
            assert (folder / word).stat().st_size > 0, f'{page}: {line}'
