"""A pip-installed package with a laboratory's own parts and rig works without changes here."""

import json

import pytest
from outside_lab import ROOT, assert_refused, installed_lab, said_by, softarm

from softarm_ros.geometry.parts import FAMILIES

PARTS = {
    'arm.lab_careful': 'soft sections that bend less than they could',
    'body.lab_arcs': 'an arc that lags behind its cables',
    'controller.transposed_jacobian': 'along the transposed Jacobian',
    'drives.lab_winches': 'UDP winches',
    'estimator.every_other': 'every n-th measured pose',
    'gripper.lab_suction': 'a cup that holds by vacuum',
    'medium.lab_oil': 'oil, still',
    'model.thick_cables': 'thick cables',
    'sensors.near_sighted': 'poses that scatter with distance',
}


@pytest.fixture(scope='module')
def lab(tmp_path_factory):
    """Yield a function that runs Python with the package installed, and the package's rig."""
    # The first version that builds wheels without the package `wheel`.
    pytest.importorskip('setuptools', minversion='70.1')
    with installed_lab(tmp_path_factory.mktemp('lab')) as lab:
        yield lab


@pytest.fixture
def short(tmp_path):
    """Return the file of a trajectory of two seconds."""
    path = tmp_path / 'short.yaml'
    path.write_text(
        'type: line\nstart: [0.04, -0.02, 0.0885]\nend: [0.04, 0.02, 0.0885]\nspeed: 0.02\n'
    )
    return path


def test_softarm_parts_lists_the_outside_parts(lab):
    listed = softarm(lab, 'parts')
    assert listed.returncode == 0 and listed.stderr == ''
    for name, summary in PARTS.items():
        line = f'{summary}  [lab-arm]'
        assert any(name in row and row.endswith(line) for row in listed.stdout.splitlines())
    fields = softarm(lab, 'parts', 'body.lab_arcs').stdout
    assert 'of the arc behind its cables' in fields


def test_softarm_check_accepts_the_outside_rig_and_refuses_wrong_fields(lab):
    checked = softarm(lab, 'check', lab[1])
    assert checked.returncode == 0, checked.stderr
    assert 'model         thick_cables' in checked.stdout
    assert 'backends      sim, emulated, hardware; simulated in steps of 2 ms' in checked.stdout
    text = lab[1].read_text()
    bad = []
    for old, new, message in (
        ('lag_s: 0.1', 'lag_s: -0.1', 'plant.lag_s = -0.1: expected a number > 0'),
        ('lag_s: 0.1', 'lags: 0.1', "unknown field 'lags' (did you mean 'lag_s'?)"),
        ('port: 47001', 'port: 0', 'drives.lab_winches.port = 0: expected a whole number > 0'),
        ('lab_arcs', 'lab_arc', "plant.kind = 'lab_arc': no such body (did you mean 'lab_arcs'?)"),
        ('lab_arcs', 'water_chain', "is built for 'water_cylinders', and this arm has 'wound_c"),
        (
            'lab_winches',
            'valves',
            "is built for 'valved_muscles', and this arm has 'wound_c",
        ),
        (
            'model: thick_cables',
            'model: thick_cable',
            "did you mean 'thick_cables'",
        ),
    ):
        assert text.count(old) == 1
        bad.append((text.replace(old, new), message))
    section = text[text.index('    - {name: only') : text.index('  actuators:')]
    two = text.replace(section, section + section.replace('only', 'other'))
    assert_refused(lab, [*bad, (two, 'expected an arm of one section')])


