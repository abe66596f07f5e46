"""Basic commands, in this process and as a child process."""

import ctypes
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
from importlib import import_module
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.main import get_command
from typer.testing import CliRunner

import softarm_ros
from softarm_ros.cli import cli_errors, commands
from softarm_ros.cli.check_calibrations import unseen_at_rest
from softarm_ros.cli.check_command import summary, warnings
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.commands import SUMMARIES
from softarm_ros.cli.main import app
from softarm_ros.cli.run_command import compile_kernels
from softarm_ros.cli.text_output import write_file
from softarm_ros.control.reach import check_reach
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.rigs.rig_files import find_rig
from softarm_ros.rigs.urdf import build_urdf
from softarm_ros.runtime.assembly import (
    build_pretension,
    build_tracker,
    build_trajectory,
    describe_reach,
)

REPOSITORY = Path(__file__).parents[2]
RIG = REPOSITORY / 'test' / 'rigs' / 'two_sections.yaml'
ANSI = re.compile(r'\x1b\[[0-9;]*m')


def softarm(*arguments):
    """Run a command in this process; return (exit status, stdout, stderr)."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, ANSI.sub('', result.stdout), ANSI.sub('', result.stderr)


def process(*arguments, cwd=REPOSITORY, **changed):
    environment = {**os.environ, 'PYTHONPATH': str(REPOSITORY), **changed}
    return subprocess.run(
        [sys.executable, '-m', 'softarm_ros.cli', *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def numbers_after(label, text):
    line = next(line for line in text.splitlines() if line.startswith(label))
    return [float(x) for x in re.findall(r'-?\d+\.\d+', line)]


# -- help, version, usage ---------------------------------------------------------------------


def test_version_option_prints_the_package_version():
    assert softarm('--version') == (0, f'softarm_ros {softarm_ros.__version__}\n', '')


def test_help_lists_every_command_with_its_summary():
    status, out, _ = softarm('--help')
    assert status == 0
    for name in SUMMARIES:
        assert re.search(rf'^.?\s*{name}\s+\S+', out, re.MULTILINE), name
    assert 'softarm rigs' in out and 'softarm check my_arm.yaml' in out


def test_every_command_module_is_listed_in_summaries():
    folder = Path(commands.__file__).parent
    modules = {path.stem for path in folder.glob('*.py')} - {'__init__'}
    assert modules == set(SUMMARIES)


@pytest.mark.parametrize('name', SUMMARIES)
def test_summaries_match_the_commands_and_brackets_in_help_are_escaped(name):
    command = get_command(import_module(f'{commands.__name__}.{name}').app)
    assert command.name == name
    assert command.help.partition('\n')[0] == SUMMARIES[name]
    # An unescaped bracket is markup; its content is not shown.
    assert not any(re.search(r'(?<!\\)\[', p.help or '') for p in command.params)


@pytest.mark.parametrize('name', SUMMARIES)
def test_help_of_every_command_ends_with_an_example_of_it(name):
    assert re.search(rf'Examples?:\s+softarm\s+{name}\b', softarm(name, '--help')[1])


def test_a_misspelt_command_gets_a_suggestion():
    _, _, err = softarm('rgis')
    assert "Did you mean 'rigs'" in err


# Without pydantic: typer itself imports it for the parameters of a command.
HEAVY = ('matplotlib', 'numba', 'numpy', 'rclpy', 'scipy', 'softarm_reproduction')
HEAVY += ('softarm_ros.rigs', 'softarm_ros.cli.run_command')


@pytest.mark.parametrize('arguments', [['--help'], ['--version'], ['run', '--help']])
def test_help_imports_no_heavy_modules_and_no_other_command(arguments):
    code = (
        'import sys\n'
        'from softarm_ros.cli.main import app\n'
        f'try: app({arguments!r})\n'
        'except SystemExit: pass\n'
        'ours = [m for m in sys.modules if m.startswith("softarm_ros.cli.commands.")]\n'
        f'print(ours, [m for m in {HEAVY} if m in sys.modules])'
    )
    done = subprocess.run(
        [sys.executable, '-c', code],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    last = done.stdout.splitlines()[-1]
    ours = [f'softarm_ros.cli.commands.{name}' for name in arguments if name in SUMMARIES]
    assert last == f'{ours} []'


def test_ctrl_c_while_the_command_line_is_imported_prints_nothing():
    code = (
        'import os, signal, sys\n'
        'class Interrupt:\n'
        '    def find_spec(self, name, *_):\n'
        '        if name == "typer": os.kill(os.getpid(), signal.SIGINT)\n'
        'sys.meta_path.insert(0, Interrupt())\n'
        'from softarm_ros.cli.__main__ import main\n'
        'main()'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], cwd=REPOSITORY, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, '', '')


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize('interrupted', [True, False])
def test_an_interrupt_that_a_compiled_module_replaces_prints_nothing(number, interrupted):
    kill = f'os.kill(os.getpid(), {int(number)})' if interrupted else 'pass'
    code = (
        'import os, sys\n'
        'class Compiled:\n'
        '    def find_spec(self, name, *_):\n'
        '        if name != "softarm_ros.cli.commands.rigs": return\n'
        f'        try: {kill}\n'
        '        except KeyboardInterrupt: pass\n'
        '        raise ImportError("initialization failed")\n'
        'sys.meta_path.insert(0, Compiled())\n'
        'from softarm_ros.cli.__main__ import main\n'
        'sys.argv = ["softarm", "rigs"]\n'
        'main()'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], cwd=REPOSITORY, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == ''
    if interrupted:
        assert (done.returncode, done.stderr) == (130, '')
    else:
        assert done.returncode == 1 and 'initialization failed' in done.stderr


def test_a_run_without_report_does_not_import_matplotlib(tmp_path):
    code = (
        'import sys\n'
        'from softarm_ros.cli.main import app\n'
        'try: app(["run", "cable_arm_single", "--direct", "--json", sys.argv[1]])\n'
        'except SystemExit as end: print(end.code)\n'
        'print("softarm_ros.cli.run_command" in sys.modules, "matplotlib" in sys.modules)'
    )
    done = subprocess.run(
        [sys.executable, '-c', code, str(tmp_path / 'no' / 'run.json')],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert 'cannot be written' in done.stderr
    assert done.stdout.split() == ['2', 'True', 'False']


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['frobnicate'], "No such command 'frobnicate'"),
        (['check'], 'Missing argument'),
        (['model', 'cable_arm', 'sideways'], 'sideways'),
        (['urdf', 'cable_arm', '--links', '0'], '--links'),
        (['urdf', 'cable_arm', '--lniks', '3'], '--lniks'),
    ],
)
def test_wrong_usage_exits_with_status_2(arguments, message):
    status, out, err = softarm(*arguments)
    assert (status, out) == (2, '')
    assert message in err


# -- rigs and check ---------------------------------------------------------------------------


def test_rigs_lists_every_rig_with_its_description():
    status, out, _ = softarm('rigs')
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == [r.name for r in list_rigs()]
    for line, info in zip(out.splitlines(), list_rigs()):
        assert line.endswith(info.description)


def test_check_accepts_valid_rigs_by_name_and_by_file():
    status, out, err = softarm('check', 'cable_arm_single', RIG)
    assert (status, err) == (0, '')
    assert 'OK cable_arm_single: cable_arm_single' in out
    assert f'OK {RIG}: cable_arm' in out
    assert '246.0 mm at rest' in out and '123.0 mm at rest' in out
    assert '6: proximal_1, proximal_2, proximal_3, distal_1, distal_2, distal_3' in out
    assert 'control 100 Hz, feedback 100 Hz' in out


@pytest.mark.parametrize('info', list_rigs(), ids=lambda info: info.name)
def test_trajectories_of_the_shipped_rigs_are_within_reach(info):
    """Checks fewer points than `softarm check`, which takes seconds per rig."""
    rig = load_rig(info.name)
    tracker = build_tracker(rig, rig.model())
    for name in rig.trajectories:
        path = build_trajectory(rig, name).path
        reach = check_reach(tracker.model, tracker.room, tracker.configuration_limits, path, 48)
        assert describe_reach(reach) is None, name


def test_check_shows_its_progress_along_each_trajectory():
    rig, shown = load_rig('cable_arm_single', ['controller.rate_hz=99']), []  # not cached
    list(warnings(rig, lambda what, done: shown.append((what, done))))
    for name in rig.trajectories:
        shares = [done for what, done in shown if what == f'trajectory {name}']
        assert shares == [i / 120 for i in range(1, 121)]


def test_check_prints_the_reach_of_the_geometry():
    """One section: the tip is farthest from the axis where d/dtheta of its radius vanishes."""
    section = load_rig('cable_arm_single').arm.sections[0]
    theta = np.radians(np.linspace(0.01, section.max_bending_angle_deg, 20000))
    h = section.endcap_length_m
    radius = section.length_m * (1.0 - np.cos(theta)) / theta + h * np.sin(theta)
    height = section.length_m * np.sin(theta) / theta + h * (1.0 + np.cos(theta))
    _, out, _ = softarm('check', 'cable_arm_single')
    reach = re.search(r'up to ([\d.]+) mm from the axis, z (-?[\d.]+) to ([\d.]+) mm', out)
    assert float(reach[1]) == pytest.approx(1e3 * radius.max(), abs=0.06)
    assert float(reach[2]) == pytest.approx(1e3 * height.min(), abs=0.06)
    assert float(reach[3]) == pytest.approx(123.0, abs=0.06)


def test_check_reports_all_problems_of_all_files(tmp_path):
    bad = tmp_path / 'bad.yaml'
    text = RIG.read_text().replace('length_m: 0.093 ', 'lenght_m: -0.093 ')
    bad.write_text(text.replace('default_trajectory: circle', 'default_trajectory: cirle'))
    missing = tmp_path / 'missing.yaml'
    status, out, err = softarm('check', bad, 'cable_arm_single', missing)
    assert status == 1
    assert 'OK cable_arm_single' in out
    line = 1 + text[: text.index('lenght_m')].count('\n')
    assert (
        f"{bad}:{line}: arm.sections[0].lenght_m = -0.093: unknown field 'lenght_m' "
        "(did you mean 'length_m'?)\n" in err
    )
    assert "default_trajectory = 'cirle': no such trajectory (did you mean 'circle'?)" in err
    assert f'FAILED {bad}: 2 problems' in err
    assert f'{missing}: no such file\nFAILED {missing}: 1 problem\n' in err


def test_check_warns_of_a_trajectory_out_of_reach(tmp_path):
    path = tmp_path / 'far.yaml'
    path.write_text(RIG.read_text().replace('radius: 0.1363', 'radius: 0.3'))
    status, out, _ = softarm('check', path)
    assert status == 0
    assert "warning: trajectory 'circle': 120 of 120 points of the path are out of reach" in out


def test_check_fails_if_the_model_refuses_the_arm_at_rest(tmp_path):
    # The arm stands, and its cables are slack.
    text = RIG.read_text().replace('[0.0, 0.0, 9.81]', '[0.0, 0.0, -9.81]')
    heavy = 'length_m: 0.093\n      body_mass_kg: 0.3\n      axial_stiffness_N: 690.0'
    path = tmp_path / 'standing.yaml'
    path.write_text(
        text.replace('length_m: 0.093 ', f'{heavy} ', 1).replace(
            'model: cable_statics', 'model: cosserat'
        )
    )
    status, out, err = softarm('check', path, 'cable_arm_single')
    assert status == 1
    assert "model = 'cosserat': the arm does not stand at rest: " in err
    assert f'FAILED {path}: 1 problem' in err
    assert f'OK {path}' not in out
    assert 'OK cable_arm_single' in out


def test_check_warns_that_a_heavy_arm_has_two_rest_positions():
    heavy = [f'arm.sections[{k}].body_mass_kg=0.058' for k in (0, 1)]
    line = next(warnings(load_rig('cable_arm', ['model=heavy_cable_statics', *heavy])))
    assert line.startswith('model heavy_cable_statics refuses ') and ' of 200 random ' in line
    assert line.endswith(
        'the arm may fall to either side: under 1.14 N of weight and load it has two rests'
    )


def test_check_warns_that_a_heavy_arm_falls_aside_at_rest():
    heavy = [f'arm.sections[{k}].body_mass_kg=0.3' for k in (0, 1)]
    standing = ['gravity_m_s2=[0.0, 0.0, -9.81]', 'model=heavy_cable_statics', *heavy]
    line = next(warnings(load_rig('cable_arm', standing)))
    assert line.startswith(
        'model heavy_cable_statics refuses the arm at rest, so no run can start'
    )
    assert line.endswith('the arm falls aside under 5.89 N of weight and load')


def test_check_warns_of_pairs_that_hardly_bend_a_section_across():
    rig = load_rig('trunk')
    arm = rig.arm.model_copy(
        update={
            'actuators': tuple(
                a.model_copy(update={'bends': (), 'angle_deg': 2.0 * (k % 2)})
                for k, a in enumerate(rig.arm.actuators)
            )
        }
    )
    assert list(islice(warnings(rig.model_copy(update={'arm': arm})), 3)) == [
        f'section {name!r}: cables at 0, 2 deg hardly control the bend towards 91 deg: their '
        'lever there is 1.7 % of that across; expected at least 10 %'
        for name in rig.section_names
    ]


def test_check_warns_of_a_calibration_file_that_was_not_copied_with_its_rig(tmp_path):
    share = find_rig('pneumatic_arm').parents[1]
    rig = tmp_path / 'rigs' / 'my_arm.yaml'
    rig.parent.mkdir()
    shutil.copy(share / 'rigs' / 'pneumatic_arm.yaml', rig)
    assert next(warnings(load_rig(rig))).startswith(
        "sensors.stereo_cameras.base_calibration = '../cameras/pneumatic_arm.yaml': no such file"
    )
    shutil.copytree(share / 'cameras', tmp_path / 'cameras')
    assert not any('base_calibration' in line for line in islice(warnings(load_rig(rig)), 1))


@pytest.mark.parametrize(
    ('name', 'field', 'what'),
    [
        ('hydraulic_arm', 'stereo_cameras', 'not a calibration file: expected format:'),
        ('pam_arm', 'em_tracker', 'expected version: 1, X_sensor_base'),
    ],
)
def test_check_warns_of_a_calibration_file_that_its_sensor_refuses(tmp_path, name, field, what):
    file = tmp_path / 'wrong.yaml'
    file.write_text('[1.0, 2.0]')
    rig = load_rig(name, [f'sensors.{field}.base_calibration={file}'])
    warning = next(warnings(rig))
    assert warning.startswith(f'sensors.{field}.base_calibration: the sensor does not start')
    assert str(file) in warning
    assert what in warning


@pytest.mark.parametrize(
    ('right', 'wrong', 'where'),
    [
        # The base behind the cameras, and the centre of the left lens in another unit.
        ('0.5050410893605303]', '-0.5050410893605303]', 'behind it, or beyond the range of its'),
        ('399.5]', '3595.5]', 'outside its image (800 x 600 px, lens centre at 3596, 300)'),
    ],
)
def test_check_warns_of_cameras_that_cannot_see_the_arm_at_rest(tmp_path, right, wrong, where):
    text = (find_rig('pneumatic_arm').parents[1] / 'cameras' / 'pneumatic_arm.yaml').read_text()
    file = tmp_path / 'edited.yaml'
    file.write_text(text.replace(right, wrong, 1))
    rig = load_rig('pneumatic_arm', [f'sensors.stereo_cameras.base_calibration={file}'])
    warning = next(warnings(rig))
    assert warning.startswith(
        'sensors.stereo_cameras.base_calibration: by this file the left camera does not see '
    )
    assert where in warning


@pytest.mark.parametrize(
    ('name', 'settings'),
    [
        ('hydraulic_arm', []),
        ('pneumatic_arm', []),
        (
            'pneumatic_arm',
            [
                'medium=water',
                'sensors.stereo_cameras.base_calibration=../cameras/pneumatic_arm_water.yaml',
            ],
        ),
    ],
)
def test_shipped_cameras_see_their_arm_at_rest(name, settings):
    assert not list(unseen_at_rest(load_rig(name, settings)))


# -- model ------------------------------------------------------------------------------------


def test_model_forward_prints_tip_and_bends_of_the_model():
    status, out, _ = softarm('model', 'cable_arm_single', 'forward', '--actuation', '12,-6,-6')
    assert status == 0
    shape = load_rig('cable_arm_single').model().forward(np.array([0.012, -0.006, -0.006]))
    np.testing.assert_allclose(numbers_after('tip  ', out), 1e3 * shape.tip[:3, 3], atol=1e-4)
    np.testing.assert_allclose(numbers_after('actuation', out), [12.0, -6.0, -6.0])
    theta, phi = numbers_after('proximal', out)
    assert theta == pytest.approx(np.degrees(np.linalg.norm(shape.configuration)), abs=1e-3)
    assert phi == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize('name', ['constant_curvature', 'cable_statics'])
def test_model_inverse_then_forward_returns_to_the_position(name):
    target = '-0.08,0.02,0.20'
    status, out, _ = softarm(
        'model', 'cable_arm', 'inverse', '--position-m', target, '--model', name
    )
    assert status == 0 and out.startswith(f'model         {name}\n')
    assert numbers_after('residual', out)[0] < 1e-3
    contraction = ','.join(str(c) for c in numbers_after('actuation', out))
    status, out, _ = softarm(
        'model', 'cable_arm', 'forward', '--actuation', contraction, '--model', name
    )
    assert status == 0
    np.testing.assert_allclose(numbers_after('tip  ', out), [-80.0, 20.0, 200.0], atol=5e-3)


def test_model_prints_no_negative_zero():
    for target in ('0,0.09,0.2', '-0.09,0,0.2'):
        status, out, _ = softarm('model', 'cable_arm', 'inverse', f'--position-m={target}')
        assert status == 0
        assert not re.search(r'-0\.0+\b', out), out


def test_model_inverse_out_of_reach_exits_with_status_1_and_prints_the_residual():
    status, out, err = softarm('model', 'cable_arm', 'inverse', '--position-m', '0,0,0.3')
    assert status == 1
    assert 'not reached: 54.0' in err
    np.testing.assert_allclose(numbers_after('residual', out), [54.0], atol=0.01)


def test_model_inverse_beyond_the_actuators_names_the_actuator_and_its_limits(tmp_path):
    path = tmp_path / 'short.yaml'
    path.write_text(RIG.read_text().replace('position_max_m: 0.055', 'position_max_m: 0.005'))
    status, _, err = softarm('model', path, 'inverse', '--position-m', '0.14,0,0.17')
    assert status == 1
    assert re.search(r'beyond the actuators: \w+_\d = 0\.\d+ m outside \[-0\.045, 0\.005\] m', err)


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['nope', 'forward'], "unknown rig 'nope'; known: 'cable_arm'"),
        (['cable_arm', 'forward'], 'forward needs --actuation; see softarm model --help'),
        (['cable_arm', 'inverse'], 'inverse needs --position-m; see softarm model --help'),
        (
            ['cable_arm', 'forward', '--actuation', '1,2'],
            "--actuation '1,2': 2 numbers; expected 6 values in mm: proximal_1, ",
        ),
        (
            ['cable_arm_single', 'forward', '--actuation', '1,x,2'],
            "--actuation '1,x,2': 'x' is not a number; expected 3 values in mm",
        ),
        (
            ['cable_arm_single', 'forward', '--actuation', '1,nan,2'],
            "'nan' is not finite",
        ),
        (
            ['cable_arm_single', 'forward', '--actuation', '1,1_0,2'],
            "'1_0' is not a number",
        ),
        (
            ['cable_arm_single', 'forward', '--actuation', '0,-60,0'],
            'cable_2 = -0.06 m outside [-0.045, 0.055] m',
        ),
        (
            ['cable_arm_single', 'forward', '--actuation', '9,9,9'],
            'cables are pulled in against each other',
        ),
        (
            ['cable_arm', 'inverse', '--position-m', '0.1,0.2'],
            "--position-m '0.1,0.2': 2 numbers; expected x,y,z in m, base frame",
        ),
        (
            ['cable_arm', 'inverse', '--position-m', '0,0,0.2', '--model', 'cable'],
            "unknown model 'cable'",
        ),
        (
            ['cable_arm', 'inverse', '--position-m', '0,0,0.2', '--actuation', '0,0,0,0,0,0'],
            '--actuation 0,0,0,0,0,0: inverse does not use it; see softarm model --help',
        ),
        (
            ['cable_arm', 'forward', '--actuation', '0,0,0,0,0,0', '--position-m', '0,0,0.2'],
            '--position-m 0,0,0.2: forward does not use it',
        ),
    ],
)
def test_model_refuses_bad_input_with_one_line_and_status_2(arguments, message):
    status, out, err = softarm('model', *arguments)
    assert (status, out) == (2, '')
    assert err.startswith('softarm: ') and len(err.splitlines()) == 1
    assert message in err


# -- urdf -------------------------------------------------------------------------------------


def test_urdf_is_written_to_stdout_or_to_a_file(tmp_path):
    expected = build_urdf(load_rig('cable_arm_single'), 4)
    assert softarm('urdf', 'cable_arm_single', '--links', '4') == (0, expected, '')
    path = tmp_path / 'arm.urdf'
    assert softarm('urdf', 'cable_arm_single', '--links', '4', '--output', path) == (0, '', '')
    assert path.read_text() == expected


def test_urdf_to_an_unwritable_file_is_refused(tmp_path):
    status, out, err = softarm('urdf', 'cable_arm', '--output', tmp_path / 'no' / 'arm.urdf')
    assert (status, out) == (2, '')
    assert re.fullmatch(
        r'softarm: --output .*arm\.urdf: cannot be written \(No such file.*\)\n', err
    )


# -- errors -----------------------------------------------------------------------------------


def test_listed_user_errors_exist():
    """The names are text; a renamed class must not silently become a traceback."""
    import importlib

    for name in sorted(cli_errors.USER_ERRORS):
        module, _, cls = name.rpartition('.')
        if module.startswith('softarm_ros.nodes'):
            pytest.importorskip('rosbags')
        assert issubclass(getattr(importlib.import_module(module), cls), Exception)


def test_user_errors_print_no_traceback():
    done = process('check', 'no_such_rig.yaml')
    assert (done.returncode, done.stdout) == (1, '')
    assert done.stderr == 'no_such_rig.yaml: no such file\nFAILED no_such_rig.yaml: 1 problem\n'
    done = process('urdf', 'cabel_arm')
    assert (done.returncode, done.stdout) == (2, '')
    assert done.stderr.startswith("softarm: unknown rig 'cabel_arm' (did you mean 'cable_arm'?)")
    assert 'Traceback' not in done.stderr


@pytest.mark.skipif(not Path('/dev/full').exists(), reason='no /dev/full')
def test_stdout_on_a_full_disk_gives_one_message():
    with Path('/dev/full').open('w') as full:
        done = subprocess.run(
            [sys.executable, '-m', 'softarm_ros.cli', 'rigs'],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    expected = 'softarm: the output: cannot be written (No space left on device)\n'
    assert (done.returncode, done.stderr) == (1, expected)


@pytest.mark.parametrize(
    'arguments',
    [
        ['calibrate', 'board', '--columns=9', '--rows=6', '--square-mm=20', '--output'],
        ['faults', 'cable_arm_single', '--json'],
        ['picture', 'cable_arm', '--output'],
        ['render', 'cable_arm', '--output'],
        ['workspace', 'cable_arm', '--image'],
    ],
)
def test_an_unwritable_output_file_is_refused_with_one_line(arguments, tmp_path):
    path = tmp_path / 'none' / 'board.png'
    done = CliRunner().invoke(app, [*arguments, str(path)])
    assert done.exit_code == 2
    assert done.output == f'softarm: {path}: cannot be written (No such file or directory)\n'


@pytest.mark.parametrize('unused', ['--rate=2', '--nodes=tracker'])
def test_direct_replay_refuses_options_for_topics(unused):
    status, _, err = softarm('replay', 'bag', '--direct', unused)
    expected = 'softarm: --direct plays nothing over topics; drop --rate and --nodes\n'
    assert (status, err) == (2, expected)


@pytest.mark.parametrize(
    'unused', ['--rate=2', '--processes=each', '--bag=b', '--view', '--goals']
)
def test_direct_run_refuses_options_for_topics(unused):
    status, _, err = softarm('run', 'cable_arm', '--direct', unused)
    assert status == 2
    assert unused.partition('=')[0].lstrip('-') in err and 'has none; drop' in err


@pytest.mark.parametrize('what', ['task', 'trajectory'])
def test_an_unknown_task_or_trajectory_is_refused_before_kernels_are_compiled(what, monkeypatch):
    def compiled(*_):
        raise AssertionError('compiled first')

    monkeypatch.setattr('softarm_ros.cli.run_command.compile_kernels', compiled)
    status, _, err = softarm('run', 'pneumatic_arm', f'--{what}', 'pick', '--direct')
    assert status == 2
    assert err.startswith(f"softarm: unknown {what} 'pick'") and len(err.splitlines()) == 1


def test_a_bag_that_cannot_be_written_is_refused_before_kernels_are_compiled(
    monkeypatch, tmp_path
):
    def compiled(*_):
        raise AssertionError('compiled')

    monkeypatch.setattr('softarm_ros.cli.run_command.compile_kernels', compiled)
    (tmp_path / 'file').touch()
    status, _, err = softarm('run', 'cable_arm', '--bag', tmp_path / 'file')
    assert status == 2
    assert err == (
        f'softarm: bag folder {tmp_path / "file"} is a file; expected a new or empty folder\n'
    )


def test_an_interrupt_that_the_compiler_drops_ends_the_command(monkeypatch, capfd):
    def compiled(*_):
        def told():
            raise KeyboardInterrupt

        ctypes.CFUNCTYPE(None)(told)()  # as LLVM tells Numba about compiled code
        raise RuntimeError('no compiled object yet')

    monkeypatch.setattr('softarm_ros.runtime.warm_up.prepare', compiled)
    with pytest.raises(KeyboardInterrupt):
        compile_kernels(load_rig('cable_arm'), Console())
    assert capfd.readouterr().err == ''


@pytest.mark.parametrize('encoding', ['ascii:strict', 'utf-8:strict'])
def test_check_replaces_characters_that_the_terminal_cannot_encode(encoding, tmp_path):
    path = tmp_path / 'caf\udce9.yaml'
    shutil.copy(RIG, path)
    done = process('check', path, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, '')
    assert 'caf?.yaml' in done.stdout


@pytest.mark.skipif(not Path('/dev/full').exists(), reason='no /dev/full')
def test_a_write_to_a_full_disk_names_the_file_and_its_option():
    with pytest.raises(UsageError, match='--json /dev/full: cannot be written'):
        write_file('{}', Path('/dev/full'), '--json')


def test_the_command_works_from_another_folder(tmp_path):
    done = process('rigs', cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith('cable_arm ')
    assert done.stderr == ''


def test_unexpected_exception_keeps_its_traceback():
    code = (
        'import softarm_ros.rigs.rig_files as rig_files\n'
        'def broken(): raise RuntimeError("a defect")\n'
        'rig_files.list_rigs = broken\n'
        'from softarm_ros.cli.main import app\n'
        'app(["rigs"])'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], cwd=REPOSITORY, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert 'Traceback' in done.stderr and 'RuntimeError: a defect' in done.stderr


def test_workspace_prints_the_reach_and_writes_a_picture(tmp_path):
    image = tmp_path / 'w.png'
    status, out, _ = softarm('workspace', 'cable_arm', '--samples', '2000', '--image', str(image))
    assert status == 0
    assert image.read_bytes().startswith(b'\x89PNG')
    rig = load_rig('cable_arm')
    reach = float(re.search(r'to (\d+\.\d) mm', out).group(1))
    assert 150.0 < reach < 1e3 * rig.model().rest_length_m


def test_workspace_announces_a_long_computation(monkeypatch):
    monkeypatch.setattr('softarm_ros.cli.commands.workspace._LONG_S', 0.0)
    status, _, err = softarm('workspace', 'cable_arm', '--samples', '50')
    assert status == 0 and 'cable_arm: 50 configurations take about' in err
    assert '--samples' in err


def test_workspace_and_reach_respect_the_actuator_limits(tmp_path):
    """Motors that pull 5 mm beyond the pretension bend a section by about 23 degrees."""
    path = tmp_path / 'short.yaml'
    text = load_rig('cable_arm_single').source.read_text()
    path.write_text(text.replace('position_max_m: 0.055', 'position_max_m: 0.007'))
    rig = load_rig(path)
    room = build_pretension(rig).room(rig.actuator_limits())
    bends = [np.radians([angle, 0.0]) for angle in np.linspace(-90.0, 90.0, 1801)]
    held = [b for b in bends if room.hold(rig.model().actuation_of(b))]
    # Away from cable 1, two cables pull, each half as far.
    assert -46.0 < np.degrees(held[0][0]) < -42.0 and 21.0 < np.degrees(held[-1][0]) < 24.0
    farthest = -1e3 * rig.model().tips_of(np.array(held))[0, 0]
    _, checked, _ = softarm('check', str(path))
    reach = float(re.search(r'up to ([\d.]+) mm from the axis', checked).group(1))
    assert reach == pytest.approx(farthest, rel=0.05)
    status, out, _ = softarm('workspace', str(path), '--samples', '4000')
    assert status == 0
    count = int(re.search(r': (\d+) of 4000 configurations', out).group(1))
    assert 20 < count < 400
    assert float(re.search(r'to (\d+\.\d) mm', out).group(1)) == pytest.approx(farthest, rel=0.1)


def test_reach_of_twelve_sections_encloses_sampled_tips():
    """Twelve sections with three bends each have half a million combinations in a plane."""
    rig = load_rig('cable_arm')
    section, cables = rig.arm.sections[0], rig.actuators[:3]
    names = [f's{k}' for k in range(12)]
    bent = {'length_m': 0.05, 'endcap_length_m': 0.005, 'max_bending_angle_deg': 40.0}
    long = rig.model_copy(update={'plant': None, 'devices': None}).with_arm(
        sections=tuple(section.model_copy(update={'name': name, **bent}) for name in names),
        actuators=tuple(
            cable.model_copy(update={'name': f'{name}_{i}', 'section': name})
            for name in names
            for i, cable in enumerate(cables)
        ),
    )
    line = next(line for line in summary(long) if line.startswith('reach'))
    away, low, high = numbers_after('reach', line)[:3]
    tips = 1e3 * long.model().tips_of(long.sample_configurations(np.random.default_rng(0), 4000))
    assert high == pytest.approx(720.0)
    assert low < tips[:, 2].min() and away > np.linalg.norm(tips[:, :2], axis=1).max()


def test_a_negative_seed_is_refused():
    for command in (('workspace', 'trunk'), ('identify', 'trunk')):
        status, _, err = softarm(*command, '--seed', '-1')
        assert status == 2
        assert "Invalid value for '--seed'" in err


@pytest.mark.parametrize('command', [('demo',), ('run', 'cable_arm'), ('jog', 'cable_arm')])
def test_a_seed_that_the_nodes_do_not_take_is_refused_before_they_start(command):
    status, _, err = softarm(*command, '--seed', str(2**31))
    assert status == 2
    assert '2147483647' in err


def test_workspace_refuses_a_rig_whose_actuators_hold_no_sample(tmp_path):
    path = tmp_path / 'none.yaml'
    text = load_rig('cable_arm_single').source.read_text()
    path.write_text(text.replace('position_max_m: 0.055', 'position_max_m: 0.0000001'))
    status, _, err = softarm('workspace', str(path), '--samples', '100')
    assert status == 2
    assert 'hold none of 100 configurations' in err


def test_reach_and_workspace_leave_the_pretension_out_of_the_range(tmp_path):
    path = tmp_path / 'short.yaml'
    text = load_rig('cable_arm_single').source.read_text()
    path.write_text(text.replace('position_max_m: 0.055', 'position_max_m: 0.015'))

    def told(rig, pretension_m):
        setting = ('--set', f'controller.pretension_m={pretension_m}')
        reach = softarm('check', rig, *setting)[1].partition('reach ')[2].splitlines()[0]
        workspace = softarm('workspace', rig, '--samples', '500', *setting)[1].splitlines()[1:3]
        return [reach, *workspace]

    wound = told('cable_arm_single', 0.04)
    assert wound == told(str(path), 0.0)
    assert wound != told('cable_arm_single', 0.0)


def test_configurations_in_which_a_heavy_arm_falls_are_not_within_reach(tmp_path):
    path = tmp_path / 'heavy.yaml'
    text = load_rig('cable_arm').source.read_text()
    text = re.sub(r'\nmodel: .*', '\nmodel: heavy_cable_statics', text)
    heavy = re.sub(r'( +)endcap_length_m: .*', r'\g<0>\n\1body_mass_kg: 0.058', text, count=1)
    path.write_text(heavy)
    rig = load_rig(path)
    straight, over = np.zeros(4), np.radians([104.0, 0.0, 90.0, 0.0])
    assert np.isnan(rig.model().tips_of(over[None])).all()
    held = rig.arm.those_held(rig.model(), np.array([straight, over]))
    np.testing.assert_array_equal(held, [straight])


@pytest.mark.parametrize('rig', ['pam_arm', 'trunk'])
def test_workspace_pictures_of_tall_and_short_arms_are_not_cut_off(rig, tmp_path):
    from matplotlib.image import imread

    image = tmp_path / 'w.png'
    assert softarm('workspace', rig, '--samples', '20', '--image', str(image))[0] == 0
    pixels = imread(image)[:, :, :3]
    for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
        assert edge.min() == 1.0, 'something reaches beyond the picture'


def test_workspace_refuses_an_image_name_that_does_not_end_in_png(tmp_path):
    image = tmp_path / 'w.jpg'
    status, out, err = softarm('workspace', 'cable_arm', '--image', str(image))
    assert (status, out) == (2, '')
    assert err == f'softarm: --image {image}: expected a name that ends in .png\n'


def test_the_command_line_starts_without_standard_streams_and_home(tmp_path):
    code = """
