"""Opens the viewer in a headless browser; the viewer starts in the same way as for users."""

import contextlib
import shutil
import subprocess
import sys

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('viser', reason='needs viser')
pytest.importorskip('selenium.webdriver', reason='needs selenium')

CHROMIUM, DRIVER = shutil.which('chromium'), shutil.which('chromedriver')
START_S = 60.0
# Marks of every test that views a running arm in a browser.
BROWSER_MARKS = [
    pytest.mark.ros,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason='needs chromium and chromium-driver'),
]


@contextlib.contextmanager
def viewer_of(rig):
    """Start the viewer as users do; yield its address, including the token."""
    with subprocess.Popen(
        [sys.executable, '-m', 'softarm_ros.cli', 'view', rig],
        stdout=subprocess.PIPE,
        text=True,
    ) as viewer:
        try:
            found = next(line for line in viewer.stdout if ': http://127' in line)
            yield found.split(': ', 1)[1].split()[0]
        finally:
            viewer.terminate()
            rest = viewer.stdout.read()
            assert viewer.wait(20.0) == 0, rest


@contextlib.contextmanager
def opened(address, size=(1400, 1000)):
    """Open an address in a browser without a graphics card; close it at the end of the block."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (
        '--headless=new',
        '--no-sandbox',
        '--use-gl=angle',
        '--use-angle=swiftshader',
        '--enable-unsafe-swiftshader',
        '--window-size={},{}'.format(*size),
    ):
        options.add_argument(flag)
    shown = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        shown.set_script_timeout(START_S)
        shown.get(address)
        yield shown
    finally:
        shown.quit()


def press(browser, label):
    """Press a button as soon as it appears."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    by = (By.XPATH, f'//button[normalize-space()="{label}"]')
    WebDriverWait(browser, START_S).until(lambda shown: shown.find_elements(*by))
    browser.find_element(*by).click()


def choose(browser, label, option):
    """Choose an option in the list with this label."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    field = _labelled(browser, label)
    browser.execute_script('arguments[0].scrollIntoView(); arguments[0].click()', field)
    by = (By.XPATH, f'//*[@role="option"][normalize-space()="{option}"]')

    def shown(_):
        return [found for found in browser.find_elements(*by) if found.is_displayed()]

    WebDriverWait(browser, START_S).until(shown)[0].click()


def open_folder(browser, title):
    """Open a closed folder, and wait until it is open."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    heads = browser.find_elements(By.XPATH, f'//div[text()="{title}"][*[name()="svg"]]')
    head = next(found for found in heads if found.is_displayed())
    browser.execute_script('arguments[0].click()', head)
    whole = 'let box = arguments[0].nextElementSibling; return !box.inert && !box.style.height;'
    WebDriverWait(browser, START_S).until(lambda b: b.execute_script(whole, head))


def slide(browser, label, steps):
    """Move a slider by steps with the arrow keys; return its new value."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.wait import WebDriverWait

    # A slider's label has no input element: it is the first label in the slider's row.
    find = (
        'let row = t => { while (t && !t.querySelector("label")) t = t.parentElement; return t; };'
        'return [...document.querySelectorAll("[role=slider]")].find(t => t.offsetParent &&'
        ' row(t).querySelector("label").textContent === arguments[0]);'
    )
    thumb = WebDriverWait(browser, START_S).until(lambda b: b.execute_script(find, label))
    browser.execute_script('arguments[0].focus()', thumb)
    arrow = Keys.ARROW_RIGHT if steps > 0 else Keys.ARROW_LEFT
    ActionChains(browser).send_keys(arrow * abs(steps)).perform()
    return float(thumb.get_attribute('aria-valuenow'))


def _labelled(browser, label):
    """Return the input that a label belongs to."""
    find = (
        'return [...document.querySelectorAll("label")].filter(l => l.innerText === arguments[0])'
        '.map(l => document.getElementById(l.htmlFor)).find(i => i && i.offsetParent)'
    )
    found = browser.execute_script(find, label)
    assert found is not None, f'no field {label!r} is shown'
    return found


def text(browser):
    """Return the text of the page."""
    return browser.execute_script('return document.body.innerText')