def test_try_parts_names_the_outside_part_that_fails(lab):
    code = """
import numpy as np
from lab_arm import arcs_that_lag, near_sighted, transposed_jacobian
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.part_trial import try_parts

rig = load_rig(rig.source, ['controller.kind=transposed_jacobian'])
try_parts(rig, 'fine')
for owner, method, wrong in (
    (transposed_jacobian.Transposed, 'velocity', lambda *_: None),
    (transposed_jacobian.Transposed, '__init__', lambda self, config: self.nothing),
    (arcs_that_lag.LaggingArc, 'section_tips', lambda self: self._pose(1.0)),
    (arcs_that_lag.InstantWinches, 'advance', lambda *_: np.linalg.inv(np.zeros((2, 2)))),
):
    right = getattr(owner, method)
    wrong.__globals__['__name__'] = owner.__module__
    setattr(owner, method, wrong)
    try:
        try_parts(rig, 'bad')
    except ValueError as error:
        print(str(error).partition(' (traceback')[0])
    setattr(owner, method, right)
"""
    told = said_by(lab, code).splitlines()
    assert told[0] == 'bad: controller Transposed returned None; expected a Motion'
    assert told[1].startswith('bad: part controller.transposed_jacobian (Transposed.<lambda>')
    assert "no attribute 'nothing'" in told[1]
    assert told[2].startswith('bad: body LaggingArc returned section tips [[1.0')
    assert 'numbers, float64' in told[2]
    assert told[3].startswith('bad: part body.lab_arcs (')
    assert 'LinAlgError: Singular matrix' in told[3]


def test_try_parts_names_the_outside_part_that_changes_its_arguments(lab):
    code = """
import numpy as np
from lab_arm import every_other, transposed_jacobian
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.part_trial import try_parts

rig = load_rig(rig.source, ['controller.kind=transposed_jacobian', 'estimator.kind=every_other'])
velocity = transposed_jacobian.Transposed.velocity

def widened(self, state, reference, bounds, period_s):
    bounds.high[:] *= 2.0
    return velocity(self, state, reference, bounds, period_s)

def moved(self, now_s, posture):
    posture.configuration[0] = 0.0

for owner, method, wrong in (
    (transposed_jacobian.Transposed, 'velocity', widened),
    (every_other.EveryOther, 'command', moved),
):
    right = getattr(owner, method)
    setattr(owner, method, wrong)
    try:
        try_parts(rig, 'bad')
    except ValueError as error:
        print(error)
    setattr(owner, method, right)
"""
    assert said_by(lab, code).splitlines() == [
        'bad: controller Transposed changes bounds.high that it is given; expected to work on a '
        'copy',
        'bad: estimator EveryOther changes configuration of the posture that it is given; '
        'expected to work on a copy',
    ]


def test_an_outside_controller_that_exits_is_named_and_the_arm_stands(lab, short):
    code = f"""
import sys
from lab_arm import transposed_jacobian
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.assembly import build_loop
from softarm_ros.runtime.direct import run_direct
from softarm_ros.runtime.part_trial import try_parts
from softarm_ros.runtime.permitted_loop import PermittedLoop

def velocity(self, *given):
    sys.exit('no licence')

velocity.__globals__['__name__'] = transposed_jacobian.__name__
transposed_jacobian.Transposed.velocity = velocity
rig = load_rig(rig.source, ['controller.kind=transposed_jacobian'])
run = run_direct(rig, {str(short)!r})
print(run.completed, run.events[-1].message)
motion = PermittedLoop(build_loop(rig, {str(short)!r}))
motion.follow(True, 0.0)
for k in range(1000):  # the approach ends before
    motion.cycle(0.01 * k, None)
print(motion.refusal)
try:
    try_parts(rig, 'rig')
except ValueError as error:
    print(error)
"""
    told = said_by(lab, code).splitlines()
    assert [line.partition('part ')[0] for line in told] == ['False ', 'cannot go on: ', 'rig: ']
    for line in told:
        assert 'part controller.transposed_jacobian (Transposed.velocity, ' in line
        assert 'failed: SystemExit: no licence (traceback: ' in line


