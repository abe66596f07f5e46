"""
Apply the pose plausibility checks to real motion capture with flipped bodies.

`python -m softarm_reproduction.mocap_study DATA_DIR` reads the folder `asu_pneumatic` of
measurements. It prints for each run and body the share of rejected orientations, the largest turn
between neighbouring samples before and after the checks, and the number of rejected positions. It
also compares the bend of each segment from positions with that from accepted orientations.

For bends from positions, a segment consists of a rigid piece, an arc and a rigid piece in the
plane x-z; the lengths of the pieces are those stated by the source.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softarm_reproduction.data_folder import folder_of
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import inverse_pose, transforms_from_rows
from softarm_ros.perception.base_frame import BaseFollower
from softarm_ros.perception.config import PlausibilityConfig
from softarm_ros.perception.plausibility import Plausibility

BODIES = ('rb1', 'rb2', 'rb3')
MAX_BEND_DEG = 120.0  # for this arm, whose segments bend by at most 66 degrees
# Lengths [m] of the rigid pieces before and behind the arc of each segment.
PIECES = ((0.03721, 0.03192), (0.02199, 0.04633))


@dataclass(frozen=True)
class Run:
    """A recording: host times (n,) [s], and poses (n, 4, 4) of each body by name."""

    name: str
    time_s: Array
    poses: dict[str, Array]


@dataclass(frozen=True)
class Checked:
    """
    The result of the checks for one body in a run.

    Attributes
    ----------
    position, orientation : (n,)
        Whether each position and orientation was accepted.
    largest_deg : float
        Largest turn between neighbouring samples of the recording.
    accepted_deg : float
        Largest turn between neighbouring samples that are both accepted.
    across_deg : float
        Largest turn between successive accepted samples, across any gaps.

    """

    position: Array
    orientation: Array
    largest_deg: float
    accepted_deg: float
    across_deg: float

    @property
    def rejected(self) -> float:
        """Return the share of rejected orientations."""
        return float(1.0 - np.mean(self.orientation))


def read(path: Path) -> Run:
    """Read a recording from a CSV file."""
    with path.open(encoding='utf-8') as file:
        names = file.readline().strip().split(',')
    data = np.genfromtxt(path, delimiter=',', skip_header=1)
    poses = {}
    for body in BODIES:
        first = names.index(f'{body}_x_m')
        poses[body] = transforms_from_rows(data[:, first : first + 7])
    return Run(path.stem, data[:, names.index('time_s')], poses)


def turns_deg(poses: Array) -> Array:
    """Return the turns (n - 1,) [deg] between neighbours of poses (n, 4, 4)."""
    cosine = 0.5 * (np.einsum('nij,nij->n', poses[1:, :3, :3], poses[:-1, :3, :3]) - 1.0)
    found: Array = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
    return found


def check(run: Run) -> dict[str, Checked]:
    """Check each body: follow the base body, and judge the others in its frame."""
    count = len(run.time_s)
    accepted = {body: np.zeros((2, count), dtype=bool) for body in BODIES}
    base, plausibility = (
        BaseFollower(),
        Plausibility(PlausibilityConfig(max_bend_deg=MAX_BEND_DEG)),
    )
    for k, time_s in enumerate(run.time_s):
        wrong = base.update(float(time_s), run.poses['rb1'][k])
        accepted['rb1'][:, k] = wrong != 'jump', not wrong
        if base.pose is None:
            continue
        to_base = inverse_pose(base.pose)
        poses = {body: to_base @ run.poses[body][k] for body in BODIES[1:]}
        for body, verdict in plausibility.judge(float(time_s), poses).items():
            accepted[body][:, k] = verdict.position, verdict.orientation
    found = {}
    for body in BODIES:
        position, orientation = accepted[body]
        turns = turns_deg(run.poses[body])
        both = orientation[1:] & orientation[:-1]
        kept = run.poses[body][orientation]
        found[body] = Checked(
            position,
            orientation,
            float(turns.max()),
            float(turns[both].max(initial=0.0)),
            float(turns_deg(kept).max(initial=0.0)) if len(kept) > 1 else 0.0,
        )
    return found


def bend_from_positions(start: Array, heading: Array, end: Array, pieces: tuple) -> Array:
    """
    Return the bends (n,) [rad] of a segment from the positions of its ends.

    Parameters
    ----------
    start, end : (n, 2)
        Start and end in the plane: x and downwards [m].
    heading : (n,)
        Direction at the start, from downwards towards x [rad].
    pieces : (before, behind)
        Rigid lengths [m].

    """
    before, behind = pieces
    bend = np.zeros(len(start))
    for _ in range(100):  # the chord of an arc points along half its bend
        rest = end - start - before * _along(heading) - behind * _along(heading + bend)
        chord = np.arctan2(rest[:, 0], rest[:, 1]) - heading
        bend = 0.5 * bend + chord
    return bend


def _along(heading: Array) -> Array:
    return np.stack([np.sin(heading), np.cos(heading)], axis=1)


def bends(run: Run, checked: dict[str, Checked]) -> list[tuple[Array, Array]]:
    """Return each segment's bends [rad] from positions and from quaternions (nan if rejected)."""
    in_plane = {b: run.poses[b][:, :3, 3] @ np.array([[1, 0], [0, 0], [0, -1.0]]) for b in BODIES}
    heading, found = np.zeros(len(run.time_s)), []
    turn = {}
    for body in BODIES:
        rotation = run.poses[body][:, :3, :3]
        # In-plane angle of the body's axis that points up at rest.
        turn[body] = np.where(
            checked[body].orientation, np.arctan2(-rotation[:, 0, 2], rotation[:, 2, 2]), np.nan
        )
    for first, last, pieces in zip(BODIES, BODIES[1:], PIECES):
        by_position = bend_from_positions(in_plane[first], heading, in_plane[last], pieces)
        by_quaternion = turn[last] - turn[first]
        heading = heading + by_position
        found.append((by_position, by_quaternion))
    return found


