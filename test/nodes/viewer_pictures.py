"""
Pictures of the viewer for docs/images, from running arms and a bag in a headless browser.

`make view-pictures`, or with names of rigs: each is run over topics, looked at after some seconds
of its path, and ended; the first is recorded, and its bag is looked at last.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from browsing import opened, text, viewer_of
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
RIGS = (
    'cable_arm',
    'cable_arm_single',
    'hydraulic_arm',
    'pneumatic_arm',
    'fishbone_arm',
    'pam_arm',
)
SIZE = (1200, 820)
START_S, TRACKED_S = 240.0, 10.0
COLOURS = 96  # of a PNG; a tube's shades and the text stay as they are


def main() -> int:
    """Make the pictures; status 1 if an arm did not run."""
    rigs = sys.argv[1:] or list(RIGS)
    with tempfile.TemporaryDirectory() as folder:
        bag = Path(folder) / 'bag'
        for rig in rigs:
            recorded = ['--bag', str(bag)] if rig == rigs[0] else []
            with running(rig, recorded), viewer_of(rig) as address, opened(address, SIZE) as page:
                wait_for(page, 'track, lap')
                time.sleep(TRACKED_S)
                keep(page, f'viewer_{rig}.png')
        with viewer_of(str(bag)) as address, opened(address, SIZE) as page:
            wait_for(page, 'time [s]')
            time.sleep(2.0 * TRACKED_S)
            keep(page, 'viewer.png')
    return 0


@contextlib.contextmanager
def running(rig, words):
    """Run a rig over topics until the block ends."""
    command = [sys.executable, '-m', 'softarm_ros.cli', 'run', rig, *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as run:
        try:
            yield
        finally:
            run.send_signal(signal.SIGINT)
            run.wait(60.0)


def wait_for(page, words):
    """Wait until the page shows words."""
    end = time.monotonic() + START_S
    while words not in text(page):
        if time.monotonic() > end:
            raise SystemExit(f'{words!r} not within {START_S:g} s; the page says: {text(page)}')
        time.sleep(0.5)


def keep(page, name):
    """Write a small PNG of the page."""
    path = ROOT / 'docs' / 'images' / name
    page.save_screenshot(str(path))
    with Image.open(path) as shown:
        small = shown.convert('RGB').quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    print(f'{path.relative_to(ROOT)}: {path.stat().st_size / 1e3:.0f} kB', flush=True)


if __name__ == '__main__':
    sys.exit(main())