def test_an_outside_model_that_fails_does_not_affect_rigs_with_other_models(lab):
    code = """
from lab_arm import thick_cables
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.direct import _named_bears_loads
from softarm_ros.runtime.warm_up import warm_up

def build(settings, mechanics):
    raise ImportError('no such library')

build.__globals__['__name__'] = thick_cables.__name__
thick_cables.build = build
other = load_rig('cable_arm_single')
warm_up(other)
print([name for name in other.model_names if _named_bears_loads(other, name)])
try:
    warm_up(other, models=['thick_cables'])
except ImportError as error:
    print(error)
"""
    told, refused = said_by(lab, code).splitlines()
    assert 'cosserat' in told and 'thick_cables' not in told
    assert refused == 'no such library'


def test_an_outside_model_that_answers_wrongly_is_named_and_does_not_affect_other_models(lab):
    code = """
from lab_arm import thick_cables
from softarm_ros.models.cable_driven.constant_curvature import ConstantCurvatureArm
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.direct import _named_bears_loads
from softarm_ros.runtime.part_trial import try_parts
from softarm_ros.runtime.warm_up import warm_up

class Column(ConstantCurvatureArm):
    name = 'thick_cables'

    def configuration_of(self, actuation):
        return super().configuration_of(actuation)[:, None]

thick_cables.build = lambda settings, mechanics: Column(mechanics.sections, mechanics.cables)
other = load_rig('cable_arm_single')
warm_up(other)
print(_named_bears_loads(other, 'thick_cables'))
try:
    try_parts(rig, 'bad')
except ValueError as error:
    print(error)
"""
    told, refused = said_by(lab, code).splitlines()
    assert told == 'False'
    assert refused == (
        'bad: model thick_cables (Column) returned configuration_of [[0.0], [0.0]]; expected 2 '
        'finite numbers, float64'
    )


def test_a_direct_run_of_the_outside_rig_is_repeatable_for_a_seed(lab, short, tmp_path):
    found = []
    for seed in (0, 0, 1):
        path = tmp_path / 'run.json'
        arguments = ('--direct', '--trajectory', short, '--seed', seed, '--json', path)
        done = softarm(lab, 'run', lab[1], *arguments)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(path.read_text()))
    first, again, other = (record['tracking_error_m'] for record in found)
    assert first == again != other
    assert found[0]['completed'] and found[0]['model'] == 'thick_cables'
    # The arc lags, and is 1 % longer than the controller assumes.
    assert 1e-4 < first['mean'] < 0.02 * 0.1 and first['max'] < 0.05 * 0.1


def test_built_in_models_of_the_same_mechanics_drive_the_outside_rig(lab, short):
    for model in ('cable_statics', 'constant_curvature'):
        done = softarm(lab, 'run', lab[1], '--direct', '--model', model, '--trajectory', short)
        assert done.returncode == 0, done.stderr


def test_the_outside_controller_completes_a_run_and_a_misspelt_name_is_refused(lab, tmp_path):
    path = tmp_path / 'run.json'
    arguments = ('--direct', '--controller', 'transposed_jacobian', '--json', path)
    done = softarm(lab, 'run', lab[1], *arguments)
    assert done.returncode == 0, done.stderr
    record = json.loads(path.read_text())
    assert record['completed'] and record['controller'] == 'transposed_jacobian'
    assert 1e-4 < record['tracking_error_m']['mean'] < 0.02 * 0.1
    wrong = softarm(lab, 'run', lab[1], '--direct', '--controller', 'transposed_jacobean')
    assert wrong.returncode == 2 and "did you mean 'transposed_jacobian'" in wrong.stderr