import faulthandler, os, sys
from softarm_ros.cli import main

def app():
    assert os.read(sys.stdin.fileno(), 1) == b''  # as teleop does
    print('read by nobody')
    faulthandler.enable()  # as ROS does
    found = [str(os.fstat(number).st_rdev) for number in range(3)] + [os.environ['HOME']]
    open('found', 'w').write(' '.join(found))

main.app = app
main.main()
"""
    closed = f'exec \'{sys.executable}\' -c "$1" <&- >&- 2>&-'
    subprocess.run(['/bin/sh', '-c', closed, 'sh', code], env={}, cwd=tmp_path, check=True)
    *devices, home = (tmp_path / 'found').read_text().split(' ')
    assert devices == 3 * [str(Path(os.devnull).stat().st_rdev)]
    assert home == pwd.getpwuid(os.getuid()).pw_dir


@pytest.mark.parametrize(
    ('arguments', 'option'),
    [
        (['goto', '--timeout', '3', 'cable_arm', '-0.01', '0', '0.2'], '--timeout'),
        (['goto', 'cable_arm', '-0.01', '0', '0.2', '--timeout=3'], '--timeout'),
        (['jog', 'cable_arm', 'proximal_1', '-2', '--hme'], '--hme'),
    ],
)
def test_an_unknown_option_beside_negative_numbers_is_named(arguments, option):
    status, out, err = softarm(*arguments)
    assert (status, out) == (2, '')
    assert f'No such option: {option}' in err


@pytest.mark.parametrize('option', [['--duration', '3'], ['--set', 'medium=water']])
def test_repair_of_a_bag_refuses_options_of_recording(option, tmp_path):
    status, _, err = softarm('record', '--repair', str(tmp_path), *option)
    assert status == 2
    assert err == 'softarm: --repair copies a whole bag; drop --duration and --set\n'
