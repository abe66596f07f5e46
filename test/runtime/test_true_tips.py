"""Records contain the true tip of a simulated arm; nothing that controls the arm uses it."""

import ast
from pathlib import Path

import numpy as np
import pytest

import softarm_ros
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.direct import run_direct
from softarm_ros.runtime.true_tips import TrueTips

# Names that give access to the true tip, and the modules that may use them.
TRUTH = {'poll_true_tips', 'true_section_tips', 'true_centerline', 'TRUE_TIP_TOPIC', 'plant/tip'}
KNOWS = {
    'nodes/pose_publisher.py',  # the topic
    'nodes/run_monitor.py',  # the record of a run
    'runtime/direct.py',
    'runtime/supervised_run.py',
    'runtime/warm_up.py',  # compiles them
}


def names_in(file: Path) -> set[str]:
    """Return attributes, names and texts that a module uses, except in docstrings."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def test_only_listed_modules_access_the_true_tip():
    package = Path(softarm_ros.__file__).parent
    rooms = ('control', 'drivers', 'perception', 'models', 'runtime', 'nodes', 'plant')
    knows = {
        str(file.relative_to(package))
        for room in rooms
        for file in (package / room).rglob('*.py')
        if TRUTH & names_in(file)
    }
    assert knows == KNOWS


def test_true_tips_are_interpolated_between_exposures_and_unknown_outside():
    truth = TrueTips()
    assert not truth
    assert np.all(np.isnan(truth.at(np.array([0.0]))))
    truth.add([(0.1, np.array([1.0, 2.0, 3.0])), (0.0, np.zeros(3))])
    np.testing.assert_allclose(
        truth.at(np.array([-0.01, 0.0, 0.05, 0.1, 0.11])),
        [[np.nan] * 3, [0.0] * 3, [0.5, 1.0, 1.5], [1.0, 2.0, 3.0], [np.nan] * 3],
    )


@pytest.mark.parametrize('delay_s', [0.0, 0.02])
def test_exact_measurement_equals_the_true_tip_at_its_exposure(delay_s):
    """Exact cameras measure the truth, whenever the measurement arrives."""
    exact = [
        *('plant.pose_sensor.position_noise_m=0', 'plant.pose_sensor.orientation_noise_rad=0'),
        f'plant.pose_sensor.delay_s={delay_s}',
    ]
    run = run_direct(load_rig('cable_arm', settings=exact), 'line_small')
    rows = run.samples.tracking
    tip, true_tip = run.samples.tip[rows], run.samples.true_tip[rows]
    np.testing.assert_allclose(tip, true_tip, rtol=0.0, atol=1e-9)
    summary = run.summary()
    assert summary['tracking_error_m'] == pytest.approx(summary['measured_error_m'], abs=1e-9)


def test_wrong_base_frame_shows_in_the_true_error_but_not_in_the_measured_one():
    """The loop takes the measured tip to the reference, so it cannot see this error."""
    run = run_direct(
        load_rig('cable_arm', settings=['plant.pose_sensor.frame_turn_deg=[2.0, 0.0, 0.0]']),
        'line_small',
    )
    error, measured = run.error(), run.measured_error()
    tips = run.samples.true_tip[run.samples.tracking]
    # Turned about x by 2 degrees: 0.035 of the distance from this axis.
    turned = np.deg2rad(2.0) * np.mean(np.hypot(tips[:, 1], tips[:, 2]))
    assert turned > 0.004
    assert error.mean == pytest.approx(turned, rel=0.15)
    assert measured.mean < 0.0015
    summary = run.summary()
    assert summary['tracking_error_of'] == 'true tip'
    assert summary['tracking_error_m']['mean'] == error.mean
    assert summary['measured_error_m']['mean'] == measured.mean
