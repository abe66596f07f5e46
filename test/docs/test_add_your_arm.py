"""Follows docs/add_your_arm.md literally: writes its yaml and runs its commands."""

import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from forked_python import DIRECT, ForkedPython

import softarm_ros
from softarm_ros.cli.measured_run import mount_of
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.loader import load_rig_of

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / 'docs' / 'add_your_arm.md').read_text(encoding='utf-8')
BLOCKS = re.findall(r'^```(\w+)\n(.*?)^```$', PAGE, flags=re.MULTILINE | re.DOTALL)
DATA = Path(os.environ.get('SOFTARM_DATA', REPOSITORY.parent / 'shared' / 'data')).resolve()
NEEDS_DATA = '$SOFTARM_DATA'
# Numbers on the page may differ from printed ones by rounding after many steps.
RELATIVE, ABSOLUTE = 0.02, 0.03


@pytest.fixture(scope='module')
def shell(tmp_path_factory):
    """Return a function that runs one `softarm` command in an empty folder."""
    folder = tmp_path_factory.mktemp('page')
    environment = os.environ | {
        'PYTHONPATH': str(Path(softarm_ros.__file__).parents[1]),
        'SOFTARM_DATA': str(DATA),
        'COLUMNS': '100',
    }
    with ForkedPython(DIRECT, environment, folder, rig='trunk') as python:

        def type_command(command):
            program, *arguments = shlex.split(command.replace(NEEDS_DATA, str(DATA)))
            assert program == 'softarm', command
            done = python.run('-m', 'softarm_ros.cli', *arguments)
            assert done.returncode == 0, f'$ {command}\n{done.stdout}\n{done.stderr}'
            return done.stdout

        type_command.folder = folder
        yield type_command


def write_yaml(folder):
    text = '\n'.join(body for kind, body in BLOCKS if kind == 'yaml')
    (folder / 'trunk.yaml').write_text(text, encoding='utf-8')


def words(line):
    """Return the words of a line, without the borders of a table."""
    return re.sub(r'[^\w\s.,:;()%\'-]', ' ', line).split()


def same(shown, printed):
    try:
        expected, value = float(shown.strip(',;')), float(printed.strip(',;'))
    except ValueError:
        return shown == printed
    return abs(value - expected) <= RELATIVE * abs(expected) + ABSOLUTE


def is_printed(line, output):
    shown = words(line)
    for printed in map(words, output.splitlines()):
        if len(printed) >= len(shown) and all(map(same, shown, printed)):
            return True
    return False


def steps():
    """Yield each shell block with the text shown after it."""
    for k, (kind, body) in enumerate(BLOCKS):
        if kind == 'sh':
            following = BLOCKS[k + 1] if k + 1 < len(BLOCKS) else ('', '')
            yield body.splitlines(), following[1].splitlines() if following[0] == 'text' else []


def follow(shell, commands, shown):
    output = ''.join(shell(command) for command in commands)
    for line in shown:
        assert is_printed(line, output), (
            f'the page shows\n  {line}\nbut this was printed:\n{output}'
        )


def seen_tips(rig, commands):
    """Return section tips (n, sections, 3) [m] in the frame of the rig's recordings."""
    mount = mount_of(rig.recording)
    tips = rig.physics().section_tips_of(commands)[:, :, :3, 3]
    return mount.position + tips @ mount.rotation.T


def test_page_blocks_are_yaml_followed_by_commands_with_output():
    assert {kind for kind, _ in BLOCKS} == {'yaml', 'sh', 'text'}
    assert [kind for kind, _ in BLOCKS].index('sh') > max(
        k for k, (kind, _) in enumerate(BLOCKS) if kind == 'yaml'
    )
    assert all(shown for _, shown in steps()), 'a command without its outcome proves nothing'


def test_is_printed_detects_a_wrong_number_or_label():
    printed = '│ all laps │ 0.92 │ 1.30 │'
    assert is_printed('all laps  0.92  1.30', printed)
    assert not is_printed('all laps  0.92  1.40', printed)
    assert not is_printed('lap 1  0.92  1.30', printed)


@pytest.fixture(scope='module')
def needing_data(shell):
    """Follow the page up to the first command that needs data; return the remaining steps."""
    write_yaml(shell.folder)
    left = list(steps())
    while left and not any(NEEDS_DATA in command for command in left[0][0]):
        follow(shell, *left.pop(0))
    return left


def test_page_can_be_followed_up_to_the_first_command_that_needs_data(needing_data):
    assert needing_data, 'the page never uses a recording'


@pytest.mark.skipif(
    not (DATA / 'asl_trunk').is_dir(),
    reason=f'no recordings of the trunk in {DATA} (set SOFTARM_DATA)',
)
def test_rest_of_the_page_ends_with_the_shipped_trunk_rig(shell, needing_data):
    for commands, shown in needing_data:
        follow(shell, commands, shown)
    # The page ends with the rig file of the package.
    ours = load_rig_of(CableArm, REPOSITORY / 'config' / 'rigs' / 'trunk.yaml')
    theirs = load_rig_of(CableArm, shell.folder / 'identified.yaml')
    # Other pages cover its servos, its cameras and the spreads between machines.
    unidentified = {
        'arm': {'sections', 'actuators'},
        'recording': True,
        'devices': True,
        'sensors': True,
        'plant': {'machine'},
    }
    assert ours.model_dump(exclude=unidentified) == theirs.model_dump(exclude=unidentified)
    # Single gains are determined to within a fifth; their joint predictions must agree.
    largest = 0.6 * ours.actuator_limits().position_max
    commands = np.random.default_rng(0).uniform(-1.0, 1.0, (500, 6)) * largest
    mine, found = (seen_tips(rig, commands) for rig in (ours, theirs))
    # The file was identified with an earlier loss, per coordinate: up to 2.9 mm apart.
    assert np.linalg.norm(mine - found, axis=2).max() < 4e-3
