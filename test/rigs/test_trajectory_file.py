import pytest

from softarm_ros.control.trajectory_config import WaypointsConfig
from softarm_ros.rigs import trajectory_file
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.trajectory_file import load_trajectory_file, resolve_trajectory

GOOD = """\
type: waypoints
frame: base
points:
  - [0.1, 0.0, 0.2]
  - [0.0, 0.1, 0.2]
  - [-0.1, 0.0, 0.2]
speed: 0.02
closed: true
laps: 2
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / 'mine.yaml'
    path.write_text(GOOD)
    return path


def test_trajectory_file_is_read(file):
    config = load_trajectory_file(file)
    assert isinstance(config, WaypointsConfig)
    assert config.points == ((0.1, 0.0, 0.2), (0.0, 0.1, 0.2), (-0.1, 0.0, 0.2))
    assert (config.speed, config.closed, config.laps) == (0.02, True, 2)


def test_trajectory_of_the_rig_takes_precedence_over_a_file_of_that_name(
    file, tmp_path, monkeypatch
):
    rig = load_rig('cable_arm')
    assert resolve_trajectory(rig) == rig.trajectories[rig.default_trajectory]
    assert resolve_trajectory(rig, 'line') == rig.trajectories['line']
    assert resolve_trajectory(rig, str(file)).laps == 2
    monkeypatch.chdir(tmp_path)
    file.rename(tmp_path / 'line')
    # The name of the rig's trajectory takes precedence over a file; ./ selects the file.
    assert resolve_trajectory(rig, 'line') == rig.trajectories['line']
    assert resolve_trajectory(rig, './line').laps == 2


def test_shipped_trajectory_file_is_found_by_its_name(file, tmp_path, monkeypatch):
    folder = tmp_path / 'config' / 'trajectories'
    folder.mkdir(parents=True)
    file.rename(folder / 'shipped_one.yaml')
    monkeypatch.setattr(trajectory_file, 'find_share_folder', lambda: tmp_path)
    rig = load_rig('cable_arm')
    assert resolve_trajectory(rig, 'shipped_one').laps == 2
    with pytest.raises(RigError, match=r"did you mean 'shipped_one'"):
        resolve_trajectory(rig, 'shiped_one')


@pytest.mark.parametrize(
    ('old', 'new', 'message'),
    [
        ('[0.0, 0.1, 0.2]', '[0.0, .nan, 0.2]', '5: points[1][1] = nan: expected a number'),
        (
            '[0.0, 0.1, 0.2]',
            '[0.0, 1e200, 0.2]',
            '5: points[1][1] = 1e+200: expected a number >= -100 and <= 100',
        ),
        ('[0.0, 0.1, 0.2]', '[0.0, 0.1]', '5: points[1] = [0.0, 0.1]: expected a list of 3: '),
        ('[0.0, 0.1, 0.2]', '[0.1, 0, 0.2]', '1: points[0] and points[1] are 0 m apart; '),
        ('speed: 0.02', 'speed: -0.02', '7: speed = -0.02: expected a number >= 1e-06'),
        (
            'speed: 0.02',
            'sped: 0.02',
            "7: sped = 0.02: unknown field 'sped' (did you mean 'speed'",
        ),
        ('frame: base', 'frame: world', "2: frame = 'world': expected 'base'"),
        ('laps: 2', 'laps: 0', '9: laps = 0: expected a whole number >= 1 and <= 1000'),
        ('closed: true', 'closed: maybe', "8: closed = 'maybe': expected true or false"),
        ('waypoints', 'waypoint', "1: type = 'waypoint': expected one of 'cardioid', 'circle', "),
        ('waypoints', 'waypoint', "(did you mean 'waypoints'?)"),
        ('type: waypoints\n', '', "1: type: missing; expected one of 'cardioid', 'circle', "),
    ],
)
def test_mistake_in_a_trajectory_file_is_reported_with_its_line(file, old, new, message):
    assert old in GOOD
    file.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(RigError) as error:
        load_trajectory_file(file)
    assert message in str(error.value)
    assert str(error.value).startswith(f'{file}:')
    assert len(error.value.problems) == 1


def test_waypoints_with_one_point_are_refused(file):
    text = GOOD.split('  - ')[0] + '  - [0.1, 0, 0.2]\n'
    file.write_text(text)
    with pytest.raises(RigError, match=r'points = .*expected a list with at least 2 items'):
        load_trajectory_file(file)


def test_all_mistakes_of_a_trajectory_file_are_reported_at_once(file):
    file.write_text(GOOD.replace('speed: 0.02', 'speed: 0').replace('laps: 2', 'lap: 2'))
    with pytest.raises(RigError) as error:
        load_trajectory_file(file)
    assert [p.path for p in error.value.problems] == [('speed',), ('lap',)]
