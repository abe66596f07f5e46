"""The draggable target in the browser, its emergency stop, and refused requests."""

import contextlib
import http.client

import numpy as np
import pytest
from browsing import BROWSER_MARKS, opened, press, text, viewer_of
from node_bench import client_until, waiting

from softarm_ros.cli.viewer.standpoint import standpoint

pytestmark = [*BROWSER_MARKS, pytest.mark.wall_clock, pytest.mark.timeout(240)]


@pytest.fixture(scope='module')
def rig():
    from softarm_ros.rigs.loader import load_rig

    return load_rig('cable_arm')


@pytest.fixture(scope='module')
def bench(rig):
    with waiting(rig) as running:
        yield running


@pytest.fixture(scope='module')
def address(bench):
    with viewer_of('cable_arm') as found:
        yield found


@pytest.fixture
def browser(address):
    with opened(address, size=(1000, 600)) as shown:
        yield shown


@pytest.fixture
def client(bench, rig):
    from softarm_ros.nodes.goal_client import GoalClient

    with GoalClient(rig) as running:
        assert running.wait_until_heard(20.0) is None
        yield running


def pixel(browser, rig, point):
    """Return the window position of a point (3,) [m] for the initial camera of the viewer."""
    where = standpoint(rig.gravity_m_s2, rig.model().rest_length_m)
    eye, up = where.eye, where.up
    ahead = where.looks_at - eye
    ahead /= np.linalg.norm(ahead)
    right = np.cross(ahead, up)
    right /= np.linalg.norm(right)
    above = np.cross(right, ahead)
    box = browser.execute_script(
        'let all = [...document.querySelectorAll("canvas")].map(c => c.getBoundingClientRect());'
        'let b = all.reduce((x, y) => x.width * x.height > y.width * y.height ? x : y);'
        'return [b.left, b.top, b.width, b.height];'
    )
    tangent = np.tan(0.5 * np.radians(FIELD_OF_VIEW_DEG))
    d = np.asarray(point) - eye
    depth = d @ ahead
    scale = 0.5 * box[3] / (tangent * depth)
    return (
        box[0] + 0.5 * box[2] + scale * (d @ right),
        box[1] + 0.5 * box[3] - scale * (d @ above),
    )


FIELD_OF_VIEW_DEG = 75.0  # viser's default, vertical


def test_dragged_target_moves_the_reference_and_the_emergency_stop_cancels_its_goal(
    bench, browser, client, rig
):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.actions.action_builder import ActionBuilder

    bench.until(lambda: 'Go there' in text(browser), 60.0, 'controls in the browser')
    client.spin(2.0)  # the target is drawn where the reference is
    start = client.reference.copy()
    size = 0.25 * rig.model().rest_length_m
    axis = np.array([0.0, 1.0, 0.0])
    held = pixel(browser, rig, start + 0.6 * size * axis)
    aimed = pixel(browser, rig, start + (0.6 * size + 0.1) * axis)
    client.reports.clear()
    mouse = ActionBuilder(browser)
    pointer = mouse.pointer_action
    pointer.move_to_location(*map(round, held)).pause(1.0).pointer_down().pause(0.3)
    for share in np.linspace(0.1, 1.0, 10):
        x, y = (1.0 - share) * np.array(held) + share * np.array(aimed)
        pointer.move_to_location(round(x), round(y)).pause(0.1)
    pointer.pause(0.3).pointer_up()
    mouse.perform()
    client_until(client, lambda: client.reports, 10.0, 'a goal from the browser')
    client_until(
        client,
        lambda: np.linalg.norm(client.reference - start) > 0.01,
        30.0,
        'the reference moves',
    )
    client_until(
        client,
        lambda: {r.values['kind'] for r in client.reports} == {'stream', 'pose'},
        20.0,
        'a goal where the target was let go',
    )
    moved = client.reference - start
    assert moved[1] > 0.8 * np.linalg.norm(moved)
    assert bench.state == 'running'
    ActionChains(browser).reset_actions()
    press(browser, 'EMERGENCY STOP')
    bench.until(lambda: bench.state == 'fault', 5.0, 'emergency stop')
    stopped = bench.now_s()
    client_until(
        client, lambda: client.reports[-1].values['state'] == 'cancelled', 5.0, 'cancelled'
    )
    bench.spin(0.5)
    assert bench.moved_at - stopped < 0.2


UPGRADE = {
    'Upgrade': 'websocket',
    'Connection': 'Upgrade',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'c29mdGFybSBjbG9zZWQhIQ==',
}


def status(address, path, headers):
    """Return the HTTP status of a request for the page or its WebSocket."""
    host, port = address.split('/')[2].split(':')
    with contextlib.closing(http.client.HTTPConnection(host, int(port), timeout=20.0)) as link:
        link.request('GET', f'/{path}', headers=headers)
        return link.getresponse().status


@pytest.mark.parametrize('upgrade', [{}, UPGRADE])
def test_requests_without_the_token_or_from_another_origin_are_refused(address, upgrade):
    token = address.rsplit('/', 1)[1]
    for path, headers in (
        ('', {}),
        ('x' * len(token), {}),
        (token, {'Host': 'evil.example:8080'}),
        (token, {'Origin': 'http://evil.example'}),
        (token, {'Origin': 'null'}),
    ):
        assert status(address, path, {**upgrade, **headers}) == 403, (path, headers)
    origin = {'Origin': address.rsplit('/', 1)[0]}
    assert status(address, token, {**upgrade, **origin}) == (101 if upgrade else 200)
