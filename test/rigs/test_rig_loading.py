import os
import pickle
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import numpy as np
import pytest
from forked_python import ForkedPython

import softarm_ros
from softarm_ros import rigs, share_folder
from softarm_ros.rigs import arms
from softarm_ros.rigs.checks import Check
from softarm_ros.rigs.common_checks import CHECKS
from softarm_ros.rigs.loader import RigError, find_share_folder, list_rigs, load_rig
from softarm_ros.rigs.part_registry import kinds_of, parts
from softarm_ros.rigs.schema import Rig

SHIPPED = Path(__file__).parents[2] / 'config' / 'rigs'


@pytest.mark.parametrize('info', list_rigs(), ids=lambda info: info.name)
def test_every_shipped_rig_loads_under_its_own_name(info):
    rig = load_rig(info.name)
    assert rig.name == info.name == info.path.stem
    assert ' '.join(rig.description.split()) == info.description
    assert rig.source == info.path.resolve()
    for name in rig.model_names:
        assert rig.model(name).actuator_names == rig.actuator_names


def test_the_two_cable_arms_are_shipped():
    assert [info.name for info in list_rigs()][:2] == ['cable_arm', 'cable_arm_single']
    arm, single = load_rig('cable_arm'), load_rig('cable_arm_single')
    assert (len(arm.arm.sections), len(arm.actuators)) == (2, 6)
    assert (len(single.arm.sections), len(single.actuators)) == (1, 3)


def test_single_rig_is_the_proximal_section_of_the_arm():
    """The one-section variant must not drift away from the arm it is a part of."""
    arm, single = load_rig('cable_arm'), load_rig('cable_arm_single')
    for field in ('gravity_m_s2', 'feedback'):
        assert getattr(arm, field) == getattr(single, field)
    # Half the arm deviates half as far from its model.
    watch = {'feedback_watch': single.supervisor.feedback_watch}
    assert arm.supervisor.model_copy(update=watch) == single.supervisor
    assert arm.arm.sections[0] == single.arm.sections[0]
    of_one = {'sections': arm.plant.sections[:1], 'zero_offset_m': arm.plant.zero_offset_m[:3]}
    assert arm.plant.model_copy(update=of_one) == single.plant
    for first, second in zip(arm.actuators[:3], single.actuators):
        assert first.model_copy(update={'name': second.name}) == second


def test_package_exports_load_rig():
    assert softarm_ros.load_rig('cable_arm') == load_rig('cable_arm')


def test_rig_is_found_by_path_string_and_path_object(tmp_path, monkeypatch):
    expected = load_rig('cable_arm')
    assert load_rig(SHIPPED / 'cable_arm.yaml') == expected
    assert load_rig(str(SHIPPED / 'cable_arm.yaml')) == expected
    monkeypatch.chdir(tmp_path)
    shutil.copy(SHIPPED / 'cable_arm_single.yaml', tmp_path / 'mine.yaml')
    shutil.copy(SHIPPED / 'cable_arm_single.yaml', tmp_path / 'no_suffix')
    assert load_rig('mine.yaml').name == 'cable_arm_single'
    assert load_rig('no_suffix').name == 'cable_arm_single'
    assert load_rig('./mine.yaml').source == tmp_path / 'mine.yaml'
    # A folder of results named like a rig does not hide the rig.
    (tmp_path / 'cable_arm').mkdir()
    assert load_rig('cable_arm') == expected


def test_rig_round_trip_through_plain_data_and_json():
    rig = load_rig('cable_arm')
    for again in (
        Rig.model_validate(rig.model_dump(by_alias=True)),
        Rig.model_validate_json(rig.model_dump_json(by_alias=True)),
    ):
        assert again.with_source(rig.source, text=rig.text) == rig


def test_pickled_rig_keeps_its_source():
    rig = load_rig('cable_arm')
    copy = pickle.loads(pickle.dumps(rig))
    assert copy == rig and copy.source == rig.source


def test_pickled_rig_error_keeps_its_text():
    error = RigError('file.yaml', 'is empty')
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) == 'file.yaml: is empty'


def test_rig_is_frozen():
    with pytest.raises(ValueError, match='frozen'):
        load_rig('cable_arm').name = 'other'


def test_limits_and_cables_match_the_actuators():
    rig = load_rig('cable_arm')
    limits = rig.actuator_limits()
    assert limits.names == rig.actuator_names == tuple(a.name for a in rig.actuators)
    assert limits.unit == 'm'
    np.testing.assert_array_equal(limits.position_min, [a.position_min_m for a in rig.actuators])
    np.testing.assert_array_equal(limits.position_max, [a.position_max_m for a in rig.actuators])
    np.testing.assert_array_equal(limits.max_speed, [a.max_speed_m_s for a in rig.actuators])
    assert [(c.name, c.section, c.angle_deg) for c in rig.arm.cables()] == [
        (a.name, a.section, a.angle_deg) for a in rig.actuators
    ]


def test_unknown_model_is_refused_with_the_known_ones():
    with pytest.raises(RigError) as error:
        load_rig('cable_arm').model('cable_static')
    assert "did you mean 'cable_statics'" in str(error.value)
    assert 'constant_curvature' in str(error.value)


