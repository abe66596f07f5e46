"""The viewer beside a running arm, in a real browser that shows and stops the arm."""

import contextlib
import time

import pytest
from browsing import BROWSER_MARKS, opened, press, text, viewer_of
from node_bench import circling

pytestmark = [*BROWSER_MARKS, pytest.mark.wall_clock, pytest.mark.timeout(180)]


@pytest.fixture(scope='module')
def bench(tmp_path_factory):
    with circling(tmp_path_factory.mktemp('viewer'), speed=0.03) as running:
        yield running


@pytest.fixture(scope='module')
def address(bench):
    with viewer_of('cable_arm') as found:
        yield found


@pytest.fixture
def browser(address):
    with opened(address) as shown:
        yield shown


def until_shown(bench, browser, words):
    bench.until(lambda: words in text(browser), 20.0, f'{words!r} in the browser')


def test_the_arm_is_shown_and_stopped_from_the_browser(bench, browser):
    bench.run()
    until_shown(bench, browser, 'cable_arm: running')
    began = bench.now_s()
    press(browser, 'EMERGENCY STOP')
    pressed = bench.now_s()
    bench.until(lambda: bench.state == 'fault', 5.0, 'emergency stop')
    bench.spin(0.5)
    moved = bench.moved_at - pressed
    print(f'still moving {1e3 * moved:.0f} ms after the click, which took {pressed - began:.2f} s')
    until_shown(bench, browser, 'emergency stop')
    stood = bench.now_s()
    press(browser, 'Reset')
    bench.until(lambda: bench.state in ('ready', 'stopped'), 5.0, 'reset')
    assert bench.moved_at < stood  # a reset alone moves nothing
    press(browser, 'Start')
    bench.until(lambda: bench.moved_at > stood, 10.0, 'motion')
    until_shown(bench, browser, 'cable_arm: running')


def test_emergency_stop_acts_when_the_button_goes_down(bench, browser):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    bench.run()
    until_shown(bench, browser, 'cable_arm: running')
    button = browser.find_element(By.XPATH, '//button[normalize-space()="EMERGENCY STOP"]')
    ActionChains(browser).click_and_hold(button).perform()
    bench.until(lambda: bench.state == 'fault', 5.0, 'emergency stop')
    bench.call('supervisor/reset')
    bench.until(lambda: bench.state == 'fault', 5.0, 'emergency stop while it is held')
    ActionChains(browser).release(button).perform()
    ready = ('ready', 'stopped')
    bench.until(
        lambda: bench.call('supervisor/reset') and bench.state in ready,
        10.0,
        'reset after release',
    )


def test_three_tabs_show_the_arm_and_one_stops_it_in_all(bench, browser, address):
    bench.run()
    for _ in range(2):
        browser.switch_to.new_window('tab')
        browser.get(address)
    for tab in browser.window_handles:
        browser.switch_to.window(tab)
        until_shown(bench, browser, 'cable_arm: running')
    missed = int(bench.values('tracker').get('missed', '0'))
    cycles = int(bench.values('tracker')['cycles'])
    bench.until(lambda: int(bench.values('tracker')['cycles']) > cycles + 300, 10.0, 'cycles')
    print(f'{int(bench.values("tracker").get("missed", "0")) - missed} cycles of 300 missed')
    press(browser, 'EMERGENCY STOP')  # in the last tab
    bench.until(lambda: bench.state == 'fault', 5.0, 'emergency stop')
    for tab in browser.window_handles:
        browser.switch_to.window(tab)
        until_shown(bench, browser, 'emergency stop')


def test_closed_tab_does_not_disturb_the_loop(bench, browser, address):
    bench.run()
    until_shown(bench, browser, 'running')
    browser.switch_to.new_window('tab')
    browser.get(address)
    until_shown(bench, browser, 'running')
    browser.close()
    browser.switch_to.window(browser.window_handles[0])
    cycles = int(bench.values('tracker')['cycles'])
    since = time.monotonic()
    bench.until(lambda: int(bench.values('tracker')['cycles']) > cycles + 200, 10.0, 'cycles')
    assert time.monotonic() - since < 5.0
    assert bench.state == 'running'
    until_shown(bench, browser, 'running')


def test_page_of_an_ended_viewer_states_that_it_ended_and_the_last_state(bench):
    bench.run()
    with contextlib.ExitStack() as after, contextlib.ExitStack() as viewer:
        browser = after.enter_context(opened(viewer.enter_context(viewer_of('cable_arm'))))
        until_shown(bench, browser, 'cable_arm: running')
        bench.call('supervisor/estop')
        bench.until(lambda: bench.state == 'fault', 5.0, 'emergency stop')
        viewer.close()
        until_shown(bench, browser, 'The viewer has ended')
        assert 'cable_arm: fault' in text(browser)
