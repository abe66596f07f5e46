"""A run started, controlled by sliders and lists, stopped and ended in the browser."""

import numpy as np
import pytest
from browsing import BROWSER_MARKS, choose, open_folder, opened, press, slide, text, viewer_of
from node_bench import READY_S, Bench, client_until

pytestmark = [*BROWSER_MARKS, pytest.mark.wall_clock, pytest.mark.timeout(400)]
HOLD_S = 0.2
STEPS = 6


@pytest.fixture(scope='module')
def rig():
    from softarm_ros.rigs.loader import load_rig

    return load_rig('cable_arm')


@pytest.fixture(scope='module')
def bench(rig):
    """Return a bench without nodes; the browser starts the arm."""
    with Bench(rig, []) as running:
        yield running


@pytest.fixture(scope='module')
def browser():
    with viewer_of('cable_arm') as address, opened(address) as shown:
        yield shown


@pytest.fixture(scope='module')
def client(bench, browser, rig):
    """Start a run that waits for goals in the browser; return a client beside it."""
    from softarm_ros.nodes.goal_client import GoalClient

    bench.until(lambda: 'simulated run' in text(browser), 60.0, 'pickers')
    choose(browser, 'trajectory', 'wait for goals')
    choose(browser, 'controller', 'damped_inverse')
    press(browser, 'Run')
    bench.until(lambda: bench.state == 'running', READY_S, 'a run begun in the browser')
    bench.until(lambda: '--goals --controller damped_inverse' in text(browser), 10.0, 'its words')
    with GoalClient(rig) as listening:
        assert listening.wait_until_heard(30.0) is None
        bench.until(lambda: 'Go there' in text(browser), 30.0, 'controls of goals')
        yield listening


def last(client, kind):
    """Return the last reported state of a goal of a kind."""
    said = [report.values['state'] for report in client.reports if report.values['kind'] == kind]
    return said[-1] if said else ''


def test_a_slider_sets_the_configuration(client, browser, bench, rig):
    name = rig.model().configuration_names[0]
    open_folder(browser, 'configuration')
    start = client.reference.copy()
    value = slide(browser, name, STEPS)
    limits = rig.configuration_limits()
    assert value == pytest.approx(STEPS * 2.0 * limits.max_bending_rad[0] / 200.0, rel=0.01)
    press(browser, 'Set configuration')
    client_until(client, lambda: last(client, 'configuration') == 'reached', 40.0, 'reached')
    client.spin(0.3)
    expected = rig.model().shape_of(np.array([value, 0.0, 0.0, 0.0])).tip[:3, 3]
    assert np.linalg.norm(expected - start) > 5e-3
    assert np.linalg.norm(client.reference - expected) < 2e-3
    assert bench.state == 'running'


def test_selected_trajectory_is_followed_and_the_emergency_stop_holds_the_arm_in_time(
    client, browser, bench
):
    client.reports.clear()
    press(browser, 'Drive')
    client_until(client, lambda: last(client, 'path') == 'active', 30.0, 'a path')
    start = client.reference.copy()
    client_until(client, lambda: np.linalg.norm(client.reference - start) > 0.01, 30.0, 'motion')
    press(browser, 'EMERGENCY STOP')
    bench.until(lambda: bench.state == 'fault', 5.0, 'emergency stop')
    stopped = bench.now_s()
    client_until(client, lambda: last(client, 'path') == 'cancelled', 5.0, 'cancelled')
    bench.spin(0.6)
    assert bench.moved_at - stopped < HOLD_S
    bench.until(lambda: 'the run has ended' in text(browser), 30.0, 'the end of a run at fault')


def test_browser_starts_and_ends_a_run(client, browser, bench):
    press(browser, 'Run')
    bench.until(lambda: bench.state == 'running', READY_S, 'another run')
    press(browser, 'End run')
    bench.until(lambda: 'the run has ended' in text(browser), 30.0, 'the end of the run')
    ended = bench.now_s()
    bench.spin(1.5)
    assert bench.state_at < ended + 0.5  # its nodes are silent
    bench.until(lambda: 'no graph is running' in text(browser), 20.0, 'its absence')
