"""Goals that the browser's controls send, on a viser server without a browser."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest

viser = pytest.importorskip('viser', reason='needs viser')

from softarm_ros.cli.viewer.app import in_order
from softarm_ros.cli.viewer.goals import GoalControls
from softarm_ros.rigs.loader import load_rig

TIP = np.array([0.01, 0.02, 0.24])


class Sent(list):
    """Records the sent goals with their kind."""

    def pose(self, position):
        self.append(('pose', np.array(position)))

    def stream(self, position):
        self.append(('stream', np.array(position)))

    def path(self, points):
        self.append(('path', np.array(points)))

    def configuration(self, values):
        self.append(('configuration', np.array(values)))


@pytest.fixture
def controls():
    server = viser.ViserServer(host='127.0.0.1', port=8260, verbose=False)
    sent, said = Sent(), []
    made = GoalControls(server, load_rig('cable_arm'), sent, said.append)
    made.sent, made.said = sent, said
    yield made
    server.stop()


def drag(controls, phase, place):
    controls._target.position = tuple(place)
    asyncio.run(controls._on_drag(SimpleNamespace(phase=phase)))
    controls.send()


def type_in(controls, *values):
    for field, value in zip(controls._fields.values(), values):
        field.value = value
    asyncio.run(controls._on_go(None))
    controls.send()


def test_no_goal_is_sent_if_no_goals_are_accepted(controls):
    controls.show(False, '', TIP, np.zeros(4))
    drag(controls, 'update', TIP)
    drag(controls, 'end', TIP)
    assert controls.sent == []
    assert not controls._target.visible


def test_a_drag_streams_positions_and_ends_with_a_pose_goal(controls):
    controls.show(True, '', TIP, np.zeros(4))
    np.testing.assert_allclose(controls._target.position, TIP)
    drag(controls, 'start', TIP)
    drag(controls, 'update', TIP + 0.01)
    controls.send()  # the hand rests, the stream continues
    controls.show(True, 'stream 1', TIP, np.zeros(4))
    np.testing.assert_allclose(controls._target.position, TIP + 0.01)
    drag(controls, 'end', TIP + 0.02)
    controls.send()
    assert [kind for kind, _ in controls.sent] == ['stream', 'stream', 'stream', 'pose']
    np.testing.assert_allclose(controls.sent[-1][1], TIP + 0.02)


@pytest.mark.parametrize('later', [(), ('update', 'end'), ('end',)])
def test_a_drag_ends_when_the_arm_may_not_move(controls, later):
    controls.show(True, '', TIP, np.zeros(4))
    drag(controls, 'start', TIP)
    controls.show(False, '', TIP, np.zeros(4))  # stopped: the target is hidden
    controls.sent.clear()
    drag(controls, 'start', TIP)  # was on its way
    controls.show(True, '', TIP, np.zeros(4))
    for phase in later:
        drag(controls, phase, TIP + 0.02)
    controls.send()
    assert controls.sent == []


def test_typed_numbers_are_millimetres(controls):
    controls.show(True, '', TIP, np.zeros(4))
    type_in(controls, '40', '0', '235')
    ((kind, place),) = controls.sent
    assert kind == 'pose'
    np.testing.assert_allclose(place, (0.04, 0.0, 0.235))


def test_a_press_right_after_a_change_is_refused_because_a_browser_may_have_lost_its_end(controls):
    controls.show(True, '', TIP, np.zeros(4))
    asyncio.run(controls._on_edit(SimpleNamespace(client_id=0)))
    type_in(controls, '4', '0', '235')
    assert controls.sent == []
    (said,) = controls.said
    assert 'nothing was sent' in said
    assert [field.value for field in controls._fields.values()] == ['4', '0', '235']
    controls._edited_s -= 1.0
    type_in(controls, '40')
    assert len(controls.sent) == len(controls.said) == 1


def test_the_fields_show_the_place_that_was_sent(controls):
    """A browser may lose the end of what is typed; then its fields show something else."""
    controls.show(True, '', TIP, np.zeros(4))
    type_in(controls, '3', '-2.51', '240')
    assert [field.value for field in controls._fields.values()] == ['3.0', '-2.5', '240.0']


def test_coordinates_that_are_not_typed_stay_those_of_the_target(controls):
    controls.show(True, '', TIP, np.zeros(4))
    type_in(controls, '40.5')
    ((_, place),) = controls.sent
    np.testing.assert_allclose(place, (0.0405, *TIP[1:]))
    drag(controls, 'start', TIP)
    drag(controls, 'end', TIP + 0.02)
    type_in(controls, '-0.4')
    np.testing.assert_allclose(controls.sent[-1][1], (-0.0004, *(TIP[1:] + 0.02)))


@pytest.mark.parametrize('written', ['', '40,5', 'nan', '1e999', '-', '4_0'])
def test_a_typed_text_that_is_not_a_number_is_reported_and_not_sent(controls, written):
    controls.show(True, '', TIP, np.zeros(4))
    type_in(controls, written)
    assert controls.sent == []
    assert controls.said == [f'x [mm]: {written!r} is no number, such as 40.5; nothing was sent']


def test_sliders_start_at_the_command_and_send_within_limits_if_no_goal_is_active(controls):
    controls.show(True, '', TIP, np.array([0.1, 0.2, 0.0, -0.1]))
    np.testing.assert_allclose([s.value for s in controls._sliders], [0.1, 0.2, 0.0, -0.1])
    for slider in controls._sliders:
        slider.value = slider.max
    controls._on_configuration(None)
    controls.show(True, 'pose 3', TIP, np.zeros(4))
    controls.send()
    assert controls.sent == []
    assert 'pose 3 is under way' in controls.said[-1]
    controls.show(True, '', TIP, np.zeros(4))
    controls._on_configuration(None)
    controls.send()
    ((kind, values),) = controls.sent
    assert kind == 'configuration'
    rig = load_rig('cable_arm')
    rig.configuration_limits().check(values, rig.model().configuration_names)


def test_a_trajectory_of_the_rig_is_sent_as_a_path(controls):
    controls.show(True, '', TIP, np.zeros(4))
    controls._driven.value = 'circle'
    controls._on_drive(None)
    controls.send()
    ((kind, points),) = controls.sent
    assert kind == 'path'
    circle = load_rig('cable_arm').trajectories['circle']
    away = np.linalg.norm(points - np.array(circle.center), axis=1)
    np.testing.assert_allclose(away, circle.radius, atol=1e-9)
    np.testing.assert_allclose(points[0], points[-1], atol=1e-9)


def test_an_emergency_stop_discards_earlier_requests():
    assert in_order(['start', 'stop']) == ['start', 'stop']
    assert in_order(['start', 'estop', 'reset']) == ['estop', 'reset']
    assert in_order(['estop', 'reset', 'start', 'estop']) == ['estop']