def test_the_outside_driver_commands_its_winches_and_reads_their_positions(lab):
    code = """
import socket
import numpy as np
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_actuator_driver

winches = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
winches.bind(('127.0.0.1', 0))
winches.settimeout(10.0)
rig = load_rig(rig.source, [f'drives.lab_winches.port={winches.getsockname()[1]}'])
driver = build_actuator_driver(rig)
driver.start()
hello, driven = winches.recvfrom(256)
print(hello.decode(), driver.not_ready())
driver.home()
driver.follow(np.array([0.001, -0.002, 0.0005]))
print(winches.recv(256).decode())
try:
    driver.follow(np.array([0.001, 0.04, 0.0]))
except ValueError as error:
    print(error)
driver.hold()
print(winches.recv(256).decode())
winches.sendto(b'10 20 -30', driven)
while driver.reading() is None:
    pass
print(np.round(1e6 * driver.reading().position).tolist(), repr(driver.not_ready()))
driver.close()
"""
    assert said_by(lab, code).splitlines() == [
        '? not homed, or not heard',
        '1000 -2000 500',
        'b = 0.04 m: expected -0.03 to 0.03',
        'stop',
        "[10.0, 20.0, -30.0] ''",
    ]


def test_ports_checks_the_outside_drive_and_sensor_without_motion(lab):
    code = """
import socket
import threading
from softarm_ros.cli.ports_command import show_rig
from softarm_ros.rigs.loader import load_rig

def winches(answers):
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.bind(('127.0.0.1', 0))
    heard, stopped = [], threading.Event()

    def answer():
        while True:
            words, driven = line.recvfrom(256)
            heard.append(words.decode())
            if heard[-1] == 'stop':
                stopped.set()
            if answers:
                line.sendto(b'10 20 -30', driven)

    threading.Thread(target=answer, daemon=True).start()
    return heard, stopped, f'drives.lab_winches.port={line.getsockname()[1]}'

block = 'rate_hz: 100, base_from: sensor, bodies: [{name: tip, section: only}]'
for answers, settings in (
    (True, []),
    (True, [f'sensors={{lab_peephole: {{fails: open, {block}}}}}']),
    (True, [f'sensors={{lab_peephole: {{fails: read, {block}}}}}']),
    (False, []),
):
    heard, stopped, port = winches(answers)
    print(show_rig(load_rig(rig.source, [port, *settings]), None, None, print))
    stopped.wait(30.0)  # the last datagram may still be on its way
    print(sorted(set(heard)))
"""
    told = [' '.join(line.split()) for line in said_by(lab, code).splitlines()]
    measures = 'OK lab_winches measures: not homed, or not heard'
    failed = 'FAILED lab_peephole part sensors.lab_peephole (Peephole.'
    assert told[:3] == [measures, 'lab_arm: all 1 answer; nothing was moved', 'True']
    assert [line for line in told if line.startswith('[')] == ["['?', 'stop']"] * 4
    for where, why in (('open', "KeyError: 'lens'"), ('read', "KeyError: 'frame'")):
        assert any(line.startswith(f'{failed}{where}, ') and why in line for line in told)
    assert told[-4] == 'FAILED lab_winches no measurement within 3 s: not homed, or not heard'
    assert told[-2] == 'False'


def test_what_outside_builders_build_is_checked_for_the_methods_of_its_role(lab):
    code = """
from lab_arm import emulated_winches, oil, peephole, winches
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import (
    build_driver, build_emulated_arm, build_plant, build_pose_sensor
)

block = 'fails: open, rate_hz: 100, base_from: sensor, bodies: [{name: tip, section: only}]'
seen = load_rig(rig.source, [f'sensors={{lab_peephole: {{{block}}}}}'])
oily = load_rig('pneumatic_arm', ['plant.medium=lab_oil'])
for module, make in (
    (winches, lambda: build_driver(rig, rig.devices)),
    (peephole, lambda: build_pose_sensor(seen, 'lab_peephole')),
    (oil, lambda: build_plant(oily, 0)),
    (emulated_winches, lambda: build_emulated_arm(rig, 0)),
):
    module.build = lambda *given, **named: 7
    try:
        make()
    except ValueError as error:
        print(error)
"""
    assert [line.partition(' without ')[0] for line in said_by(lab, code).splitlines()] == [
        'part drives.lab_winches has built int',
        'part sensors.lab_peephole has built int',
        'part medium.lab_oil has built int',
        'part drives.lab_winches has built int',
    ]


