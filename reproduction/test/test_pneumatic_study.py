"""The pneumatic arm's experiments: what the numbers must have in common with physics."""

import numpy as np
import pytest

from softarm_reproduction import pneumatic_study as study
from softarm_reproduction.nominal import NOMINAL
from softarm_ros.rigs.arms.pneumatic import PneumaticArm
from softarm_ros.rigs.loader import load_rig_of
from softarm_ros.runtime.direct import run_direct


@pytest.fixture(scope='module')
def rig():
    return load_rig_of(PneumaticArm, 'pneumatic_arm', NOMINAL)


def test_the_cameras_err_as_the_paper_says(rig):
    found = study.camera_errors(rig, 1, frames=400)
    assert found.mean == pytest.approx(0.6381e-3, rel=0.05)
    assert found.deviation == pytest.approx(0.2484e-3, rel=0.15)


def test_the_correction_takes_most_of_the_error_away(rig, monkeypatch):
    monkeypatch.setattr(study, 'PRESSURES_KPA', (30.0, 60.0, 90.0))
    found = study.location_errors(rig, study.MOTIONS[0], 0)
    for at in study.PRESSURES_KPA:
        assert 50.0 < found.reduction_percent(at) < 100.0
    assert np.all(found.corrected > 3e-4)  # a plant that is the model would be a defect
    soft = study.location_errors(study.with_stiffness(rig, 0.02), study.MOTIONS[0], 0)
    assert np.all(soft.uncorrected > found.uncorrected)
    assert soft.reduction_percent(60.0) < found.reduction_percent(60.0)


def test_strokes_in_water_cost_more_the_faster_and_the_wider(rig):
    slow, fast = (study.strokes_in_water(rig, f, 0, (20.0, 50.0)) for f in (0.4, 0.8))
    assert np.all(np.diff(slow.half_stroke) > 0.0) and np.all(np.diff(slow.force) > 0.0)
    assert np.all(fast.force > slow.force)
    middle = float(slow.half_stroke.mean())
    force, torque = slow.at(middle)
    assert slow.force[0] < force < slow.force[1] and 0.0 < torque < 0.27 * force
    assert slow.at(1.0) is None


def test_the_object_is_carried_from_the_first_attitude_to_the_fifth(rig):
    found = study.pick_and_place(rig, 0)
    assert found.completed and found.taken and found.put_down
    assert 15.0 < found.duration_s < 21.0
    assert 1e-3 < found.placing_error_m < 0.025
    held = found.fingers[found.held]
    assert np.linalg.norm(held[-1] - held[0]) > 0.15


def test_the_workspace_is_a_shell(rig):
    two, three = (study.workspace_shell(rig, t, 0, n=300) for t in (False, True))
    assert 0.16 < two.inner_m < two.outer_m < 0.225 < three.outer_m < 0.2 + 2 * 0.031


@pytest.mark.parametrize(('trajectory', 'bar_m'), [('sweep', 1.0e-3), ('line', 1.5e-3)])
def test_feedback_stays_under_the_bar_and_the_model_alone_does_not(rig, trajectory, bar_m):
    """The first 6 s of it; the true tip, not that of the cameras."""
    errors = []
    for open_loop in (False, True):
        plant, found = study.simulated(rig, 2), []

        def watch(output, plant=plant, found=found):
            if output.phase.value == 'track':
                tip = plant.true_section_tips()[-1, :3, 3]
                found.append(float(np.linalg.norm(tip - output.reference_position)))

        run_direct(
            rig,
            trajectory,
            open_loop=open_loop,
            seed=2,
            plant=plant,
            progress=watch,
            should_stop=lambda found=found: len(found) >= 600,
        )
        errors.append(float(np.mean(found)))
    closed, opened = errors
    # The line begins with all chambers turning back.
    assert 5e-5 < closed < bar_m < 2.0 * bar_m < opened