def report(folder: Path) -> str:
    """Return the tables of all runs in a folder as text."""
    lines = [
        'orientation rejected; largest turn [deg] between neighbours, recorded -> accepted, and '
        'between accepted samples however far apart',
        f'{"run":24}' + ''.join(f'{body:>30}' for body in BODIES) + '   positions rejected',
    ]
    differences: list[str] = []
    for path in sorted(folder.glob('*.csv')):
        run = read(path)
        checked = check(run)
        cells = ''.join(map(_cell, checked.values()))
        lost = sum(int(np.count_nonzero(c.position == 0)) for c in checked.values())
        lines.append(f'{run.name:24}{cells}   {lost} of {3 * len(run.time_s)}')
        row = f'{run.name:24}'
        for by_position, by_quaternion in bends(run, checked):
            seen = np.isfinite(by_quaternion)
            if not seen.any():
                row += f'{"no orientation":>36}'
                continue
            off = by_position[seen] - by_quaternion[seen]
            spread = off - np.median(off)
            row += (
                f'{np.ptp(by_position):9.3f}{np.median(off):+9.3f}'
                f'{np.sqrt(np.mean(spread**2)):9.3f}{np.mean(seen):9.2f}'
            )
        differences.append(row)
    heads = ''.join(f'{head:>9}' for head in ('range', 'offset', 'rms', 'share'))
    lines += [
        '',
        'bend from positions less that from orientations [rad], segments 1 and 2: range of the '
        'bend, median, rms about it, share of samples with both',
        f'{"run":24}{heads}{heads}',
        *differences,
    ]
    return '\n'.join(lines)


def _cell(checked: Checked) -> str:
    return (
        f'{100 * checked.rejected:10.1f} % {checked.largest_deg:4.0f} ->'
        f'{checked.accepted_deg:4.1f}, {checked.across_deg:4.1f}'
    )


def main() -> None:
    """Print the report on all runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('data', type=Path, metavar='DATA_DIR')
    print(report(folder_of(parser.parse_args().data, 'asu_pneumatic', '*.csv')))


if __name__ == '__main__':
    main()