def test_an_outside_gripper_without_fields_in_the_plant_is_refused_by_the_rig(lab):
    code = """
from lab_arm import suction_cup
from softarm_ros.rigs.loader import load_rig

object.__setattr__(suction_cup.PART, 'takes', {})
try:
    load_rig('pneumatic_arm', ['gripper.kind=lab_suction'])
except ValueError as error:
    print(error)
"""
    assert 'plant.gripper: part gripper.lab_suction has no fields in plant' in said_by(lab, code)


def test_the_outside_driver_has_a_node_that_first_stops_the_winches(lab):
    pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
    code = """
import os
import socket
from dataclasses import replace

from softarm_ros.cli.node_processes import NodeProcesses
from softarm_ros.rigs.graph import graph_plan
from softarm_ros.rigs.loader import load_rig

winches = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
winches.bind(('127.0.0.1', 0))
winches.settimeout(60.0)
rig = load_rig(rig.source, [f'drives.lab_winches.port={winches.getsockname()[1]}'])
plan = {spec.name: spec for spec in graph_plan(rig, 'hardware')}
print(*sorted(plan))
alone = replace(plan['lab_winches'], process='', parameters={
    **plan['lab_winches'].parameters, 'twin_check_s': 0.0, 'real_time_priority': 0})
with NodeProcesses([alone]):
    print(winches.recv(256).decode(), winches.recv(256).decode())
"""
    plan, heard = said_by(lab, code).splitlines()
    assert plan == 'inverse_kinematics lab_winches markers supervisor tracker'
    assert heard == '? stop'


@pytest.mark.parametrize(
    ('fails', 'message'),
    [
        (
            'open',
            'sensor: part sensors.lab_peephole (Peephole.open, '
            "peephole.py:26) failed: KeyError: 'lens' (traceback: ",
        ),
        (
            'find',
            'sensor: part sensors.lab_peephole (Peephole.open, '
            'peephole.py:28) failed: OSError: no such lens (traceback: ',
        ),
        (
            'read',
            'sensor: lab_peephole: reading failed: part sensors.lab_peephole (Peephole.read, '
            "peephole.py:32) failed: KeyError: 'frame' (traceback: ",
        ),
        (
            'exit',
            'sensor: lab_peephole: reading failed: part sensors.lab_peephole (Peephole.read, '
            'peephole.py:34) failed: SystemExit: 3 (traceback: ',
        ),
        (
            'poses',
            "sensor: lab_peephole: reading failed: sensor Peephole returned pose of 'tip' [[",
        ),
    ],
)
def test_the_node_of_an_outside_sensor_that_fails_names_it_in_its_last_line(lab, fails, message):
    pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
    run, rig = lab
    block = 'rate_hz: 100, base_from: sensor, bodies: [{name: tip, section: only}]'
    settings = json.dumps(f'sensors={{lab_peephole: {{fails: {fails}, {block}}}}}')
    parameters = {'rig': rig, 'sensor': 'lab_peephole', 'settings': settings, 'twin_check_s': 0.0}
    given = [word for name, value in parameters.items() for word in ('-p', f'{name}:={value}')]
    done = run('-m', 'softarm_ros.nodes.sensor_node', '--ros-args', *given)
    assert done.returncode == 1
    assert message in done.stderr.splitlines()[-1]
    assert 'Traceback' not in done.stderr


