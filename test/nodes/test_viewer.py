"""The viewer beside a running arm, in a real browser: looked at, stopped, and no burden."""

import shutil
import subprocess
import sys
import time

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('viser', reason='needs viser')
webdriver = pytest.importorskip('selenium.webdriver', reason='needs selenium')

from node_bench import circling

CHROMIUM, DRIVER = shutil.which('chromium'), shutil.which('chromedriver')
pytestmark = [
    pytest.mark.ros,
    pytest.mark.wall_clock,
    pytest.mark.timeout(180),
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason='needs chromium and chromium-driver'),
]
HOLD_S = 0.2
START_S = 60.0


@pytest.fixture(scope='module')
def bench(tmp_path_factory):
    with circling(tmp_path_factory.mktemp('viewer'), speed=0.03) as running:
        yield running


@pytest.fixture(scope='module')
def address(bench):
    """Start the viewer as its users do; return where it is."""
    with subprocess.Popen(
        [sys.executable, '-m', 'softarm_ros.cli', 'view', 'cable_arm'],
        stdout=subprocess.PIPE,
        text=True,
    ) as viewer:
        try:
            found = next(line for line in viewer.stdout if line.startswith('cable_arm: http'))
            yield found.split()[1]
        finally:
            viewer.terminate()
            rest = viewer.stdout.read()
            assert viewer.wait(20.0) == 0, rest


@pytest.fixture
def browser(address):
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (
        '--headless=new',
        '--no-sandbox',
        '--use-gl=angle',
        '--use-angle=swiftshader',
        '--enable-unsafe-swiftshader',
        '--window-size=1400,1000',
    ):
        options.add_argument(flag)
    shown = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        shown.get(address)
        yield shown
    finally:
        shown.quit()


def press(browser, label):
    """Press a button, once it is there."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    by = (By.XPATH, f'//button[normalize-space()="{label}"]')
    WebDriverWait(browser, START_S).until(lambda shown: shown.find_elements(*by))
    browser.find_element(*by).click()


def text(browser):
    return browser.execute_script('return document.body.innerText')


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


def test_a_tab_that_is_closed_changes_nothing(bench, browser, address):
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
