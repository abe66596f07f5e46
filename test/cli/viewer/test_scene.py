"""The scene on a real viewer server, without a browser."""

import html
from dataclasses import replace

import numpy as np
import pytest

viser = pytest.importorskip('viser', reason='needs viser')

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.viewer.app import Place, Viewer
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.view_state import NO_SUPERVISOR, NodeHealth, ViewState


@pytest.fixture(scope='module')
def rig():
    return load_rig('cable_arm')


@pytest.fixture
def viewer(rig):
    asked = []
    with Viewer(rig, 0, asked.append) as shown:
        shown.asked = asked
        yield shown


def body(viewer):
    return np.concatenate([mesh.vertices for mesh in viewer.scene._bodies])


def test_the_viewer_listens_on_this_computer_only(viewer):
    assert viewer.address.startswith('http://127.0.0.1:')
    assert viewer.server.get_host() == '127.0.0.1'


def test_the_viewer_listens_at_another_address_if_asked_and_refuses_a_foreign_one(rig):
    with Viewer(rig, 0, None, host='127.0.0.2') as viewer:
        assert viewer.address.startswith('http://127.0.0.2:')
        assert viewer.server.get_host() == '127.0.0.2'
    with pytest.raises(UsageError, match=r'--host 192\.0\.2\.1: expected an IPv4 address'):
        Viewer(rig, 0, None, host='192.0.2.1')


def test_no_address_without_the_token_is_printed(rig, capfd):
    with Viewer(rig, 0, None):
        assert 'http://' not in capfd.readouterr().out


def test_page_of_an_ended_viewer_keeps_the_last_state_and_states_that_it_ended(rig):
    with Viewer(rig, 0, None) as viewer:
        viewer.show(ViewState(state='fault', reason='emergency stop'), 0.0)
    words = viewer.panel._state.content
    assert 'has ended' in words
    assert 'cable_arm: fault' in words


def test_body_follows_the_configuration(viewer, rig):
    model = rig.model()
    configuration = model.rest_configuration + 0.4
    before = body(viewer)
    viewer.show(ViewState(configuration=configuration, measured=True), 0.0)
    tip = model.shape_of(configuration).tip[:3, 3]
    distance = np.linalg.norm(body(viewer) - tip, axis=1)
    assert np.min(distance) < 1e-6  # the middle of the last cap
    assert np.min(np.linalg.norm(before - tip, axis=1)) > 0.01


def test_an_empty_state_leaves_the_body_and_shows_no_tip(viewer):
    before = body(viewer)
    viewer.show(ViewState(), 0.0)
    assert np.array_equal(before, body(viewer))
    assert not viewer.scene._tip.visible


def test_a_configuration_that_the_model_refuses_leaves_the_last_shape():
    with Viewer(load_rig('fishbone_arm'), 0, None) as viewer:
        before = body(viewer)
        tensions = np.full(len(load_rig('fishbone_arm').actuators), 100.0)
        viewer.show(ViewState(configuration=tensions, tip=np.zeros(3)), 0.0)
        assert np.array_equal(before, body(viewer))
        assert viewer.scene._tip.visible


def test_strands_are_coloured_by_the_share_of_their_range(viewer, rig):
    limits = rig.actuator_limits()
    command = limits.position_min.copy()
    command[0] = limits.position_max[0]
    rest = rig.model().rest_configuration
    viewer.show(ViewState(configuration=rest, command=command), 0.0)
    colours = viewer.scene._lines.colors
    most, least = (255.0 * (colours[i, 0] / 255.0) ** (1.0 / 2.2) for i in (0, -1))
    assert most == pytest.approx([215, 48, 39], abs=3.0)  # red: the upper limit
    assert least == pytest.approx([70, 110, 170], abs=3.0)  # blue: the lower limit


def test_tip_trail_and_error_vector_follow_the_states(viewer):
    tip, wanted = np.array([0.1, 0.0, 0.2]), np.array([0.1, 0.01, 0.2])
    viewer.show(ViewState(tip=tip, reference=wanted), 0.0)
    viewer.show(ViewState(tip=tip + 0.01, reference=wanted), 0.1)
    assert viewer.scene._tip.position == pytest.approx(tip + 0.01)
    assert viewer.scene._travelled.points == pytest.approx(np.array([[tip, tip + 0.01]]))
    assert viewer.scene._error.points == pytest.approx(np.array([[tip + 0.01, wanted]]))
    viewer.scene.forget_trail()
    viewer.show(ViewState(tip=tip), 0.2)
    assert not viewer.scene._travelled.visible
    assert not viewer.scene._error.visible