def test_the_outside_driver_moves_the_arm_through_emulated_winches(lab):
    code = """
import tempfile
from pathlib import Path
import numpy as np
from softarm_ros.rigs.graph import graph_plan
from softarm_ros.runtime.arm_assembly import build_actuator_driver, build_emulated_arm

plan = graph_plan(rig, 'emulated', devices_folder='devices')
print(*(spec.name for spec in plan if spec.name in ('emulator', 'lab_winches')))
folder = Path(tempfile.mkdtemp())
arm = build_emulated_arm(rig, 0)
arm.start(folder)
driver = build_actuator_driver(rig, folder)
driver.start()
driver.home()
asked = np.array([0.004, -0.002, -0.002])
driver.follow(asked)
reached = lambda: driver.reading() is not None and np.all(driver.reading().position == asked)
for k in range(1000):
    arm.advance(0.002)
    if reached() and arm.time_s > 1.0:
        break
x, y, _ = arm.plant.true_section_tips()[-1, :3, 3]
print(reached(), x > 0.01, abs(y) < 1e-9, arm.report(), repr(driver.not_ready()))
arm.inject('lab_winches unplug')
driver.follow(np.zeros(3))
arm.advance(0.5)
print(driver.reading().position.tolist() == asked.tolist(), arm.report())
driver.close()
arm.close()
"""
    assert said_by(lab, code).splitlines() == [
        'emulator lab_winches',
        "True True True {'commands': '1'} ''",
        "True {'commands': '1'}",
    ]


def test_the_outside_kind_of_arm_has_its_own_fields_and_limits(lab, short):
    text = lab[1].read_text()
    own = lab[1].with_name('careful.yaml')
    own.write_text(text.replace('kind: cable_driven', 'kind: lab_careful\n  bending_share: 0.8'))
    code = f"""
from softarm_ros.runtime.arm_assembly import build_plant
careful = load_rig({str(own)!r})
limits = [r.configuration_limits().max_bending_rad for r in (rig, careful)]
print(limits[1] / limits[0], careful.kind, careful.model().name, build_plant(careful, 0).time_s)
"""
    assert said_by(lab, code) == '[0.8] lab_careful thick_cables 0.0\n'
    done = softarm(lab, 'run', own, '--direct', '--trajectory', short)
    assert done.returncode == 0, done.stderr
    wrong = (
        ('bending_share: 0.8', 'bending_share: 1.2', 'bending_share = 1.2: expected a number > 0'),
        ('bending_share: 0.8', 'bending_shar: 0.8', "did you mean 'bending_share'"),
        ('lab_careful', 'lab_carefull', "no such kind of arm (did you mean 'lab_careful'?)"),
    )
    text = own.read_text()
    assert_refused(lab, [(text.replace(old, new), message) for old, new, message in wrong])


def test_the_outside_sensor_measures_a_built_in_arm_with_its_own_noise(lab):
    code = """
import numpy as np
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_plant

SENSOR = ['plant.pose_sensor.kind=near_sighted', 'plant.pose_sensor.dropout_probability=0']

def scatter(*settings):
    rig = load_rig('cable_arm_single', settings)
    plant = build_plant(rig, 0)
    plant.step(None, 5.0)
    tips = np.array([pose.section_tips[-1, :3, 3] for pose in plant.poll_poses()])
    return float(np.std(tips[100:, 0])), float(plant.true_section_tips()[-1, 2, 3])

usual, away = scatter()
far, _ = scatter(*SENSOR, 'plant.pose_sensor.noise_per_distance=0.02')
none, _ = scatter(*SENSOR, 'plant.pose_sensor.noise_per_distance=0')
print(abs(usual - 2e-4) < 5e-5, abs(none - 2e-4) < 5e-5, abs(far / (0.02 * away) - 1.0) < 0.2)
for setting in ('plant.pose_sensor.noise_per_distanc=0.02', 'plant.pose_sensor.kind=near_sightet'):
    try:
        load_rig('cable_arm_single', [*SENSOR, setting])
    except ValueError as error:
        print(str(error).partition(': ')[2])
"""
    first, *problems = said_by(lab, code).splitlines()
    assert first == 'True True True'
    assert problems[0].startswith('plant.pose_sensor.noise_per_distanc = 0.02: unknown field')
    assert "did you mean 'noise_per_distance'" in problems[0]
    assert problems[1].startswith(
        "plant.pose_sensor.kind = 'near_sightet': no such simulated sensor (did"
    )


