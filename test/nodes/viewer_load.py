"""
Measures the viewer's load on the loop and its drawing speed: `make view-load`.

Run it on a quiet computer. It first times the viewer's own loop with the 30-muscle arm and a
browser, then runs cable_arm over topics, alternately without a viewer and with three tabs on one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from browsing import opened, viewer_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ros_domain import own_domain

from softarm_ros.cli.viewer.app import Viewer
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.view_state import ViewState

RIG, MANY = 'cable_arm', 'pam_arm'
FRAMES, WANTED_HZ = 300, 30.0
TABS, GROWTH, MISSED = 3, 0.10, 0.001
RUN_S = 900.0


def main() -> int:
    """Print both results; return status 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--pairs', type=int, default=3, help='of runs: without and with a viewer')
    parser.add_argument('--frames-only', action='store_true', help='only how fast it draws')
    options = parser.parse_args()
    os.environ['ROS_DOMAIN_ID'] = str(own_domain())
    drawn = frames()
    return int(not drawn) if options.frames_only else int(not (loads(options.pairs) and drawn))


def frames() -> bool:
    """Draw states of the 30-muscle arm as fast as possible in a browser; return if fast enough."""
    rig = load_rig(MANY)
    configurations = rig.sample_configurations(np.random.default_rng(0), 4)
    between = np.linspace(0.0, len(configurations) - 1.0, FRAMES)
    path = np.stack([np.interp(between, range(4), c) for c in configurations.T], axis=1)
    took = []
    with Viewer(rig, 0, None) as viewer, opened(viewer.address):
        time.sleep(2.0)
        began = time.monotonic()
        for k, configuration in enumerate(path):
            at = time.monotonic()
            tip = np.array([0.1, 0.0, 0.9]) + 1e-4 * k
            state = ViewState(
                time_s=k / WANTED_HZ,
                configuration=configuration,
                measured=True,
                tip=tip,
                reference=tip + 0.001,
                error_m=0.001,
                command=configuration,
                position=configuration,
                state='running',
                phase='track',
            )
            viewer.show(state, state.time_s)
            took.append(1e3 * (time.monotonic() - at))
        rate = FRAMES / (time.monotonic() - began)
    p50, p99 = np.percentile(took, [50, 99])
    print(
        f'{MANY} in the viewer: {p50:.1f} ms a frame (p99 {p99:.1f}), {rate:.0f} frames/s if '
        f'nothing else is done; wanted {WANTED_HZ:.0f}',
        flush=True,
    )
    return bool(rate >= WANTED_HZ)


def loads(pairs: int) -> bool:
    """Run the arm alternately without and with a viewer; print the loop's latency of each run."""
    print('| viewer | p50, ms | p99, ms | missed of cycles |\n|---|---|---|---|')
    p99: dict[bool, list[float]] = {False: [], True: []}
    missed, cycles = 0, 0
    for _ in range(pairs):
        for watched in (False, True):
            summary = run(watched)
            loop = summary['loop']
            n = round(loop['rate_hz'] * summary['duration_s'])
            print(
                f'| {f"{TABS} tabs" if watched else "off"} | {loop["latency_ms"]["p50"]:.2f} | '
                f'{loop["latency_ms"]["p99"]:.2f} | {loop["missed"]} of {n} |',
                flush=True,
            )
            p99[watched].append(loop['latency_ms']['p99'])
            if watched:
                missed, cycles = missed + loop['missed'], cycles + n
    growth = float(np.median(p99[True]) / np.median(p99[False]) - 1.0)
    print(f'p99 grows by {100.0 * growth:.1f} % (median; limit {100.0 * GROWTH:.0f} %), '
          f'{100.0 * missed / cycles:.3f} % missed (limit {100.0 * MISSED:.1f} %)')  # fmt: skip
    return growth < GROWTH and missed < MISSED * cycles


def run(watched: bool) -> dict[str, object]:
    """Run `line_small` once, with or without a viewer; return the summary."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        if watched:
            address = stack.enter_context(viewer_of(RIG))
            page = stack.enter_context(opened(address))
            for _ in range(TABS - 1):
                page.switch_to.new_window('tab')
                page.get(address)
        summary = Path(folder) / 'run.json'
        words = ['run', RIG, '--trajectory', 'line_small', '--json', str(summary)]
        subprocess.run(
            [sys.executable, '-m', 'softarm_ros.cli', *words],
            check=True,
            timeout=RUN_S,
            stdout=subprocess.DEVNULL,
        )
        return json.loads(summary.read_text(encoding='utf-8'))


if __name__ == '__main__':
    sys.exit(main())