def test_other_models_are_overlaid_and_removed(viewer, rig):
    state = ViewState(position=np.zeros(len(rig.actuators)))
    viewer.scene.overlay(['constant_curvature'])
    viewer.show(state, 0.0)
    ghost = viewer.scene._ghosts['constant_curvature']
    expected = rig.model('constant_curvature').forward(state.position).tip[:3, 3]
    assert ghost.points[-1, 1] == pytest.approx(expected, abs=1e-6)
    viewer.scene.overlay([])
    assert viewer.scene._ghosts == {}


def test_command_to_start_the_arm_contains_its_settings():
    settings = ['gravity_m_s2=[0, 0, 0]', 'tip_load_kg=0.01']
    with Viewer(load_rig('cable_arm', settings), 0, None) as viewer:
        viewer.show(ViewState(), 0.0)
        words = html.unescape(viewer.panel._state.content)
    assert "softarm run cable_arm --set 'gravity_m_s2=[0, 0, 0]' --set tip_load_kg=0.01<" in words


@pytest.mark.parametrize('beside', [False, True])
def test_viewer_continues_and_reports_a_model_that_fails(viewer, rig, monkeypatch, beside):
    def fail(*_):
        raise ZeroDivisionError('of a part')

    name = 'constant_curvature' if beside else None
    monkeypatch.setattr(type(rig.model(name)), 'forward' if beside else 'shape_of', fail)
    viewer.scene.overlay(['constant_curvature'] if beside else [])
    tip = np.array([0.1, 0.0, 0.2])
    known = rig.model().rest_configuration
    state = ViewState(state='running', configuration=known, measured=True, tip=tip)
    viewer.show(replace(state, position=np.zeros(len(rig.actuators))), 0.0)
    assert 'not drawn: ZeroDivisionError: of a part' in viewer.panel._state.content
    assert viewer.scene._tip.visible
    monkeypatch.undo()
    viewer.show(state, 0.1)
    assert 'not drawn' not in viewer.panel._state.content


