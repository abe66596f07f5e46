"""Simulated cameras have the same calibration error as the emulated cameras of a rig."""

import numpy as np
import pytest

pytest.importorskip('cv2', reason='opencv-python-headless is not installed')

from softarm_ros import load_rig
from softarm_ros.cli.backend_comparison import seeing_alike
from softarm_ros.emulation.camera_setup import calibration_error, setup_of
from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.geometry.rotations import log_so3
from softarm_ros.perception.stereo.tracking import MarkerTracker
from softarm_ros.runtime.arm_assembly import build_marker_expectation, sensor_config
from softarm_ros.runtime.sensor_calibration import calibration_settings

RIGS = ('hydraulic_arm', 'pneumatic_arm')
CAMERAS = 'stereo_cameras'
EXPOSURES = 10  # averaged, since each has noise


@pytest.mark.parametrize('name', RIGS)
def test_simulated_calibration_error_matches_the_driver_on_drawn_images(name):
    """The driver and the simulated sensor measure the disks of an arm at rest at one place."""
    from softarm_ros.emulation.stereo_camera_server import StereoCameraServer

    rig = load_rig(name)
    config = sensor_config(rig, CAMERAS)
    sections = rig.section_names
    cameras, calibration = setup_of(config, len(sections), 0)
    server = StereoCameraServer(config, sections, 0, cameras, calibration)
    model = rig.model()
    tips = model.posture_of(model.rest_configuration).section_tips
    line = np.vstack([np.zeros(3), tips[:, :3, 3]])
    tracker = MarkerTracker(
        config,
        calibration.stereo_cameras(),
        build_marker_expectation(rig, CAMERAS).positions,
    )
    found = []
    for exposure in range(1, EXPOSURES + 1):
        images = server.draw(tips, line)
        seen = tracker.see(round(1e9 * exposure / 50.0), images['left'], images['right'])
        found.append([body.pose[:3, 3] for body in seen.bodies])
    sensor = seeing_alike(rig, 0).plant.mocap
    turn, shift = np.radians(sensor.frame_turn_deg), np.array(sensor.frame_shift_m)
    places = tips[:, :3, 3]
    wanted = places + np.cross(turn, places) + shift
    off = np.mean(found, axis=0) - places
    assert off.shape == places.shape
    assert np.linalg.norm(off, axis=1).max() > 2e-4
    assert np.linalg.norm(off - (wanted - places)) < 0.5 * np.linalg.norm(off)


def test_emulated_cameras_of_bodies_are_refused_without_their_calibration_file(tmp_path):
    config = sensor_config(load_rig('hydraulic_arm'), CAMERAS)
    missing = tmp_path / 'hydraulic_arm.yaml'
    with pytest.raises(EmulationError, match=rf"^base_calibration = '{missing}': no such file"):
        setup_of(config.model_copy(update={'base_calibration': str(missing)}), 2, 0)


def test_calibration_error_is_below_1_5_mm_in_the_median_and_differs_by_seed():
    config = sensor_config(load_rig('pneumatic_arm'), CAMERAS)
    places = np.random.default_rng(0).uniform((-0.1, -0.1, 0.1), (0.1, 0.1, 0.3), (30, 3))
    errors = np.array([calibration_error(config, places, seed) for seed in range(30)])
    off = np.array([np.linalg.norm(e[:3, :3] @ places.T + e[:3, 3:] - places.T) for e in errors])
    rms = off / np.sqrt(len(places))
    assert 2e-4 < np.median(rms) < 1.5e-3
    assert len(np.unique(rms.round(9))) == 30
    turns = [np.linalg.norm(log_so3(e[:3, :3])) for e in errors]
    assert max(turns) < 1e-2


def test_rig_without_a_calibrated_sensor_is_unchanged():
    rig = load_rig('cable_arm')
    assert calibration_settings(rig, 0) == ()
    assert seeing_alike(rig, 0) is rig
