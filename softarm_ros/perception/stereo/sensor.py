"""A pair of cameras as a pose sensor."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.sightings import Sighting
from softarm_ros.perception.problem_log import ProblemLog
from softarm_ros.perception.sensor import SensorError, SensorHealth, SensorProblem
from softarm_ros.perception.stereo.calibration_file import read_calibration
from softarm_ros.perception.stereo.camera import Camera, CameraError
from softarm_ros.perception.stereo.cameras import SIDES, Side, StereoCameras
from softarm_ros.perception.stereo.config import ROS, StereoCamerasConfig
from softarm_ros.perception.stereo.frame_source import Frame, FrameSource, PushedFrames
from softarm_ros.perception.stereo.images import Image, why_dark
from softarm_ros.perception.stereo.pairing import Pair, PairByStamp
from softarm_ros.perception.stereo.picture import marked
from softarm_ros.perception.stereo.sources import open_source
from softarm_ros.perception.stereo.tracking import MarkerTracker, Predict, Seen

_TURN_S = 0.02  # wait for one camera before both are looked at again
_SWAPPED_AFTER = 5  # consecutive exposures that fit only with the cameras exchanged
_RATE_OVER_NS = 1_000_000_000
_SLOW_SHARE = 0.8  # share of the expected pairs of images
_SLOW_AFTER_S = 2.0  # duration of pairs without a pause
_ROWS = 5  # every fifth row of an image is compared with the previous image
_FROZEN_AFTER = 3  # consecutive equal images
_LENS_APART = 0.01  # share of the image width; 1 % of the distance at a usual focal length


class StereoCameraSensor:
    """
    Reads two cameras and reports the markers that both see; a `PoseSensor`.

    Positions are in the base frame of the calibration file. Hidden and ambiguous markers are not
    reported.

    Parameters
    ----------
    config : StereoCamerasConfig
    frame_id : str
        Name of the base frame.
    clock : Clock
        Clock for time-outs of cameras.
    sources : mapping, optional
        Sources that replace those of the config: images that arrive as ROS messages.

    """

    def __init__(
        self,
        config: StereoCamerasConfig,
        frame_id: str,
        clock: Clock = MONOTONIC,
        sources: Mapping[Side, FrameSource] | None = None,
    ) -> None:
        self.config = config
        self._frame_id = frame_id
        self._clock = clock
        self._given: dict[Side, FrameSource] = dict(sources or {})
        self._sources: dict[Side, FrameSource] = {}
        self._tracker: MarkerTracker | None = None
        self._predict: Predict | None = None
        self._cameras: StereoCameras | None = None
        self._pairing: PairByStamp[Image] = PairByStamp(config.max_skew_s)
        self._problems = ProblemLog()
        self._newest: tuple[Pair[Image], Seen] | None = None
        self._lock = threading.Lock()
        self._begin()

    def open(self) -> None:
        """See `PoseSensor`."""
        self.close()
        try:
            file = Path(self.config.base_calibration).expanduser()
            calibration = read_calibration(file)
            if calibration.made_up:
                raise CameraError(
                    f'{file}: describes emulated cameras, not yours: run softarm '
                    'calibrate stereo and base, and name that file as base_calibration'
                )
            self._cameras = calibration.stereo_cameras()
            self._tracker = MarkerTracker(self.config, self._cameras, self._predict)
            colour = self.config.markers.kind == 'colour'
            named = {'left': self.config.left, 'right': self.config.right}
            for side, other in zip(SIDES, reversed(SIDES)):
                source = self._given.get(side) or open_source(
                    named[side], self.config.rate_hz, colour=colour, beside=named[other]
                )
                source.open()
                self._sources[side] = source
        except CameraError as error:
            self.close()
            raise SensorError(str(error)) from None
        self._pairing = PairByStamp(self.config.max_skew_s)
        self._begin()

    def close(self) -> None:
        """See `PoseSensor`."""
        sources, self._sources = self._sources, {}
        for source in sources.values():
            source.close()

    def topics(self) -> dict[str, str]:
        """See `TopicSensor`; the keys are the cameras."""
        named = {'left': self.config.left, 'right': self.config.right}
        return {k: text.removeprefix(ROS) for k, text in named.items() if text.startswith(ROS)}

    def take_from(self, which: str, source: FrameSource) -> None:
        """See `TopicSensor`."""
        side: Side = 'left' if which == 'left' else 'right'
        self._given[side] = source

    def expect_by(self, predict: Predict) -> None:
        """See `ExpectingSensor`."""
        self._predict = predict
        if self._tracker is not None:
            self._tracker.predict = predict

    def read(self, timeout_s: float) -> list[Sighting]:
        """See `PoseSensor`."""
        end_s = self._clock.now_s() + timeout_s
        seen: list[Sighting] = []
        while (sources := self._sources) and not seen:
            left_s = max(end_s - self._clock.now_s(), 0.0)
            unread = {side: source.read(0.0) for side, source in sources.items()}
            if not any(unread.values()):
                # Never the camera whose image waits for the other's: that would delay every pair.
                side = self._pairing.behind
                unread = {side: sources[side].read(min(left_s, _TURN_S))}
            for side, frame in unread.items():
                if frame is not None:
                    seen += self._taken(side, sources[side], frame)
            if left_s <= 0.0 or all(source.ended() for source in sources.values()):
                break
        return seen

    def _taken(self, side: Side, source: FrameSource, frame: Frame) -> list[Sighting]:
        """Take an image; return the sighting of the pair that it completes, if it does."""
        self._arrived(side)
        self._compare_lens(side, source)
        if self._unusable(side, frame.image) or self._frozen(side, frame.image):
            return []
        with self._lock:
            self._offered_s[side] = self._clock.now_s()
        pair = self._pairing.push(side, frame.stamp_ns, frame.image)
        return [] if pair is None else [self._sighting(pair)]

    def health(self) -> SensorHealth:
        """See `PoseSensor`."""
        now_s = self._clock.now_s()
        with self._lock:
            arrived, stamps = dict(self._arrival_s), list(self._stamps)
            names, values = self._names, dict(self._values)
            offered, opened_s = dict(self._offered_s), self._opened_s
            paired_s, flowing_s = self._paired_s, self._flowing_s
        gone = [
            self._gone(side, now_s - arrived[side])
            for side in SIDES
            if now_s - arrived[side] > self.config.timeout_s
        ]
        alone_s = now_s - max(paired_s, opened_s)
        connected = not gone and now_s - paired_s <= self.config.timeout_s
        # Images that are rejected before pairing, such as frozen ones, have their own problem.
        compared = all(now_s - offered[side] <= self.config.timeout_s for side in SIDES)
        if not gone and alone_s > self.config.timeout_s and compared:
            stuck = dict(self._pairing.stuck)
            gone = [self._unstamped(side, stamp_ns) for side, stamp_ns in stuck.items()]
            gone = gone or [self._never_together(alone_s)]
        newest = stamps[-1] if stamps else None
        recent = [s for s in stamps if newest is not None and newest - s < _RATE_OVER_NS]
        slow = connected and now_s - flowing_s > _SLOW_AFTER_S
        slow = slow and len(recent) < _SLOW_SHARE * self.config.rate_hz
        if self._cameras is not None:
            width, height = self._cameras.left.size
            apart = self._cameras.baseline_m
            values['server'] = f'two cameras, {width} x {height} px, {apart:.3f} m apart,'
        for side in SIDES:
            values[f'unpaired {side}'] = str(self._pairing.unpaired[side])
        values |= self._problems.counts()
        return SensorHealth(
            connected=connected,
            rate_hz=float(len(recent)) if connected else 0.0,
            last_exposure_ns=newest,
            seen=names,
            problems=(
                *gone,
                *self._problems.now(now_s),
                *([self._slow(len(recent))] if slow else []),
            ),
            values=values,
        )

    def picture(self) -> Image | None:
        """See `SeeingSensor`."""
        if self._newest is None or self._cameras is None:
            return None
        pair, seen = self._newest
        return marked((pair.left, pair.right), seen, self._cameras)

    # -- images

    def _begin(self) -> None:
        now_s = self._clock.now_s()
        with self._lock:
            self._arrival_s: dict[Side, float] = dict.fromkeys(SIDES, now_s)
            self._opened_s = now_s
            self._offered_s: dict[Side, float] = dict.fromkeys(SIDES, -float('inf'))
            self._paired_s = -float('inf')
            self._flowing_s = now_s  # time of the first pair since the last pause
            self._stamps: deque[int] = deque(maxlen=512)
            self._names: tuple[str, ...] = ()
            self._values: dict[str, str] = {}
            self._swapped = 0
            self._shown: dict[Side, Image] = {}
            self._same: dict[Side, int] = dict.fromkeys(SIDES, 0)
            self._lenses: dict[Side, tuple[Camera, float]] = {}
            self._seeing_s = 0.0

    def _arrived(self, side: Side) -> None:
        with self._lock:
            self._arrival_s[side] = self._clock.now_s()

    def _unusable(self, side: Side, image: Image) -> bool:
        """Report and return whether an image has another size or fewer colours than needed."""
        assert self._cameras is not None
        size = (image.shape[1], image.shape[0])
        wanted = self._cameras.camera(side).size
        if size != wanted:
            problem = SensorProblem(
                'wrong-size',
                f'{side} camera',
                f'images of {size[0]} x {size[1]} px: calibrated with {wanted[0]} x {wanted[1]}',
                'set the size that the camera was calibrated with, or calibrate it again',
            )
        elif self.config.markers.kind == 'colour' and image.ndim != 3:
            problem = SensorProblem(
                'no-colour',
                f'{side} camera',
                'grey images: expected three channels, for markers.kind = colour',
                'let its driver send colours, or use another kind of markers',
            )
        else:
            return False
        self._problems.report(self._clock.now_s(), 3, problem)
        return True

    def _compare_lens(self, side: Side, source: FrameSource) -> None:
        """Report if the lens that a camera's driver states differs from the calibrated one."""
        stated = source.lens if isinstance(source, PushedFrames) else None
        assert self._cameras is not None
        ours = self._cameras.camera(side)
        if stated is None or stated.size != ours.size:
            return
        if self._lenses.get(side, (None, 0.0))[0] is not stated:
            self._lenses[side] = (stated, ours.apart_px(stated))
        apart_px, most_px = self._lenses[side][1], _LENS_APART * ours.size[0]
        if apart_px <= most_px:
            return
        self._problems.report(
            self._clock.now_s(),
            1,
            SensorProblem(
                'other-lens',
                f'{side} camera',
                'its driver states a lens (camera_info) that projects points up to '
                f'{apart_px:.1f} px from their calibrated place; expected at most {most_px:.1f}',
                'calibrate the camera again, or give its driver the valid calibration',
            ),
        )

    def _frozen(self, side: Side, image: Image) -> bool:
        """
        Return whether an image is a repetition of the previous one, whatever its time stamp.

        Noise makes any two exposures of a real camera differ, unless the image is uniformly black
        (lens cap) or white (over-exposed).
        """
        before = self._shown.get(side)
        self._shown[side] = image
        same = before is not None and _same_rows(image, before)
        self._same[side] = self._same[side] + 1 if same else 0
        if self._same[side] >= _FROZEN_AFTER:
            self._problems.report(
                self._clock.now_s(),
                3,
                SensorProblem(
                    'frozen',
                    f'{side} camera',
                    f'sends the same image again, {self._same[side]} times now',
                    'restart the camera or the program that serves it',
                ),
            )
        return same

    def _sighting(self, pair: Pair[Image]) -> Sighting:
        assert self._tracker is not None
        began = time.thread_time()
        seen = self._tracker.see(pair.stamp_ns, pair.left, pair.right)
        self._newest = (pair, seen)
        self._judge(pair, seen)
        self._seeing_s += 0.05 * (time.thread_time() - began - self._seeing_s)
        names = seen.names
        with self._lock:
            now_s = self._clock.now_s()
            if now_s - self._paired_s > self.config.timeout_s:
                self._flowing_s = now_s
            self._paired_s = now_s
            self._stamps.append(pair.stamp_ns)
            self._names = names
            self._values = {
                'marks left, right': f'{len(seen.marks[0].pixels)}, {len(seen.marks[1].pixels)}',
                'pairs of marks': str(seen.pairs),
                'see_cpu_ms': f'{1e3 * self._seeing_s:.2f}',
                'skew_ms': f'{1e-6 * pair.skew_ns:.2f}',
                'rejected': '; '.join((*seen.marks[0].rejected, *seen.marks[1].rejected)[:6]),
            }
        return Sighting(pair.stamp_ns, self._frame_id, seen.bodies, seen.points)

    def _judge(self, pair: Pair[Image], seen: Seen) -> None:
        """Report the problems of an exposure."""
        assert self._tracker is not None
        now_s = self._clock.now_s()
        names = set(seen.names)
        enough = min(len(marks.pixels) for marks in seen.marks) >= 2
        misfits = enough and len(names) == 0 and self._tracker.fits_swapped(seen.marks)
        if misfits:
            self._swapped += 1
        elif names or seen.searched:  # a partial search without markers is no evidence
            self._swapped = 0
        if self._swapped >= _SWAPPED_AFTER:
            self._problems.report(
                now_s,
                4,
                SensorProblem(
                    'swapped',
                    'cameras',
                    'the images fit the calibration with left and right exchanged',
                    'exchange left and right in the rig file, or their plugs',
                ),
            )
            return
        for side, image, marks in zip(SIDES, (pair.left, pair.right), seen.marks):
            if seen.searched and len(marks.pixels) == 0:
                self._problems.report(
                    now_s,
                    2,
                    SensorProblem(
                        'no-marker',
                        f'{side} camera',
                        'shows no marker: '
                        + (
                            why_dark(image)
                            or '; '.join(marks.rejected[:2])
                            or 'nothing stands out'
                        ),
                        'check light, exposure, lens cap, and markers.threshold',
                    ),
                )
        self._judge_markers(now_s, seen, names)

    def _judge_markers(self, now_s: float, seen: Seen, names: set[str]) -> None:
        """Report missing markers, doubted markers and reflections."""
        for name in (point.name for point in self.config.points):
            if name not in names:
                self._problems.report(
                    now_s,
                    1,
                    SensorProblem(
                        'marker-missing',
                        name,
                        'is not seen by both cameras, or is ambiguous',
                        'check whether something hides it; check the calibration if it lasts',
                    ),
                )
        for body in self.config.bodies:
            if body.name not in names:
                self._problems.report(
                    now_s,
                    1,
                    SensorProblem(
                        'marker-missing',
                        body.name,
                        'fewer than three of its markers are seen by both cameras and agree',
                        'check whether something hides them; check the calibration if it lasts',
                    ),
                )
        doubted = [f'{name} is not at its place on its body' for name in seen.doubted]
        doubted += [f'a bright spot at {_millimetres(place)} mm' for place in seen.strangers]
        if doubted:
            self._problems.report(
                now_s,
                1,
                SensorProblem(
                    'reflection',
                    'cameras',
                    f'{"; ".join(doubted)}: not used',
                    'cover what reflects there, or check whether a marker has come loose',
                ),
            )

    # -- problems

    def _gone(self, side: Side, silent_s: float) -> SensorProblem:
        source = self._sources.get(side)
        why = source.problem() if source is not None else 'not open'
        where = {'left': self.config.left, 'right': self.config.right}[side]
        return SensorProblem(
            'no-camera',
            f'{side} camera',
            f'no image for {silent_s:.1f} s from {where}' + (f': {why}' if why else ''),
            'look at its plug, power and network, and whether another program uses it',
        )

    def _never_together(self, silent_s: float) -> SensorProblem:
        return SensorProblem(
            'not-together',
            'cameras',
            f'both send images, but for {silent_s:.1f} s no two were exposed within '
            f'{1e3 * self.config.max_skew_s:.1f} ms of each other',
            'trigger both by one signal, set their computers to one clock (chrony), or raise '
            'max_skew_s as far as the arm is slow',
        )

    def _unstamped(self, side: Side, stamp_ns: int) -> SensorProblem:
        return SensorProblem(
            'no-stamp',
            f'{side} camera',
            f'images are not used: their time stamp, {1e-9 * stamp_ns:.3f} s, does not advance',
            'let its driver stamp each image with the time of exposure',
        )

    def _slow(self, pairs: int) -> SensorProblem:
        return SensorProblem(
            'slow',
            'cameras',
            f'{pairs} pairs of images per second arrive (expected {self.config.rate_hz:g})',
            'set the frame rate of both cameras, and check the load of their network and of '
            'this computer',
        )


def _millimetres(place: Array) -> str:
    return ', '.join(f'{1e3 * each:.0f}' for each in place)


def _same_rows(image: Image, before: Image) -> bool:
    """Return whether rows of two images are equal, and not of one colour all over."""
    # Of two exposures, the first row differs already; comparing bytes costs least.
    if image[0].tobytes() != before[0].tobytes():
        return False
    rows = image[::_ROWS]
    return np.array_equal(rows, before[::_ROWS]) and bool(np.any(rows != rows[0, 0]))
