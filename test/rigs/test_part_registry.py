"""Parts are found by name, also those of other installed packages."""

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from softarm_ros.control.controller import Controller
from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.geometry.parts import FAMILIES, Part, PartError
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.rigs.part_fields import fields_of, unit_of
from softarm_ros.rigs.part_registry import BUILT_IN, built_part, find_part, parts

ROOT = Path(__file__).parents[2]

SPRING = """
from pydantic import Field

from softarm_ros.geometry.configs import ConfigBlock, Positive
from softarm_ros.geometry.parts import Part


class SpringConfig(ConfigBlock):
    rate_hz: Positive = Field(description='of readings')
    noise_m: float = 0.001


SPRING = Part('sensors', 'spring', SpringConfig, {'driver': 'lab_parts.driver:build'}, 'a spring')
NUMBER = 3
"""


@pytest.fixture
def installed(tmp_path):
    """Return functions that install a package with entry points, and run Python with it."""

    def package(name, entries, modules):
        for module, text in modules.items():
            path = tmp_path / f'{module.replace(".", "/")}.py'
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        info = tmp_path / f'{name}-1.0.dist-info'
        info.mkdir()
        (info / 'METADATA').write_text(f'Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n')
        lines = '\n'.join(f'{entry} = {target}' for entry, target in entries)
        (info / 'entry_points.txt').write_text(f'[softarm.parts]\n{lines}\n')

    def run(*arguments):
        paths = [str(tmp_path), str(ROOT), os.environ.get('PYTHONPATH', '')]
        return subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, 'PYTHONPATH': os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            timeout=120,
        )

    return package, run


def softarm(run, *arguments):
    return run('-m', 'softarm_ros.cli', *arguments)


# -- our own ----------------------------------------------------------------------------------


# The control cycle itself, or another program, does their work.
NEVER_BUILT = ('estimator.direct', 'sensors.pose_topic')


def test_every_built_in_part_is_registered_with_callable_builders_for_its_roles():
    found = {part.name: part for part in parts()}
    assert set(BUILT_IN) <= set(found)
    for name in BUILT_IN:
        part = found[name]
        assert part is find_part(part.family, part.kind)
        assert part.family in FAMILIES and part.summary
        assert part.builders or name in NEVER_BUILT
        for role in part.builders:
            assert callable(part.builder(role))


@pytest.mark.parametrize('info', list_rigs(), ids=lambda info: info.name)
def test_models_of_a_rig_are_those_built_on_its_mechanics(info):
    rig = load_rig(info.name)
    assert rig.default_model in rig.model_names
    for part in parts('model'):
        if part.kind in rig.model_names:
            model = rig.model(part.kind)
            assert (model.name, model.actuator_names) == (part.kind, rig.actuator_names)
            continue
        with pytest.raises(RigError, match=f"'{part.kind}' is built on '.*{rig.mechanics_name!r}"):
            rig.model(part.kind)


def test_unknown_part_family_or_role_is_refused_with_the_known_ones():
    with pytest.raises(RigError, match=r"unknown model 'cosera' .*'cosserat'.*; known: 'angle"):
        find_part('model', 'cosera')
    with pytest.raises(RigError, match=r"unknown family of parts 'drive' .did you mean 'drives'"):
        find_part('drive', 'steppers')
    with pytest.raises(PartError, match="has no role 'driver'; it has: 'rod_cables'"):
        find_part('model', 'cosserat').builder('driver')


class Empty(ConfigBlock):
    pass


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (('modles', 'x', Empty, {}), 'family = .modles.: expected one of arm, model'),
        (('model', 'x', dict, {}), 'expected a ConfigBlock'),
        (('model', 'x', Empty, {'a': 'module'}), r"builders\['a'\] = 'module': expected module:f"),
    ],
)
def test_invalid_part_is_refused(arguments, message):
    with pytest.raises(PartError, match=message):
        Part(*arguments, 'summary')


def test_missing_builder_function_is_named():
    part = Part('model', 'x', Empty, {'cables': 'softarm_ros.geometry.parts:nothing'}, 'summary')
    with pytest.raises(PartError, match=r"x: softarm_ros.geometry.parts has no .*'nothing'"):
        part.builder('cables')


