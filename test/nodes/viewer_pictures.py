"""
Takes pictures of the viewer for docs/images: arms on their paths, or a bag, in a browser.

`make view-pictures` takes all arms; name rigs to take some, or give `--bag BAG` for a recorded
run. The arms are simulated with their supervisor in this process, so a picture is the same on any
computer; viewer and page are those of `softarm view`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from browsing import opened, text, viewer_of
from PIL import Image
from selenium.webdriver.common.by import By

from softarm_ros.cli.viewer.app import Viewer
from softarm_ros.cli.viewer.standpoint import standpoint
from softarm_ros.control.supervisor import SafetyState
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.loop import Phase
from softarm_ros.runtime.supervised_run import SupervisedArm
from softarm_ros.runtime.view_state import NodeHealth, ViewState

ROOT = Path(__file__).resolve().parents[2]
RIGS = (
    'cable_arm',
    'cable_arm_single',
    'hydraulic_arm',
    'pneumatic_arm',
    'fishbone_arm',
    'pam_arm',
    'trunk',
)
SIZE = (1200, 820)
START_S, TRACKED_S, PLAYED_S = 0.5, 12.0, 20.0
STEP_S = 0.1
PATH_POINTS = 300
NEARNESS = 1.33  # how much closer than the viewer's first standpoint
PAGE_S, DRAWN_S = 120.0, 4.0  # long, since the page is drawn without a graphics card
COLOURS = 96  # of a PNG; enough for the shades of a tube and the text


def main() -> int:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('rigs', nargs='*', default=list(RIGS))
    parser.add_argument('--bag', type=Path, help='looked at after twenty seconds')
    options = parser.parse_args()
    for name in [] if options.bag else options.rigs:
        rig = load_rig(name)
        with Viewer(rig, 0, lambda asked: None) as viewer:
            shown = -np.inf
            arm = SupervisedArm(rig)
            viewer.scene.show_path(arm.loop.path(PATH_POINTS))
            for state in driven(arm):
                if state.time_s >= shown + STEP_S:
                    shown = state.time_s
                    viewer.show(state, shown)
            viewer.panel.plot(viewer.history)
            viewer.look_from(standpoint(rig.gravity_m_s2, viewer.scene.length_m, NEARNESS))
            with opened(viewer.address, SIZE) as page:
                wait_for(page, 'track, lap')
                time.sleep(DRAWN_S)
                keep(page, f'viewer_{name}.png')
    if options.bag:
        with viewer_of(str(options.bag)) as address, opened(address, SIZE) as page:
            wait_for(page, 'time [s]')
            time.sleep(PLAYED_S)
            keep(page, 'viewer.png')
    return 0


def driven(arm: SupervisedArm) -> Iterator[ViewState]:
    """Yield states of a simulated arm from its start until `TRACKED_S` after tracking begins."""
    tracked = np.inf
    while arm.now_s < tracked + TRACKED_S:
        output = arm.cycle()
        for _ in range(arm.looks):
            arm.advance()
        if arm.status.state is SafetyState.READY and arm.now_s > START_S:
            arm.start()
        if output.phase is Phase.TRACK:
            tracked = min(tracked, arm.now_s)
        actuators, tips = arm.plant.actuator_state(), arm.plant.true_section_tips()[:, :3, 3]
        led = output.phase is Phase.TRACK
        yield ViewState(
            time_s=arm.now_s,
            configuration=output.configuration,
            tip=tips[-1],
            reference=output.reference_position,
            error_m=float(np.linalg.norm(tips[-1] - output.reference_position)) if led else None,
            command=output.actuation,
            position=actuators.position,
            effort=actuators.effort,
            sections=tips,
            state=arm.status.state.value,
            reason=arm.status.reason,
            phase=output.phase.value,
            lap=output.lap,
            progress=output.progress,
            nodes=(NodeHealth('tracker', 0, output.phase.value),),
        )


def wait_for(page, words):
    """Wait until the page shows a text."""
    end = time.monotonic() + PAGE_S
    while words not in text(page):
        if time.monotonic() > end:
            raise SystemExit(f'{words!r} not within {PAGE_S:g} s; the page says: {text(page)}')
        time.sleep(0.5)


def keep(page, name):
    """Write a small PNG of the page."""
    for close in page.find_elements(By.CSS_SELECTOR, '.mantine-Notification-closeButton'):
        close.click()  # the notification that there is no graphics card
    time.sleep(1.0)
    path = ROOT / 'docs' / 'images' / name
    page.save_screenshot(str(path))
    with Image.open(path) as shown:
        small = shown.convert('RGB').quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    print(f'{path.relative_to(ROOT)}: {path.stat().st_size / 1e3:.0f} kB', flush=True)


if __name__ == '__main__':
    sys.exit(main())
