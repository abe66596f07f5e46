"""Plausibility checks of measured poses: frame, time stamp, and agreement with the model's tip."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.control.config import FeedbackWatchConfig
from softarm_ros.control.two_lags import TwoLags
from softarm_ros.geometry.arrays import Array

TipOf = Callable[[Array], Array]

MODEL_PERIOD_S = 0.05  # between two evaluations of the model
_HISTORY_S = 1.0  # of model tips, to match a pose with the model tip at its time stamp
# After a start the tracker first adopts the posture of the actuators: its command may jump there
# from any earlier value, although the arm does not move.
TAKE_OVER_S = 0.15
# An arm that was stopped in motion lags its command, and catches up after the start. For this many
# response times a change is therefore no drift; a wrong tip is an error at once.
_CLOSING_UP = 2.0
_REMEMBERED_S = 5.0  # longest time for which friction may hold a tip before it catches up
_SET_BACK_S = 0.1  # a clock that was set back by less catches up before it matters
_OTHER_CLOCK_S = 10.0  # no network delays a pose by this much: the clocks must differ
_CLOCKS = '; the clocks of both computers must agree'
_FORGET_S = 1.0  # after refusing poses for this long, assume that the sensor's clock was set anew


@dataclass
class Extremes:
    """
    How close each rule came to its limit since the last `restart`.

    Attributes
    ----------
    drift_m : float
        Largest excess of a drift over its share of the model's motion; limit `max_drift_m`.
    model_error_m : float
        Largest distance between measured and model tip; limit `max_model_error_m`.
    rest_error_m : float
        Largest excess of that error over the model's distance from rest; limit `max_rest_error_m`.
    tracking_error_m : float
        Largest distance from the reference while tracking; limit `max_tracking_error_m`.
    still_m : float
        Largest motion of the model while poses repeated; limit `frozen_motion_m`.

    """

    drift_m: float = 0.0
    model_error_m: float = 0.0
    rest_error_m: float = 0.0
    tracking_error_m: float = 0.0
    still_m: float = 0.0


@dataclass(frozen=True)
class _Sample:
    """Measured and model tip (3,) [m] at the time stamp of one measurement [s]."""

    stamp_s: float
    measured: Array
    model: Array

    @property
    def apart(self) -> Array:
        """Vector from the model's tip to the measured one (3,) [m]."""
        return self.measured - self.model


