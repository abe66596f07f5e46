"""Nothing compiles after the warm-up."""

from pathlib import Path

import numpy as np
import pytest
from forked_python import DIRECT, ForkedPython

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven import cable_equilibrium_kernels, constant_curvature_kernels
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.runtime.warm_up import _StartOnCompile, warm_up

PROGRAM = Path(__file__).parent / 'first_motion.py'


@pytest.fixture(scope='module')
def python():
    imported = [*DIRECT, 'softarm_ros.cli.beginning', 'softarm_ros.runtime.warm_up']
    with ForkedPython(imported) as forked:
        yield forked


@pytest.mark.parametrize('name', [info.name for info in list_rigs()])
def test_first_motion_after_the_warm_up_compiles_nothing(python, name, tmp_path):
    # In its own process: kernels that other tests have compiled would not show.
    done = python.run(PROGRAM, name, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(' before, late: none\n'), done.stdout
    assert int(done.stdout.split()[0]) > 10


def test_models_compile_nothing_after_the_warm_up():
    rig = load_rig('cable_arm')
    warm_up(rig)
    before = {
        kernel: len(kernel.signatures)
        for module in (cable_equilibrium_kernels, constant_curvature_kernels)
        for kernel in vars(module).values()
        if hasattr(kernel, 'signatures')
    }
    for name in rig.model_names:
        arm = rig.model(name)
        solution = arm.inverse(np.array([0.1, 0.05, 0.15]))
        assert solution.converged
        arm.jacobian(solution.actuation)
        arm.forward(solution.actuation).centerline(20)
    assert {kernel: len(kernel.signatures) for kernel in before} == before
    assert any(count > 0 for count in before.values())


def test_warm_up_succeeds_if_only_some_models_include_the_load():
    rig = load_rig('fishbone_arm', ['estimator.kind=filter', 'estimator.tip_load=weight'])
    warm_up(rig, models=['constant_curvature', 'cosserat'])


def test_warm_up_skips_a_model_that_refuses_the_arm_unless_only_it_is_asked_for():
    soft = [
        f'arm.sections[{k}].{field}'
        for k in range(2)
        for field in ('body_mass_kg=0.058', 'axial_stiffness_N=690')
    ]
    rig = load_rig('cable_arm', ['gravity_m_s2=[0, 0, -9.81]', *soft])
    warm_up(rig)
    with pytest.raises(ModelError, match=r'does not stand at rest.*pretension_m: 0\.002'):
        warm_up(rig, models=['cosserat'])


def test_compiling_process_ignores_a_package_of_that_name_in_the_working_folder(
    tmp_path, monkeypatch
):
    decoy = tmp_path / 'softarm_ros'
    decoy.mkdir()
    (decoy / '__init__.py').write_text('raise SystemExit(3)\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr('os.cpu_count', lambda: 2)
    beside = _StartOnCompile(load_rig('cable_arm_single'))
    beside.on_start(None)
    assert beside.process.wait(timeout=240) == 0