@pytest.mark.parametrize(
    ('text', 'why'),
    [
        ('import no_such_library', "ModuleNotFoundError: No module named 'no_such_library'"),
        ('def build(:', 'SyntaxError: invalid syntax'),
        ('raise SystemExit(3)', 'SystemExit: 3'),
        (None, "ModuleNotFoundError: No module named 'lab_of_builders'"),
    ],
)
def test_module_of_a_builder_that_cannot_be_imported_is_named(monkeypatch, tmp_path, text, why):
    if text is not None:
        (tmp_path / 'lab_of_builders.py').write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    part = Part('model', 'x', Empty, {'cables': 'lab_of_builders:build'}, 'summary')
    message = re.escape(f'part model.x: lab_of_builders cannot be imported: {why}')
    with pytest.raises(PartError, match=message):
        part.builder('cables')


def takes_two(config, model):
    return config, model


def test_builder_that_does_not_take_the_arguments_of_its_role_is_named():
    part = Part('estimator', 'x', Empty, {'estimator': f'{__name__}:takes_two'}, 'summary')
    build = part.builder('estimator')
    assert build(1, model=2) == (1, 2)
    message = (
        rf"estimator\.x: {__name__}:takes_two\(config, model\), builder of the role 'estimator', "
        'does not take the 3 arguments of this role: too many positional arguments'
    )
    with pytest.raises(PartError, match=message):
        build(1, 2, 3)


def test_compiled_builder_that_does_not_state_its_arguments_is_called():
    part = Part('estimator', 'x', Empty, {'estimator': 'builtins:max'}, 'summary')
    assert part.builder('estimator')(1, 2) == 2


def test_fields_of_a_part_have_type_default_and_unit():
    rows = {row.name: row for row in fields_of(find_part('model', 'cosserat').config)}
    steps = rows['steps']
    assert (steps.type, steps.default, steps.required) == (
        'a whole number >= 1 and <= 100',
        '3',
        False,
    )
    assert [unit_of(f) for f in ('length_m', 'gain_1_s', 'name', 'max_torque_N_m', 'k_N_m')] == [
        *('m', '1/s', '', 'N m', 'N/m')
    ]
    for field, unit in (
        ('torque_N_m', 'N m'),
        ('torque_step_N_m', 'N m'),
        ('turning_drag_N_m_s', 'N m s'),
        ('viscosity_Pa_s', 'Pa s'),
        ('cable_presliding_stiffness_N_m2', 'N/m^2'),
        ('inertia_kg_m2', 'kg m^2'),
        ('drag_N_s_m2', 'N s/m^2'),
        ('position_min_m', 'm'),
        # Units of other packages that are not known: no unit rather than the last word.
        ('stiffness_kN_m', ''),
        ('speed_mm_s', ''),
        ('rate_deg_s', ''),
        ('flow_ml_s', ''),
    ):
        assert unit_of(field) == unit


SYMBOLS = {*('m', 'm2', 'm3', 's', 's2', 's3', 'hz', 'kg', 'N', 'Pa', 'V', 'A', 'rad', 'deg')}
SYMBOLS |= {'1', 'px', 'rev', 'per'}


@pytest.mark.parametrize('part', parts(), ids=lambda part: part.name)
def test_every_symbol_at_the_end_of_a_name_is_in_the_unit(part):
    for row in fields_of(part.config):
        words = row.name.split('.')[-1].split('_')
        symbols = list(itertools.takewhile(SYMBOLS.__contains__, reversed(words)))
        stated = [word.rstrip('0123456789').lower() for word in reversed(symbols)]
        shown = re.findall('[a-z]+', row.unit.lower())
        assert shown == [word for word in stated if word not in ('', 'per')], row.name


# -- those of other packages ------------------------------------------------------------------


def test_a_part_of_another_package_is_listed_with_its_fields(installed):
    package, run = installed
    package('lab', [('sensors.spring', 'lab_parts.parts:SPRING')], {'lab_parts.parts': SPRING})
    listed = softarm(run, 'parts')
    assert listed.returncode == 0 and listed.stderr == ''
    lines = [' '.join(line.split()) for line in listed.stdout.splitlines()]
    assert 'sensors.spring a spring [lab]' in lines
    shown = softarm(run, 'parts', 'sensors.spring').stdout.splitlines()
    assert shown[:2] == ['sensors.spring: a spring  [lab]', 'roles: driver']
    rows = [' '.join(line.split()) for line in shown[2:]]
    assert rows[0] == 'rate_hz a number > 0 Hz required of readings'
    assert rows[1] == 'noise_m a number m default 0.001'


BROKEN = [
    ('lab_parts.parts', '(lab_parts.parts): expected module:NAME'),
    ('lab_parts.parts:GONE', 'AttributeError'),
    ('lab_parts.gone:SPRING', 'ModuleNotFoundError'),
    ('lab_parts.parts:NUMBER', 'expected a Part, found int'),
    ('lab_parts.bad:X', 'ValueError: no'),
    ('lab_parts.script:X', 'SystemExit: done'),
]