class FeedbackWatch:
    """
    Refuses single poses by cheap checks, and reports poses that contradict the model.

    A tracker calls `admit` alone. A supervisor also calls `on_configuration` with the commands,
    and `problem` at any rate; the model is evaluated at most every 50 ms. All times are seconds of
    the clock of the time stamps.

    Parameters
    ----------
    config : FeedbackWatchConfig
        Limits.
    frame_ids : collection of str
        Names of the base frame.
    tip_of : callable, optional
        Model tip (3,) [m] of a configuration (dof,); without it, poses are not compared.
    rest_tip : (3,), optional
        Model tip at rest [m], where the model is most accurate.
    time_scale : float
        Speed of the simulation; above 1, time stamps may differ from the clock by more.

    """

    def __init__(
        self,
        config: FeedbackWatchConfig,
        frame_ids: Collection[str],
        tip_of: TipOf | None = None,
        *,
        rest_tip: ArrayLike | None = None,
        time_scale: float = 1.0,
    ) -> None:
        self.config = config
        self.frame_ids = tuple(frame_ids)
        self.extremes = Extremes()
        self._tip_of = tip_of
        self._rest_tip = None if rest_tip is None else np.asarray(rest_tip, dtype=float)
        self._stretch = max(1.0, time_scale)
        self._last_stamp_s = -np.inf
        self._pose: tuple[float, Array] | None = None  # newest admitted: stamp, position
        self._refused_since_s: float | None = None
        self._refused_s = -np.inf  # when the newest pose was refused
        self._refusal = ''
        self._at_once = False
        self._configuration: Array | None = None
        self._tracking_error_m: float | None = None
        self._moving = False
        self._moving_since_s = -np.inf
        # Since the motion began: model samples, and when poses began to repeat.
        self._lagged = TwoLags(config.response_s)  # model tip, delayed by the arm's response
        self._still_at: Array | None = None
        self._still_model: Array | None = None
        self._model_problem: str | None = None
        self._forget_motion()

    # -- single poses

    def admit(
        self, now_s: float, stamp_s: float, frame_id: str, position: ArrayLike
    ) -> str | None:
        """Take a measured tip position (3,) [m]; return why it must not be used, or None."""
        tip = np.asarray(position, dtype=float)
        # A wrong frame or value does not become right by waiting.
        at_once = frame_id not in self.frame_ids or not np.isfinite(tip).all()
        refusal = self._refused(now_s, stamp_s, frame_id, tip)
        if refusal is not None:
            if self._refused_since_s is None:
                self._refused_since_s = now_s
            elif now_s - self._refused_since_s > _FORGET_S:
                self.forget_stamps()
            self._refused_s, self._refusal, self._at_once = now_s, refusal, at_once
            return refusal
        self._refused_since_s, self._at_once = None, False
        self._last_stamp_s = stamp_s
        self._note_still(stamp_s, tip)
        self._pose = (stamp_s, tip)
        return None

    def belated(self, now_s: float, stamp_s: float, frame_id: str, position: ArrayLike) -> bool:
        """Return whether the only fault of a pose is that a newer one arrived before it."""
        tip = np.asarray(position, dtype=float)
        wrong = self.wrong(now_s, stamp_s, frame_id, tip)
        return wrong is None and stamp_s < self._last_stamp_s

    def set_back(self, now_s: float) -> bool:
        """Return whether the clock was set back: the newest stamp now lies too far ahead."""
        return self._last_stamp_s - now_s > self.max_ahead_s + _SET_BACK_S

    @property
    def unusable(self) -> bool:
        """Whether the newest pose has a wrong frame or value, which no delay can explain."""
        return self._at_once

    @property
    def max_ahead_s(self) -> float:
        """Largest lead of a time stamp over the clock [s], at the speed of the simulation."""
        return self.config.max_ahead_s * self._stretch

    def forget_stamps(self) -> None:
        """Accept older time stamps again, if nothing else is wrong with them."""
        self._last_stamp_s = -np.inf

    def foreign(self, frame_id: str) -> str | None:
        """Return a text if a frame is not the base frame, else None."""
        if frame_id in self.frame_ids:
            return None
        known = ' or '.join(repr(name) for name in self.frame_ids)
        return f'pose in frame {frame_id!r}, expected {known}'

    def _refused(self, now_s: float, stamp_s: float, frame_id: str, tip: Array) -> str | None:
        if (wrong := self.wrong(now_s, stamp_s, frame_id, tip)) is not None:
            return wrong
        if not stamp_s > self._last_stamp_s:
            behind = 1e3 * (self._last_stamp_s - stamp_s)
            return f'pose stamp does not advance: {behind:.0f} ms behind the newest'
        return None

    def wrong(self, now_s: float, stamp_s: float, frame_id: str, tip: Array) -> str | None:
        """Return what is wrong with a pose, whatever poses came before it, or None."""
        c = self.config
        if (foreign := self.foreign(frame_id)) is not None:
            return foreign
        if tip.shape != (3,) or not np.isfinite(tip).all():
            return f'pose is not finite: tip position {tip.tolist()}'
        age = now_s - stamp_s
        oldest, ahead = c.max_age_s * self._stretch, self.max_ahead_s
        if age > oldest:
            if stamp_s == 0.0:
                return 'pose has no stamp (0): expected the time of its exposure'
            why = _CLOCKS if age > _OTHER_CLOCK_S else ''
            return f'pose stamp is {1e3 * age:.0f} ms old (limit {1e3 * oldest:.0f} ms){why}'
        if -age > ahead:
            return (
                f'pose stamp lies {-1e3 * age:.0f} ms in the future (limit '
                f'{1e3 * ahead:.0f} ms){_CLOCKS}'
            )
        return None

    def _note_still(self, stamp_s: float, tip: Array) -> None:
        anchor = self._still_at
        if anchor is None or np.abs(tip - anchor).max() > self.config.frozen_resolution_m:
            self._still_at, self._still_since_s = tip, stamp_s
            self._still_model = None

    # -- other inputs

    def on_configuration(self, configuration: ArrayLike) -> None:
        """Take the newest configuration command (dof,); ignore one that is not finite."""
        values = np.array(configuration, dtype=float)
        if np.isfinite(values).all():
            self._configuration = values

    def on_tracking_error(self, error_m: float | None) -> None:
        """Take the distance of the tip from its reference [m]; None while nothing is tracked."""
        known = error_m is not None and np.isfinite(error_m)
        self._tracking_error_m = error_m if known else None

    # -- verdict

    def problem(self, now_s: float, *, moving: bool = True) -> str | None:
        """
        Return what is wrong with the feedback, with values and limits, or None.

        Poses are compared with the model only while the arm may move, and only those since the
        motion began: after a fault, the arm may not be where the command says.
        """
        if moving and not self._moving:
            self._forget_motion()
            self._moving_since_s = now_s
        self._moving = moving
        found = [self._refused_too_long()]
        if moving:
            taken_over = now_s - self._moving_since_s >= TAKE_OVER_S
            if taken_over and now_s - self._looked_s >= MODEL_PERIOD_S - 1e-6:
                self._look(now_s)
            found += [self._model_problem, self._off_track()]
        problems = '; '.join(text for text in found if text)
        return problems or None

    def restart(self) -> None:
        """Forget all poses, model samples and extremes."""
        self._forget_motion()
        self.extremes = Extremes()

    def _forget_motion(self) -> None:
        self._looked_s = -np.inf
        self._lagged.forget()
        self._models: deque[tuple[float, Array]] = deque()
        self._samples: deque[_Sample] = deque()
        self._model_problem = self._still_at = self._still_model = None
        self._still_since_s = -np.inf

    def _refused_too_long(self) -> str | None:
        since, limit = self._refused_since_s, self.config.max_refused_s
        # Up to the newest pose: after a single refused pose, silence is no further refusal.
        if since is None or not (self._at_once or self._refused_s - since >= limit - 1e-6):
            return None
        return self._refusal

    def _off_track(self) -> str | None:
        error, limit = self._tracking_error_m, self.config.max_tracking_error_m
        if error is None:
            return None
        self.extremes.tracking_error_m = max(self.extremes.tracking_error_m, error)
        if error <= limit:
            return None
        return f'tip {1e3 * error:.1f} mm from its reference (limit {1e3 * limit:.1f} mm)'

    def _look(self, now_s: float) -> None:
        """Compare poses with the model."""
        if self._tip_of is None or self._configuration is None:
            return
        period, self._looked_s = now_s - self._looked_s, now_s
        try:
            tip = np.array(self._tip_of(self._configuration), dtype=float)
        except ValueError:  # the model refuses the configuration, so no command results
            return
        except RuntimeError as error:
            self._model_problem = f'poses cannot be compared with the model: {error}'
            return
        if not np.all(np.isfinite(tip)):
            return  # the tracker refuses such a command
        self._models.append((now_s, self._lagged.follow(tip, period)))
        while self._models[0][0] < now_s - _HISTORY_S:
            self._models.popleft()
        self._model_problem = self._standing_still(tip) or self._drifting() or None

    def _standing_still(self, tip: Array) -> str | None:
        """Return a text if poses repeat while the command moves the model tip (3,) [m]."""
        if self._pose is None or self._still_at is None:
            return None
        if self._still_model is None:
            self._still_model = tip
            return None
        moved = float(np.linalg.norm(tip - self._still_model))
        lasted = self._pose[0] - self._still_since_s
        if lasted < self.config.frozen_s:
            return None
        self.extremes.still_m = max(self.extremes.still_m, moved)
        limit = self.config.frozen_motion_m
        if moved <= limit:
            return None
        return (
            f'pose repeats itself: unchanged for {1e3 * lasted:.0f} ms while the command moves '
            f'the tip by {1e3 * moved:.1f} mm (limit {1e3 * limit:.1f} mm)'
        )

    def _drifting(self) -> str | None:
        """Return a text if measured tip and model drift apart too fast or too far."""
        sample = self._matched()
        if sample is None:
            return self._model_problem
        c, samples = self.config, self._samples
        while samples and samples[0].stamp_s < sample.stamp_s - _REMEMBERED_S - 1e-6:
            samples.popleft()
        apart = sample.apart
        error = float(np.linalg.norm(apart))
        self.extremes.model_error_m = max(self.extremes.model_error_m, error)
        problem = None
        closed_up = self._moving_since_s + TAKE_OVER_S + _CLOSING_UP * c.response_s
        for k, other in enumerate(samples):
            if other.stamp_s < sample.stamp_s - c.window_s - 1e-6:
                continue
            change = float(np.linalg.norm(apart - other.apart))
            motion = float(np.linalg.norm(sample.model - other.model))
            excess = change - c.drift_share * motion
            if excess > min(self.extremes.drift_m, c.max_drift_m):
                excess = min(excess, self._from_before(apart, k))
            self.extremes.drift_m = max(self.extremes.drift_m, excess)
            if excess > c.max_drift_m and problem is None:
                problem = (
                    f'measured tip and model moved apart by {1e3 * change:.1f} mm within '
                    f'{1e3 * (sample.stamp_s - other.stamp_s):.0f} ms (limit '
                    f'{1e3 * (c.max_drift_m + c.drift_share * motion):.1f} mm)'
                )
        if sample.stamp_s >= closed_up:
            samples.append(sample)
        limit = self._model_error_limit(sample, error)
        if error > limit and problem is None:
            problem = (
                f'measured tip is {1e3 * error:.1f} mm from the model (limit {1e3 * limit:.1f} mm)'
            )
        return problem

    def _model_error_limit(self, sample: _Sample, error_m: float) -> float:
        """Return the largest model error allowed at a sample [m]; note how near it came."""
        c = self.config
        if self._rest_tip is None:
            return c.max_model_error_m
        away = float(np.linalg.norm(sample.model - self._rest_tip))
        self.extremes.rest_error_m = max(self.extremes.rest_error_m, error_m - away)
        if c.max_rest_error_m is None:
            return c.max_model_error_m
        return min(c.max_model_error_m, c.max_rest_error_m + away)

    def _from_before(self, apart: Array, count: int) -> float:
        """
        Return the least change [m] from the `apart` vectors (3,) of the `count` oldest samples.

        A tip held by friction slowly falls behind the model and suddenly catches up, back to an
        earlier offset; a defect leads to an offset that did not occur before.
        """
        ways = [apart - other.apart for other in islice(self._samples, count)]
        return min((float(np.linalg.norm(way)) for way in ways), default=np.inf)

    def _matched(self) -> _Sample | None:
        """Return the newest pose with the model tip at its time stamp; None if it is not new."""
        if self._pose is None:
            return None
        stamp, measured = self._pose
        if stamp < self._models[0][0] or (self._samples and stamp <= self._samples[-1].stamp_s):
            return None
        times = [time for time, _ in self._models]
        after = int(np.searchsorted(times, stamp))
        if after == len(times):
            return _Sample(stamp, measured, self._models[-1][1])
        if after == 0:
            return _Sample(stamp, measured, self._models[0][1])
        (t0, before), (t1, behind) = self._models[after - 1], self._models[after]
        share = (stamp - t0) / (t1 - t0)
        return _Sample(stamp, measured, before + share * (behind - before))