# -- installed layouts ------------------------------------------------------------------------

LAYOUTS = {
    'wheel in a virtual environment': ('lib/python3.11/site-packages', 'share/softarm_ros'),
    'Debian system Python': ('lib/python3.11/dist-packages', 'share/softarm_ros'),
    'colcon install': (
        'softarm_ros/lib/python3.11/site-packages',
        'softarm_ros/share/softarm_ros',
    ),
    'pip --target': ('', 'share/softarm_ros'),
    'checkout': ('', ''),
}


@pytest.fixture(scope='module')
def python():
    """Yield a Python whose processes have the packages of others, but not this one."""
    environment = {k: v for k, v in os.environ.items() if k != 'AMENT_PREFIX_PATH'}
    environment['PYTHONPATH'] = ''
    with ForkedPython(['numba', 'pydantic', 'ruamel.yaml'], environment) as forked:
        yield forked


@pytest.mark.parametrize('layout', LAYOUTS)
def test_shipped_files_are_found_in_every_installed_layout(python, layout, tmp_path):
    """A copy of the package, laid out as installers do, finds its own copy of the rigs."""
    package, share = (tmp_path / part for part in LAYOUTS[layout])
    repository = SHIPPED.parents[1]
    shutil.copytree(
        repository / 'softarm_ros',
        package / 'softarm_ros',
        ignore=shutil.ignore_patterns('__pycache__'),
    )
    shutil.copytree(SHIPPED, share / 'config' / 'rigs')
    shutil.copy(repository / 'package.xml', share / 'package.xml')
    code = (
        'from softarm_ros.rigs.loader import *; print(list_rigs()[0].path, load_rig("cable_arm"))'
    )
    done = python.run('-c', code, folder=tmp_path / package)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(share / 'config' / 'rigs' / 'cable_arm.yaml'))


def test_share_folder_of_a_sourced_workspace_is_found(tmp_path, monkeypatch):
    module = tmp_path / 'a/b/c/softarm_ros/share_folder.py'
    monkeypatch.setattr(share_folder, '__file__', str(module))
    monkeypatch.setattr(sys, 'prefix', str(tmp_path))
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'{tmp_path / "x"}{os.pathsep}{tmp_path / "ws"}')
    with pytest.raises(RigError, match=r'not installed.*; looked in'):
        find_share_folder()
    (tmp_path / 'ws/share/softarm_ros/config/rigs').mkdir(parents=True)
    assert find_share_folder() == tmp_path / 'ws/share/softarm_ros'


# Modules of the parts of each kind, without those that kinds share.
HOMES = {
    'cable_driven': ('models.cable_driven', 'drivers.steppers_part', 'drivers.dynamixel'),
    'hydraulic': ('models.hydraulics', 'plant.hydraulic', 'drivers.pressure_servo_config'),
    'tendon_rod': ('models.tendon_rod', 'models.cosserat', 'plant.tendon_rod'),
    'pneumatic': ('models.pneumatic', 'plant.pneumatic'),
    'muscle': ('models.minimum_energy', 'plant.pam_arm', 'drivers.valve_config'),
}


@pytest.mark.parametrize('info', list_rigs(), ids=lambda info: info.name)
def test_a_rig_imports_the_parts_of_no_other_kind(python, info):
    code = (
        'import sys; from softarm_ros import load_rig; '
        f'rig = load_rig({info.name!r}); print(rig.kind, type(rig.arm).__module__, *sys.modules)'
    )
    done = python.run('-c', code, folder=SHIPPED.parents[1])
    assert done.returncode == 0, done.stderr
    kind, own, *modules = done.stdout.split()
    kinds = {f'softarm_ros.rigs.arms.{kind}' for kind in kinds_of('arm')}
    assert own in kinds
    assert kinds & set(modules) == {own}
    assert set(HOMES) == set(kinds_of('arm'))
    for other, homes in HOMES.items():
        found = [m for m in modules if m.startswith(tuple(f'softarm_ros.{h}' for h in homes))]
        assert (found != []) == (other == kind), (other, found)


def test_listing_rigs_imports_neither_the_schema_nor_numerical_packages():
    code = 'import sys; from softarm_ros.cli.main import app; app(["rigs"], standalone_mode=False)'
    done = subprocess.run(
        [sys.executable, '-c', f'{code}; print("MODULES", *sys.modules)'],
        cwd=SHIPPED.parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    names, _, modules = done.stdout.partition('MODULES')
    assert len(names.splitlines()) == len(list_rigs())
    heavy = {'numpy', 'numba', 'scipy', 'softarm_ros.rigs.schema'}
    assert heavy & set(modules.split()) == set()


def test_every_check_belongs_to_a_part_or_to_every_rig():
    """A check that neither a part nor `CHECKS` lists would never run."""
    modules = [
        import_module(f'{package.__name__}.{info.name}')
        for package in (rigs, arms)
        for info in iter_modules(package.__path__)
    ]
    written = {v for m in modules for v in vars(m).values() if isinstance(v, Check)}
    named = set(CHECKS)
    for target in (target for part in parts() for target in part.checks):
        module, _, name = target.partition(':')
        named |= set(getattr(import_module(module), name))
    assert written and written == named
