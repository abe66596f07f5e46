"""Conversion of a tracker's frames to sightings: clock, base frame, plausibility, health."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

import numpy as np

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import inverse_pose, pose
from softarm_ros.geometry.rotations import matrix_from_quaternion
from softarm_ros.geometry.sightings import BodySighting, PointSighting, Sighting
from softarm_ros.perception.base_calibration_file import read_base
from softarm_ros.perception.base_frame import BaseFollower
from softarm_ros.perception.captured import CapturedFrame
from softarm_ros.perception.clock_offset import JUMP_S, MAX_DRIFT, ClockOffset
from softarm_ros.perception.config import PoseSensorConfig
from softarm_ros.perception.plausibility import Plausibility, Verdict
from softarm_ros.perception.problem_log import ProblemLog
from softarm_ros.perception.sensor import SensorHealth, SensorProblem

RATE_WINDOW_S = 1.0
LATE_S = 0.5  # packets that are later than this are useless
# Jitter is reported if more than this share of the frames of a window is later than this.
JITTER_S, JITTER_SHARE, FEWEST_FOR_JITTER = 0.02, 0.1, 10

# Codes and subjects of problems with frames of unknown time.
WRONG_TIME = ('wrong-time', 'device')
LATE_FRAMES = ('late-frames', 'network')
NETWORK_ADVICE = (
    'connect the arm and the cameras by cable, on a switch of their own; if this '
    'computer is busy, it reads them late: end other programs'
)

# Advice to the user for each fault of a body.
ADVICE = {
    'flip': 'make its marker pattern less symmetric, define the body again, and look for a hidden '
    'marker',
    'swap': 'give the two bodies marker patterns that differ more, and define them again',
    'jump': 'look for reflections, and for another body with a similar pattern',
    'reach': 'check which body has this name, the pose of the base, and the unit of positions',
}


class FrameIntake:
    """
    Converts captured frames into sightings in the base frame, and reports their problems.

    Parameters
    ----------
    config
        Configuration of the sensor: names, base, limits.
    frame_id
        Name of the base frame.
    clock
        Monotonic clock of `CapturedFrame.arrived_s`.

    """

    def __init__(self, config: PoseSensorConfig, frame_id: str, clock: Clock = MONOTONIC) -> None:
        self.config = config
        self.problems = ProblemLog()
        self.clock_offset = ClockOffset()
        self._clock = clock
        self._frame_id = frame_id
        self._bodies = {body.name: body for body in config.bodies}
        self._points = {point.name for point in config.points}
        self._to_section = {b.name: inverse_pose(b.place_offset()) for b in config.bodies}
        self._base_name = config.base_body.name if config.base_body is not None else ''
        self._follows_base = config.base_from == 'body'
        self._base = BaseFollower()
        self._fixed = (
            inverse_pose(read_base(config.base_calibration).pose)
            if config.base_calibration is not None
            else np.eye(4)
        )
        self._plausibility = Plausibility(config.plausibility)
        self._covariance = np.diag(
            [config.position_noise_m**2] * 3 + [config.orientation_noise_rad**2] * 3
        )
        self._lock = threading.Lock()
        self._arrivals: deque[float] = deque()
        self._trusted: deque[float] = deque()  # arrivals of frames whose times are known
        self._late: deque[float] = deque()  # those of them that came late
        self._first_s = np.inf  # arrival of the first frame since the last pause
        self._last_frame: CapturedFrame | None = None
        self._newest_s = -np.inf  # sending time of the newest trusted frame [s]
        self._last_exposure_ns: int | None = None
        self._seen: tuple[str, ...] = ()
        self._missing_since: dict[str, float] = {}
        self._latency_s = 0.0
        self._frames = 0

    # -- frames

    def take(self, frame: CapturedFrame) -> Sighting | None:
        """Return the sighting of the arm in a frame; None if the frame cannot be used."""
        now = frame.arrived_s
        with self._lock:
            self._frames += 1
            if not self._arrivals or now - self._arrivals[-1] > self.config.timeout_s:
                self._first_s = now
            self._arrivals.append(now)
            _forget(self._arrivals, now)
        if not self._in_order(frame):
            return None
        jumps = self.clock_offset.jumps
        mapped = self.clock_offset.update(frame.sent_s, now, frame.exposed_s)
        if self.clock_offset.jumps != jumps:
            for code, subject in (WRONG_TIME, LATE_FRAMES):  # the clock jump explains them
                self.problems.withdraw(code, subject)
            self._report(
                now,
                3,
                'clock-jump',
                'clock',
                f'the clock of the device was set by {-self.clock_offset.last_jump_s:+.3f} s; '
                'the offset is estimated again',
                'switch off whatever sets the clock of that computer while the arm runs',
            )
        if not mapped.trusted:
            self._report_untrusted(frame, mapped.delay_s)
            return None
        self._newest_s = frame.sent_s
        self._note_jitter(now, mapped.delay_s)
        with self._lock:
            self._latency_s = now - mapped.time_s
        stamp_ns = round(1e9 * mapped.time_s) + time.time_ns() - round(1e9 * self._clock.now_s())
        return self._sighting(frame, mapped.time_s, stamp_ns)

    def _report_untrusted(self, frame: CapturedFrame, delay_s: float) -> None:
        """Report why the time of a frame is unknown: it is late, or its stamp is wrong."""
        ahead_s, back_s = -delay_s, self._newest_s - frame.sent_s
        if back_s == 0.0:  # the same frame again, after a pause: harmless
            return
        if ahead_s < 0.0 and back_s < 0.0:
            self._report(
                frame.arrived_s,
                3,
                *LATE_FRAMES,
                f'frames come {1e3 * delay_s:.0f} ms later than the fastest '
                f'(limit {1e3 * JUMP_S:.0f} ms)',
                NETWORK_ADVICE,
            )
            return
        what = (
            f'{ahead_s:.3f} s after its arrival (limit {JUMP_S:g} s)'
            if ahead_s > 0.0
            else f'{back_s:.3f} s before the previous frame'
        )
        self._report(
            frame.arrived_s,
            2,
            *WRONG_TIME,
            f'frame {frame.number} is dated {what}; it was not used',
            'look for garbled packets; if the clock of that computer was set, clock-jump says so',
        )

    def _note_jitter(self, now: float, delay_s: float) -> None:
        """Report frames whose times are known, but which come late too often."""
        self._trusted.append(now)
        if delay_s > JITTER_S:
            self._late.append(now)
        for arrivals in (self._trusted, self._late):
            _forget(arrivals, now)
        share = len(self._late) / len(self._trusted)
        # After a single stall, a window that is not full yet would consist of its frames.
        full = now - self._trusted[0] > 0.8 * RATE_WINDOW_S
        if full and len(self._trusted) >= FEWEST_FOR_JITTER and share > JITTER_SHARE:
            self._report(
                now,
                1,
                'jitter',
                'network',
                f'{100.0 * share:.0f} % of the frames come more than {1e3 * JITTER_S:.0f} ms '
                f'later than the fastest (limit {100.0 * JITTER_SHARE:.0f} %)',
                NETWORK_ADVICE,
            )

    def _in_order(self, frame: CapturedFrame) -> bool:
        """Return whether a frame is newer than the last one, or the device has restarted."""
        last = self._last_frame
        if last is None or frame.sent_s > last.sent_s or frame.number > last.number:
            self._last_frame = frame
            return True
        restarted = last.sent_s - frame.sent_s > LATE_S and frame.number < last.number
        if restarted or frame.arrived_s - last.arrived_s > self.config.timeout_s:
            self._last_frame = frame  # the device has restarted
            return True
        self._report(
            frame.arrived_s,
            2,
            'out-of-order',
            'network',
            f'frame {frame.number} came after frame {last.number}',
            'look for a second sender, and for two network paths to the same computer',
        )
        return False

    def _sighting(self, frame: CapturedFrame, time_s: float, stamp_ns: int) -> Sighting | None:
        now = frame.arrived_s
        poses = {
            body.name: pose(matrix_from_quaternion(body.quaternion), body.position)
            @ self._to_section[body.name]
            for body in frame.bodies
            if body.name in self._bodies
        }
        self._note_missing(now, frame)
        base = poses.pop(self._base_name, None)
        if not self._follows_base:
            base = None
        elif base is not None and self._base.pose is None:
            self._follow_base(now, time_s, base)
            base = None
        to_base = self._to_base()
        if to_base is None:
            return None
        if base is not None:  # it is judged as well, since another body may be at its place
            poses[self._base_name] = base
        poses = {name: to_base @ seen for name, seen in poses.items()}
        for point in frame.points:
            if point.name in self._points:
                where = to_base[:3, :3] @ np.asarray(point.position) + to_base[:3, 3]
                poses[point.name] = pose(np.eye(3), where)
        verdicts = self._plausibility.judge(time_s, poses)
        if base is not None:
            del poses[self._base_name]
            verdict = verdicts[self._base_name]
            if verdict.fault == 'swap':
                self._report_fault(now, self._base_name, verdict)
            else:  # its other faults have limits of their own
                self._follow_base(now, time_s, base)
        bodies: list[BodySighting] = []
        points: list[PointSighting] = []
        for name, seen in poses.items():
            verdict = verdicts[name]
            if verdict.fault:
                self._report_fault(now, name, verdict)
            if not verdict.position:
                continue
            if name in self._points:
                points.append(PointSighting(name, seen[:3, 3], self._covariance[:3, :3]))
                continue
            # A sighting has the pose of the body itself; its place on the arm follows by name.
            of_body = seen @ self._bodies[name].place_offset()
            if verdict.orientation:
                bodies.append(BodySighting(name, of_body, self._covariance))
            else:
                points.append(PointSighting(name, of_body[:3, 3], self._covariance[:3, :3]))
        with self._lock:
            self._last_exposure_ns = stamp_ns
            self._seen = (*(b.name for b in bodies), *(p.name for p in points))
        return Sighting(stamp_ns, self._frame_id, tuple(bodies), tuple(points))

    def _to_base(self) -> Array | None:
        """Return the sensor's frame in the base frame; None before the base was seen."""
        if not self._follows_base:
            return self._fixed
        return None if self._base.pose is None else inverse_pose(self._base.pose)

    def _follow_base(self, now: float, time_s: float, seen: Array) -> None:
        """Take the pose (4, 4) of the base body in the sensor's frame."""
        name = self._base_name
        wrong = self._base.update(time_s, seen)
        if wrong == 'moved':
            text = f'the base of the arm {self._base.stray}'
            self._report(now, 2, 'base-moved', name, text, 'fix the base, and restart')
        elif wrong:
            self._report_fault(now, name, Verdict(fault=wrong, text=self._base.stray))

    def _note_missing(self, now: float, frame: CapturedFrame) -> None:
        seen = {body.name for body in frame.bodies} | {p.name for p in frame.points}
        for name in (*self._bodies, *self._points):
            if name in seen:
                self._missing_since.pop(name, None)
                continue
            since = self._missing_since.setdefault(name, now)
            if now - since <= self.config.timeout_s:
                continue
            if name in frame.lost:
                text = f'not seen for {now - since:.1f} s'
                advice = (
                    'check whether it is hidden, outside the measured volume, or has lost markers'
                )
            else:
                known = ', '.join(sorted({*seen, *frame.lost})) or 'nothing'
                text = (
                    f'the device has not sent this name for {now - since:.1f} s; it sends {known}'
                )
                advice = (
                    'write the name that the device sends into the rig file, or define it there'
                )
            code = 'body-lost' if name in frame.lost else 'wrong-name'
            self._report(now, 2, code, name, text, advice)

    # -- health

    def _report_fault(self, now: float, name: str, verdict: Verdict) -> None:
        self._report(now, 1, verdict.fault, name, verdict.text, ADVICE[verdict.fault])

    def _report(
        self, now: float, grave: int, code: str, subject: str, text: str, advice: str
    ) -> None:
        self.problems.report(now, grave, SensorProblem(code, subject, text, advice))

    def last_arrival_s(self) -> float:
        """Return the time of the last arrival of a frame [s]; -inf before the first."""
        with self._lock:
            return self._arrivals[-1] if self._arrivals else -np.inf

    def health(
        self,
        silence: Callable[[], SensorProblem] | None = None,
        more: Mapping[str, str] | None = None,
    ) -> SensorHealth:
        """
        Return the health of the sensor.

        If no frames arrive, the problem returned by `silence` comes first. `more` are further
        values for diagnostics.
        """
        now = self._clock.now_s()
        with self._lock:
            # The window ends at the newest frame: a pause does not lower the rate.
            rate = len(self._arrivals) / RATE_WINDOW_S
            connected = bool(self._arrivals) and (
                self._arrivals[-1] >= now - self.config.timeout_s
            )
            values = {
                'frames': str(self._frames),
                'latency_ms': f'{1e3 * self._latency_s:.2f}',
                'clock_offset_s': f'{self.clock_offset.offset_s:.6f}',
                'clock_drift_ppm': f'{1e6 * self.clock_offset.drift:.1f}',
                'clock_jumps': str(self.clock_offset.jumps),
                'base_samples': str(self._base.samples),
            }
            seen, last = (self._seen if connected else ()), self._last_exposure_ns
            first = self._first_s
        rate = rate if connected else 0.0
        found = self.problems.now(now)
        if silence is not None and not connected:
            why = silence()
            found = (why, *(problem for problem in found if problem.code != why.code))
        if connected and rate < 0.8 * self.config.rate_hz and now - first > 2.0 * RATE_WINDOW_S:
            found = (
                *found,
                SensorProblem(
                    'slow',
                    'device',
                    f'{rate:.0f} frames per second arrive (expected {self.config.rate_hz:g})',
                    'set the frame rate of the cameras, and check the load of the network',
                ),
            )
        if connected and self.clock_offset.drifts_too_fast:
            found = (
                *found,
                SensorProblem(
                    'clock-drift',
                    'clock',
                    f'the clock of the device drifts by {1e6 * MAX_DRIFT:g} ppm or more; times of '
                    f'exposure may be wrong by up to {1e3 * JUMP_S:g} ms',
                    'correct rate_hz if the device counts frames at another rate (NDI); otherwise '
                    'switch off whatever sets the clock of that computer while the arm runs',
                ),
            )
        return SensorHealth(
            connected,
            rate,
            last,
            seen,
            found,
            {**values, **self.problems.counts(), **(more or {})},
        )


def _forget(arrivals: deque[float], now: float) -> None:
    """Remove arrivals before the window that ends now."""
    while arrivals and arrivals[0] < now - RATE_WINDOW_S:
        arrivals.popleft()
