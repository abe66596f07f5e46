"""The pneumatic arm's experiments: results that physics and the paper require."""

import numpy as np
import pytest

from softarm_reproduction import pneumatic_experiments
from softarm_reproduction import pneumatic_study as study
from softarm_reproduction.experiment_page import write_page
from softarm_reproduction.nominal import NOMINAL
from softarm_ros.plant.pneumatic.config import PneumaticPlantConfig
from softarm_ros.rigs.arms.pneumatic import PneumaticArm
from softarm_ros.rigs.loader import load_rig_of
from softarm_ros.runtime.direct import run_direct


@pytest.fixture(scope='module')
def rig():
    return load_rig_of(PneumaticArm, 'pneumatic_arm', NOMINAL)


def test_camera_errors_match_the_paper(rig):
    found = study.camera_errors(rig, 1, frames=400)
    assert found.mean == pytest.approx(0.6381e-3, rel=0.05)
    assert found.deviation == pytest.approx(0.2484e-3, rel=0.15)


def test_correction_removes_more_than_half_of_the_location_error(rig, monkeypatch):
    monkeypatch.setattr(study, 'PRESSURES_KPA', (30.0, 60.0, 90.0))
    found = study.location_errors(rig, study.MOTIONS[0], 0)
    for at in study.PRESSURES_KPA:
        assert 50.0 < found.reduction_percent(at) < 100.0
    assert np.all(found.corrected > 3e-4)  # a plant equal to the model would be a defect
    soft = study.location_errors(study.with_stiffness(rig, 0.02), study.MOTIONS[0], 0)
    assert np.all(soft.uncorrected > found.uncorrected)
    assert soft.reduction_percent(60.0) < found.reduction_percent(60.0)


def test_faster_and_wider_strokes_in_water_take_more_force(rig):
    slow, fast = (study.strokes_in_water(rig, f, 0, (20.0, 50.0)) for f in (0.4, 0.8))
    assert np.all(np.diff(slow.half_stroke) > 0.0) and np.all(np.diff(slow.force) > 0.0)
    assert np.all(fast.force > slow.force)
    middle = float(slow.half_stroke.mean())
    force, torque = slow.at(middle)
    assert slow.force[0] < force < slow.force[1] and 0.0 < torque < 0.27 * force
    assert slow.at(1.0) is None


def test_object_is_picked_carried_and_placed(rig):
    found = study.pick_and_place(rig, 0)
    assert found.completed and found.taken and found.put_down
    assert 15.0 < found.duration_s < 21.0
    assert 1e-3 < found.placing_error_m < 0.025
    held = found.fingers[found.held]
    assert np.linalg.norm(held[-1] - held[0]) > 0.15


def test_workspace_is_a_shell_that_is_wider_with_three_chambers(rig):
    two, three = (study.workspace_shell(rig, t, 0, n=300) for t in (False, True))
    assert 0.16 < two.inner_m < two.outer_m < 0.225 < three.outer_m < 0.2 + 2 * 0.031


@pytest.mark.parametrize(('trajectory', 'bar_m'), [('sweep', 1.0e-3), ('line', 1.5e-3)])
def test_feedback_keeps_the_mean_error_below_the_bar_and_open_loop_does_not(
    rig, trajectory, bar_m
):
    """For the first 6 s, and the true tip, not that of the cameras."""
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


def test_drag_of_the_towed_arm_grows_with_the_square_of_the_speed(rig):
    """The page had no towing; the arm bends little at these speeds, so drag is quadratic."""
    slow, fast = study.towed(rig, (0.1, 0.2), 0)
    assert fast.drag_N / slow.drag_N == pytest.approx(4.0, rel=0.05)
    assert fast.torque_N_m > slow.torque_N_m > 0.0
    assert fast.shift_m > slow.shift_m > 0.0


def test_page_shows_the_pressure_length_calibration_of_the_chambers(rig, tmp_path):
    """The page had none, though the paper's controller stands on it (figure S2)."""
    shown = pneumatic_experiments._calibration(rig, 0)
    pressures, proximal, distal = np.array(shown.table.rows, dtype=float).T
    assert (pressures[0], pressures[-1]) == (0.0, 90.0)
    own = rig.plant_of(PneumaticPlantConfig).sections
    for extension, section in zip((proximal, distal), own):
        assert np.all(np.diff(extension) > 0.0)
        # Of the plant's chambers, which the model does not know; hysteresis and creep add to it.
        assert extension[-1] == pytest.approx(1e3 * np.mean(section.extension_m), rel=0.06)
    page = write_page('arm', '', [shown], tmp_path).read_text()
    assert 'pressure_and_length' in ' '.join(p.name for p in tmp_path.iterdir())
    assert 'figure S2' in page
