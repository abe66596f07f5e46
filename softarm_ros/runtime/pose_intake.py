"""Turn measured tips and sections into the pose samples of a control loop."""

from __future__ import annotations

import math
from collections.abc import Collection
from types import NoneType
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.control.controller import AnswerError
from softarm_ros.control.estimator import (
    SECTION,
    TIP,
    Estimate,
    Estimator,
    Health,
    Innovations,
    TipLoad,
)
from softarm_ros.control.feedback_watch import FeedbackWatch
from softarm_ros.control.measurement_frame import FramePairing, MeasurementFrame
from softarm_ros.geometry.answers import described, has_finite_floats, has_floats, misfit
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.sightings import BodySighting, PointSighting, Sighting
from softarm_ros.runtime.loop import PoseSample

if TYPE_CHECKING:
    from softarm_ros.plant.mocap import PoseMeasurement
    from softarm_ros.plant.plant import Plant

_BASE = 'base'
_ROUNDING_S = 1e-6  # of a stamp that an estimator has computed in another way
# Fields of an estimate that are reported; a wrong one would end the process of the loop.
_KINDS: dict[str, tuple[type, ...]] = {
    'measured_s': (float, int),
    'health': (Health,),
    'reason': (str,),
    'innovations': (Innovations, NoneType),
    'tip_load': (TipLoad, NoneType),
}