def test_viewer_reports_another_model_that_cannot_be_built(viewer, rig, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError('of a part')

    monkeypatch.setattr(type(rig), 'model', fail)
    viewer._chosen.put(['constant_curvature'])
    viewer.show(ViewState(state='running'), 0.0)
    assert 'not drawn: ZeroDivisionError: of a part' in viewer.panel._answer.content
    assert 'running' in viewer.panel._state.content


@pytest.mark.parametrize(
    ('goal', 'shown'),
    [(None, 'lap 3, 25 %'), ('', 'no goal is under way'), ('pose 3', 'pose 3')],
)
def test_the_panel_shows_laps_of_a_trajectory_or_the_goal_under_way(viewer, goal, shown):
    viewer.show(ViewState(state='running', phase='track', lap=2, progress=0.25, goal=goal), 0.0)
    assert f'<div>track, {shown}</div>' in viewer.panel._state.content


def test_the_panel_shows_steps_of_a_task(viewer):
    state = ViewState(state='running', phase='track', lap=2, counts='step', progress=0.25)
    viewer.show(state, 0.0)
    assert '<div>track, step 3, 25 %</div>' in viewer.panel._state.content


def test_the_panel_shows_state_reason_and_health_of_nodes(viewer):
    viewer.show(
        ViewState(
            state='fault',
            reason='pose 132 ms old <limit 120>',
            phase='held',
            nodes=(NodeHealth('tracker', 2, 'silent'),),
        ),
        0.0,
    )
    words = viewer.panel._state.content
    assert 'cable_arm: fault' in words
    assert 'pose 132 ms old &lt;limit 120&gt;' in words
    assert 'no configuration is known: the arm is drawn at rest' in words
    assert 'tracker' in viewer.panel._nodes.content
    viewer.show(ViewState(), 0.1)
    assert 'softarm run cable_arm' in viewer.panel._state.content
    viewer.show(ViewState(state=NO_SUPERVISOR), 2.0)
    words = viewer.panel._state.content
    assert 'the supervisor is silent' in words and 'softarm run' not in words


def test_plots_leave_out_unknown_values(viewer, rig):
    for i in range(5):
        error_m = None if i == 0 else 1e-3 * i
        command = np.full(len(rig.actuators), 1e-3 * i)
        viewer.history.add(0.1 * i, ViewState(error_m=error_m, command=command))
    viewer.panel.plot(viewer.history)
    times, error = viewer.panel._error.data
    assert times == pytest.approx([-0.3, -0.2, -0.1, 0.0])
    assert error == pytest.approx([1.0, 2.0, 3.0, 4.0])
    assert len(viewer.panel._commands.data[0]) == 5
    assert len(viewer.panel._latency.data[0]) == 1  # no latency is known: unchanged


def test_plots_show_any_six_of_thirty_actuators_and_the_last_group_is_full():
    muscles = load_rig('pam_arm')
    names = muscles.actuator_limits().names
    with Viewer(muscles, 0, None) as viewer:
        for i in range(3):
            command = 1e-3 * (np.arange(30) + 100.0 * i)
            viewer.history.add(0.1 * i, ViewState(command=command, configuration=command))
        panel = viewer.panel
        panel.plot(viewer.history)
        assert panel._commands.data[6] == pytest.approx([5.0, 105.0, 205.0])
        panel._choice.value = f'{names[12]} to {names[17]}'
        assert [line['label'] for line in panel._commands.series[1:]] == list(names[12:18])
        assert panel._commands.data[1] == pytest.approx([12.0, 112.0, 212.0])
        assert panel._configuration.data[6] == pytest.approx([0.017, 0.117, 0.217])
    with Viewer(load_rig('fishbone_arm'), 0, None) as viewer:
        panel, names = viewer.panel, load_rig('fishbone_arm').actuator_limits().names
        assert len(names) == 8
        panel._choice.value = panel._choice.options[-1]
        assert [line['label'] for line in panel._commands.series[1:]] == list(names[2:])
        assert len(panel._configuration.series) == len(panel._configuration.data)


def test_the_panel_names_actuators_at_their_limits(viewer, rig):
    limits = rig.actuator_limits()
    command = 0.5 * (limits.position_min + limits.position_max)
    viewer.show(ViewState(state='running', command=command), 0.0)
    assert 'limits reached' not in viewer.panel._state.content
    command = command.copy()
    command[1], command[2] = limits.position_max[1], limits.position_min[2]
    viewer.show(ViewState(state='running', command=command), 0.1)
    words = viewer.panel._state.content
    assert f'{limits.names[1]} at its most, {limits.names[2]} at its least' in words


def test_measured_section_tips_and_section_rings_are_drawn(viewer, rig):
    model = rig.model()
    configuration = model.rest_configuration + 0.3
    tips = model.shape_of(configuration).section_tips
    sections = tips[:, :3, 3] + 0.002
    viewer.show(ViewState(configuration=configuration, measured=True, sections=sections), 0.0)
    assert viewer.scene._measured.points == pytest.approx(sections, abs=1e-6)
    rings = viewer.scene._disks.points.reshape(len(tips), -1, 3)
    radii = rig.body_radii_m()
    for ring, tip, radius in zip(rings, tips, radii):
        away = np.linalg.norm(ring - tip[:3, 3], axis=1)
        assert np.max(np.abs(away - 1.06 * radius)) < 0.15 * radius
    viewer.show(ViewState(configuration=configuration), 0.1)
    assert not viewer.scene._measured.visible


def test_obstacles_of_the_rig_file_are_drawn():
    box = {'name': 'wall', 'centre_m': [0.1, 0.2, 0.3], 'size_m': [0.4, 0.02, 0.6]}
    rig = load_rig('cable_arm', [f'obstacles={[{**box, "turn_deg": [0.0, 0.0, 90.0]}]}'])
    with Viewer(rig, 0, None) as viewer:
        drawn = viewer.server.scene.get_handle_by_name('/obstacles/wall')
        assert drawn.position == pytest.approx([0.1, 0.2, 0.3])
        assert drawn.dimensions == pytest.approx([0.4, 0.02, 0.6])
        assert drawn.wxyz == pytest.approx([0.5**0.5, 0.0, 0.0, 0.5**0.5])


def test_plots_need_no_heartbeat_of_a_tracker(viewer):
    for k in range(3):
        viewer.show(ViewState(command=np.full(6, 1e-3 * k), state='recorded'), 0.2 * k)
    assert len(viewer.history.columns().times) == 3


def test_playback_speed_does_not_depend_on_the_frame_time():
    place = Place(10.0)
    for _ in range(90):
        place.go_on(place.shown_s, 1.0 / 30.0)
    assert place.shown_s == pytest.approx(3.0)
    place.go_on(place.shown_s, 0.4)
    assert place.shown_s == pytest.approx(3.4)
    place.go_on(7.5, 0.0)  # moved while paused
    assert place.shown_s == 7.5
    place.go_on(7.5, 2.6)
    assert place.shown_s == 0.0