def test_broken_parts_are_named_with_their_package_and_break_no_rig(installed):
    package, run = installed
    modules = {
        'lab_parts.parts': SPRING,
        'lab_parts.bad': "raise ValueError('no')",
        'lab_parts.script': "raise SystemExit('done')",
    }
    names = [f'model.spring_{number}' for number in range(len(BROKEN))]
    package('lab', [(name, target) for name, (target, _) in zip(names, BROKEN)], modules)
    listed = softarm(run, 'parts', 'model')
    assert listed.returncode == 0 and 'model.cosserat' in listed.stdout
    said = {}
    for name, (_, why) in zip(names, BROKEN):
        about = f"part '{name}' of the package lab"
        (said[name],) = (line for line in listed.stderr.splitlines() if about in line)
        assert why in said[name]
    asked = softarm(run, 'parts', names[0])
    assert asked.returncode == 2 and asked.stderr.splitlines() == [said[names[0]]]
    code = (
        'from softarm_ros import load_rig\n'
        'rig = load_rig("cable_arm_single"); rig.model(); print(rig.model_names)\n'
        f'for number in range({len(BROKEN)}):\n'
        '    try:\n'
        '        load_rig("cable_arm_single", [f"model=spring_{number}"])\n'
        '    except ValueError as error:\n'
        '        print(error)\n'
    )
    models, *refused = run('-c', code).stdout.splitlines()
    assert models == ("('cable_statics', 'constant_curvature', 'cosserat', 'heavy_cable_statics')")
    assert len(refused) == len(BROKEN)
    assert all('model.kind = ' in r and 'of the package lab' in r for r in refused)


def test_two_parts_of_one_name_are_refused_with_both_packages(installed):
    package, run = installed
    entries = [('sensors.spring', 'lab_parts.parts:SPRING')]
    package('lab', entries, {'lab_parts.parts': SPRING})
    package('attic', [*entries, ('model.cosserat', 'lab_parts.parts:SPRING')], {})
    for name, packages in (('sensors.spring', 'attic, lab'), ('model.cosserat', 'attic, softarm')):
        asked = softarm(run, 'parts', name)
        assert asked.returncode == 2
        assert f"part '{name}' is provided more than once, by: {packages}" in asked.stderr
    assert 'model.cosserat' in softarm(run, 'parts').stderr


def test_parts_outside_the_known_families_are_reported(installed):
    package, run = installed
    names = ['spring', 'springs.spring', 'sensors.']
    entries = [(name, 'lab_parts.parts:SPRING') for name in names]
    package('lab', entries, {'lab_parts.parts': SPRING})
    listed = softarm(run, 'parts')
    assert listed.returncode == 0 and 'model.cosserat' in listed.stdout
    for name in names:
        assert f"'{name}" in listed.stderr, listed.stderr


def test_part_registered_under_another_name_is_refused(installed):
    package, run = installed
    package('lab', [('sensors.coil', 'lab_parts.parts:SPRING')], {'lab_parts.parts': SPRING})
    stderr = softarm(run, 'parts', 'sensors').stderr
    assert "calls itself 'sensors.spring'; expected 'sensors.coil'" in stderr


class Still(Controller):
    def velocity(self, state, reference, bounds, period_s):
        raise NotImplementedError


class StillAtATime(Still):
    def reset(self, now_s):
        raise NotImplementedError


class Deaf(Still):
    def on_outcome(self):
        raise NotImplementedError


class Stateless(Still):
    reset = None


@pytest.mark.parametrize(
    ('built', 'why'),
    [
        (Still, 'the class Still itself; expected an object'),
        (StillAtATime(), r'StillAtATime with reset\(now_s\); expected reset\(\): missing .*now_s'),
        (Deaf(), r'Deaf with on_outcome\(\); expected on_outcome\(outcome\): too many'),
        (Stateless(), "Stateless whose 'reset' is no method"),
    ],
)
def test_what_a_part_builds_takes_the_arguments_of_its_interface(built, why):
    part = Part('controller', 'own', ConfigBlock, {'controller': 'own:build'}, 'own')
    with pytest.raises(RigError, match=f'part controller.own has built {why}'):
        built_part(part, built, 'velocity', 'reset', like=Controller)


def test_what_a_part_builds_may_take_more_arguments_if_they_have_defaults():
    class Wider(Still):
        def reset(self, hard=True):
            raise NotImplementedError

    part = Part('controller', 'own', ConfigBlock, {'controller': 'own:build'}, 'own')
    assert isinstance(built_part(part, Wider(), 'velocity', like=Controller), Wider)