class PoseIntake:
    """
    Rejects unusable poses, pairs the rest by frame, and estimates where the arm is.

    Parameters
    ----------
    watch : FeedbackWatch
        Its cheap checks apply to every tip.
    frames : FramePairing
        Pairs the tips and sections that pass.
    estimator : Estimator
        Receives every frame once.

    Attributes
    ----------
    newest : Estimate or None
        The last estimate that was returned.

    """

    def __init__(self, watch: FeedbackWatch, frames: FramePairing, estimator: Estimator) -> None:
        self.watch, self.frames, self.estimator = watch, frames, estimator
        self.newest: Estimate | None = None
        self._first_s = math.inf  # oldest stamp that the estimator has received

    def on_tip(self, now_s: float, stamp_ns: int, frame_id: str, position: Array) -> str | None:
        """
        Take a measured tip position (3,) [m]; return why it is not used, or None.

        A tip older than one already received is still useful to an estimator that predicts.
        """
        self._follow_clock(now_s)
        stamp_s = 1e-9 * stamp_ns
        if self.estimator.predicts and self.watch.belated(now_s, stamp_s, frame_id, position):
            self.frames.on_tip(now_s, stamp_ns, position)
            return None
        refusal = self.watch.admit(now_s, stamp_s, frame_id, position)
        if refusal is None:
            self.frames.on_tip(now_s, stamp_ns, position)
        return refusal

    def on_sections(
        self, now_s: float, stamp_ns: int, frame_id: str, section_tips: Array
    ) -> str | None:
        """Take measured section tips (sections, 4, 4); return why they are not used, or None."""
        self._follow_clock(now_s)
        if not (len(section_tips) and np.isfinite(section_tips).all()):
            return 'section poses are missing or not finite'
        last = section_tips[-1, :3, 3]
        refusal = self.watch.wrong(now_s, 1e-9 * stamp_ns, frame_id, last)
        if refusal is None:
            self.frames.on_sections(now_s, stamp_ns, section_tips)
        return refusal

    def on_points(self, now_s: float, seen: Sighting, names: Collection[str]) -> str | None:
        """
        Take the points with these names from a sighting; return why they are not used, or None.

        Only an estimator that predicts can use them, in addition to the tip and the sections.
        """
        if not self.estimator.predicts:
            return 'points are not used by this estimator'
        self._follow_clock(now_s)
        stamp_s = 1e-9 * seen.stamp_ns
        points: list[PointSighting] = []
        refused: list[str] = []
        for point in seen.points:
            if point.name not in names:
                continue  # belongs to a rigid body, whose pose comes as a whole
            wrong = self.watch.wrong(now_s, stamp_s, seen.frame_id, point.position)
            if wrong is None:
                points.append(point)
            else:
                refused.append(wrong)
        if not points:
            return '; '.join(refused) or 'no point along the arm'
        return self._observe(Sighting(seen.stamp_ns, _BASE, (), tuple(points)))

    def on_actuators(self, now_s: float, actuation: Array) -> None:
        """Take the measured actuation (m,), without pretension."""
        if np.isfinite(actuation).all():
            self.estimator.actuated(now_s, actuation)

    def take(self, now_s: float, *, wait: bool = True) -> tuple[PoseSample, int] | None:
        """
        Return where the arm is and a time stamp [ns], or None if there is nothing new.

        The stamp is that of the newest frame, or the current time if the pose is only predicted.
        """
        self._follow_clock(now_s)
        frame = self.frames.take(now_s, wait=wait)
        for other in self.frames.take_others(now_s):
            if self.estimator.predicts:  # older poses tell it how the arm moves
                self._observe(sighting_of(other))
        if frame is not None:
            self._observe(sighting_of(frame))
        estimate = self.estimator.estimate(now_s)
        if estimate is None:
            return None
        self._check(now_s, estimate)
        self.newest = estimate
        if self.frames.counts.handed_out == 0:
            return None  # known from the actuators alone: reported, but not used to drive
        stamp_ns = round(1e9 * now_s) if frame is None else frame.stamp_ns
        seen = estimate.configuration
        # Copies, as they are kept: an estimator may fill the same arrays each time.
        sample = PoseSample(
            estimate.stamp_s, estimate.tip[:3, 3].copy(), None if seen is None else seen.copy()
        )
        return sample, stamp_ns

    def pace(self, now_s: float) -> float:
        """
        Return the permitted speed of the reference, as a share: 0 holds the arm.

        Raises
        ------
        AnswerError
            If the estimator answers anything but 0 to 1.

        """
        pace = self.estimator.pace(now_s)
        if self.newest is not None and self.newest.health is Health.LOST:
            return 0.0  # a lost pose must not drive the arm, whatever the estimator's pace
        if not (isinstance(pace, (float, int)) and 0.0 <= pace <= 1.0):
            raise AnswerError(f'{self._named} returned pace {pace!r}; expected 0 to 1')
        return pace

    @property
    def _named(self) -> str:
        return f'estimator {type(self.estimator).__name__}'

    def _observe(self, sighting: Sighting) -> str | None:
        self._first_s = min(self._first_s, 1e-9 * sighting.stamp_ns)
        return self.estimator.observe(sighting)

    def _check(self, now_s: float, estimate: object) -> None:
        """Raise AnswerError for an invalid estimate."""
        if not isinstance(estimate, Estimate):
            found = type(estimate).__name__
            raise AnswerError(f'{self._named} returned {found}; expected an Estimate or None')
        tip = estimate.tip
        if not (has_floats(tip, (4, 4)) and np.isfinite(tip[:3, 3]).all()):
            raise AnswerError(misfit(self._named, 'tip', tip, '4 x 4, with a finite position,'))
        seen = estimate.configuration
        if seen is not None and not has_floats(seen, np.shape(seen)[:1]):
            raise AnswerError(
                f'{self._named} returned configuration {described(seen)}; expected as many '
                'numbers, float64, as the model has, or None'
            )
        covariance = estimate.tip_covariance
        if covariance is not None and not has_finite_floats(covariance, (6, 6)):
            raise AnswerError(misfit(self._named, 'tip_covariance', covariance, '6 x 6 finite'))
        for name, kind in _KINDS.items():
            value = getattr(estimate, name)
            if not isinstance(value, kind):
                expected = ' or '.join(one.__name__.removesuffix('Type') for one in kind)
                raise AnswerError(
                    f'{self._named} returned {name} {described(value)}; expected {expected}'
                )
        stamp_s = estimate.stamp_s
        first_s = min(self._first_s, now_s) - _ROUNDING_S  # the first stamp may lie ahead a little
        last_s = now_s + self.watch.max_ahead_s
        # The tip is compared with the reference at this time: a wrong one moves the arm elsewhere.
        if not (isinstance(stamp_s, (float, int)) and math.isfinite(stamp_s)):
            raise AnswerError(
                f'{self._named} returned stamp_s {described(stamp_s)}; expected a time [s]'
            )
        if not first_s <= stamp_s <= last_s:
            raise AnswerError(
                f'{self._named} returned stamp_s {stamp_s:.6f} s; expected the present time, '
                f'{now_s:.6f} s, or that of a measurement, none of which is older than '
                f'{first_s + _ROUNDING_S:.6f} s'
            )

    def _follow_clock(self, now_s: float) -> None:
        """
        Start over if this computer's clock was set back.

        Earlier stamps then lie in the future: until then, poses would count as late, and a
        predicting estimator would go on without them.
        """
        if self.watch.set_back(now_s):
            self.watch.forget_stamps()
            self.frames.forget()
            self.estimator.reset()
            self._first_s = math.inf


def sighting_of(frame: MeasurementFrame) -> Sighting:
    """
    Return a frame as a sighting: section ends as bodies, the last one as the tip.

    Each pose occurs once. A frame with one pose contains the tip, however many sections the arm
    has; a frame without poses contains the tip position alone, as a point.
    """
    if frame.section_tips is None:
        return Sighting(frame.stamp_ns, _BASE, (), (PointSighting(TIP, frame.position),))
    *ends, last = frame.section_tips
    tip = last.copy()
    tip[:3, 3] = frame.position
    bodies = [BodySighting(f'{SECTION}{k}', end) for k, end in enumerate(ends)]
    return Sighting(frame.stamp_ns, _BASE, (*bodies, BodySighting(TIP, tip)))


def measure(plant: Plant, intake: PoseIntake, now_s: float) -> list[PoseMeasurement]:
    """Pass what the cameras of a plant have measured to an intake, and return it."""
    measured = plant.poll_poses()
    for frame in measured:
        stamp_ns, frame_id = round(1e9 * frame.stamp_s), frame.frame_id or _BASE
        intake.on_sections(now_s, stamp_ns, frame_id, frame.section_tips)
        intake.on_tip(now_s, stamp_ns, frame_id, frame.section_tips[-1, :3, 3])
    return measured