def test_the_outside_package_has_a_part_of_every_family():
    assert {name.partition('.')[0] for name in PARTS} == set(FAMILIES)


def test_the_outside_gripper_grips_and_releases_an_object_on_a_built_in_arm(lab):
    text = (ROOT / 'config' / 'rigs' / 'pneumatic_arm.yaml').read_text()
    fingers = text[text.index('    grips_above_Pa') : text.index('    reach_m: 0.020')]
    force = next(line for line in text.splitlines() if 'force_per_pressure_N_Pa' in line)
    edits = [
        (fingers, ''),
        (force, '    cup_diameter_m: 0.03'),
        ('\ngripper:\n', '\ngripper:\n  kind: lab_suction\n'),
    ]
    edits += [('../cameras/', f'{ROOT}/config/cameras/')]
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    text = text.replace('open_pressure_Pa: -3.0e+4', 'open_pressure_Pa: 0.0')
    text = text.replace('close_pressure_Pa: 5.0e+4', 'close_pressure_Pa: -3.0e+4')
    own = lab[1].with_name('with_cup.yaml')
    own.write_text(text)
    code = f"""
import numpy as np
from softarm_ros.plant.pneumatic.gripper import GrippedObject
from softarm_ros.runtime.arm_assembly import build_driver, build_plant

rig = load_rig({str(own)!r})
print(type(build_driver(rig, rig.devices).gripper).__name__)
plant = build_plant(rig, 0)
plant.drives.place_object(GrippedObject(tuple(plant.body.fingers()[:3, 3]), 0.05))
held = []
for pressure in (rig.gripper.close_pressure_Pa, rig.gripper.open_pressure_Pa):
    plant.command_gripper(pressure)
    plant.step(np.zeros(6), 1.5)
    held.append(plant.drives.holds_object)
print(*held)
"""
    assert said_by(lab, code).splitlines() == ['CupDriver', 'True False']
    wrong = (
        ('kind: lab_suction', 'kind: lab_sucktion', "gripper.kind = 'lab_sucktion'"),
        (
            'cup_diameter_m: 0.03',
            'cup_diameter_m: 0',
            'plant.gripper.cup_diameter_m = 0: expected',
        ),
        ('cup_diameter_m', 'cup_diametre_m', "did you mean 'cup_diameter_m'"),
        ('kind: lab_suction', 'kind: soft_fingers', 'open_pressure_Pa = 0: expected less than'),
    )
    assert_refused(lab, [(text.replace(old, new), message) for old, new, message in wrong])


def test_the_outside_medium_and_estimator_work_with_built_in_arms(lab, short):
    code = """
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.assembly import build_estimator

oil = build_plant(load_rig('pneumatic_arm', ['plant.medium=lab_oil']), 0)
print(oil.body.density)
rig = load_rig('cable_arm_single', ['estimator.kind=every_other'])
print(type(build_estimator(rig, rig.model())).__name__)
"""
    assert said_by(lab, code).splitlines() == ['870.0', 'EveryOther']
    arguments = ('--direct', '--estimator', 'every_other', '--trajectory', short)
    done = softarm(lab, 'run', lab[1], *arguments)
    assert done.returncode == 0, done.stderr


def test_the_outside_rig_can_be_pickled(lab):
    code = """
import pickle
copy = pickle.loads(pickle.dumps(rig))
print(copy == rig, copy.source == rig.source, type(copy) is type(rig), copy.plant.kind)
"""
    assert said_by(lab, code) == 'True True True lab_arcs\n'


def test_loading_a_built_in_rig_does_not_import_the_outside_package(lab):
    run, _ = lab
    code = (
        'import sys; from softarm_ros import load_rig; rig = load_rig("cable_arm")\n'
        'print([m for m in sys.modules if m.startswith("lab_arm")])'
    )
    done = run('-c', code)
    assert done.stdout == '[]\n', done.stderr
