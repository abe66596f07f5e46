"""A headless browser on a viewer that was started as its users start it."""

import contextlib
import shutil
import subprocess
import sys

CHROMIUM, DRIVER = shutil.which('chromium'), shutil.which('chromedriver')
BROWSER = bool(CHROMIUM and DRIVER)
START_S = 60.0


@contextlib.contextmanager
def viewer_of(rig):
    """Start the viewer as its users do; yield its address, the token in it."""
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
    """Open an address in a browser without a graphics card, and close it with the block."""
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
    """Press a button, once it is there."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    by = (By.XPATH, f'//button[normalize-space()="{label}"]')
    WebDriverWait(browser, START_S).until(lambda shown: shown.find_elements(*by))
    browser.find_element(*by).click()


def text(browser):
    """Return what is written in the page."""
    return browser.execute_script('return document.body.innerText')
