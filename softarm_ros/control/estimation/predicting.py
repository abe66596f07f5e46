"""Base class of estimators that predict: order of sightings, estimate for now, health, pace."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from dataclasses import dataclass, replace

import numpy as np

from softarm_ros.control.estimation.belief import Belief, Believer, Taken
from softarm_ros.control.estimation.chain_kernels import strains_of
from softarm_ros.control.estimation.commanded import CommandedStrains
from softarm_ros.control.estimation.config import PredictingConfig
from softarm_ros.control.estimation.configuration_rate import configuration_rate
from softarm_ros.control.estimation.deviation import DeviationModel
from softarm_ros.control.estimation.measurements import LEAST_NOISE_M, Measured, Noise, Places
from softarm_ros.control.estimation.tip_force import TipForceObserver
from softarm_ros.control.estimation.tip_load import TipLoadObserver, TipSeen
from softarm_ros.control.estimation.tip_weight import TipWeightObserver
from softarm_ros.control.estimator import (
    TIP,
    Estimate,
    Estimator,
    Health,
    Innovations,
    Surroundings,
)
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.sightings import BodySighting, Place, Sighting
from softarm_ros.models.arm_model import ArmModel, ModelError, Posture

_MARKER_TRIANGLE_M = 0.1  # lever that converts noise of positions to noise of attitudes
_ACTUATORS_ALONE_S = 0.1  # period of their evaluation before the first pose: the model takes ms
_USUAL = 3.0  # periods between measurements after which an estimate counts as predicted


@dataclass(frozen=True)
class Entry:
    """A measurement, and belief and innovations before it."""

    measured: Measured
    before: Belief
    innovations: Innovations


class PredictingEstimator(Estimator):
    """
    Estimates the strains of all sections: those of the lagged command plus a deviation.

    The deviation is a state with a velocity (`kalman_kernels`); it covers model error, sag,
    hysteresis and swing. A measurement is applied at its own time: one that arrives after newer
    ones is inserted in order, and the newer ones are applied again.
    """

    predicts = True

    def __init__(
        self, config: PredictingConfig, model: ArmModel, surroundings: Surroundings
    ) -> None:
        self.config = config
        self._model, self._around = model, surroundings
        rest = model.posture_of(model.rest_configuration)
        sections = len(rest.section_tips)
        self._deviation = DeviationModel.of(config, sections, model.rest_length_m)
        response = surroundings.response_s if config.response_s is None else config.response_s
        noise = config.position_noise_m or max(surroundings.position_noise_m, LEAST_NOISE_M)
        turn = config.orientation_noise_rad or noise / _MARKER_TRIANGLE_M
        self._noise_m = noise
        self._places = Places(
            sections,
            self._deviation.group_ends,
            surroundings.places or {},
            Noise(noise, turn, config.shape_noise_m),
        )
        horizon = 2.0 * config.max_lateness_s + config.bridge_s
        self._commanded = CommandedStrains(response, horizon)
        self._believer = Believer(
            self._deviation,
            self._commanded,
            config.gate_probability,
            config.max_rejected_s,
            config.learning_s,
        )
        self._tips = np.arange(sections), np.ones(sections), np.tile(np.eye(4), (sections, 1, 1))
        self._weighing = _observer(config, model, surroundings)
        self.reset()
        self._rehearse(rest)

    def _rehearse(self, rest: Posture) -> None:
        """Run everything once, so that compiled code is loaded now and not in motion."""
        self.command(0.0, rest)
        self.observe(Sighting(0, '', (BodySighting(TIP, rest.section_tips[-1]),)))
        estimate = self.estimate(0.01)
        if estimate is not None:
            configuration_rate(self._model, estimate)
        self.reset()

    def reset(self) -> None:
        """Forget everything, for a fresh start of the arm."""
        self._commanded.forget()
        self._belief: Belief | None = None
        self._log: list[Entry] = []
        self._paced: tuple[float, float] | None = None
        self._actuated_s = -np.inf
        self._innovations = Innovations()
        if self._weighing is not None:
            self._weighing.reset()

    # -- inputs

    def command(self, now_s: float, posture: Posture) -> None:
        """Take the posture commanded from now on; ignore it while only actuators are known."""
        if self._belief is None and self._actuated_s > -np.inf:
            return
        self._commanded.take(now_s, strains_of(np.ascontiguousarray(posture.section_tips)))

    def actuated(self, stamp_s: float, actuation: Array) -> None:
        """
        Take the measured actuation (m,), without pretension.

        Until the first pose arrives, it replaces the commands, and the estimate is degraded. After
        that, it serves to estimate a load at the tip, if that is asked for: the measured tip is
        compared with the model's tip at this actuation.
        """
        if self._belief is not None:
            if self._weighing is not None:
                self._weighing.actuated(stamp_s, actuation)
                if self._weighing.due(stamp_s):
                    self._weighing.update(stamp_s, self._tip_seen(stamp_s))
            return
        if stamp_s - self._actuated_s < _ACTUATORS_ALONE_S:
            return
        with contextlib.suppress(ValueError):  # the model does not cover this actuation
            configuration = self._model.configuration_of(actuation)
            tips = self._model.posture_of(configuration).section_tips
            self._commanded.take(stamp_s, strains_of(np.ascontiguousarray(tips)))
            self._actuated_s = stamp_s

    def observe(self, sighting: Sighting) -> str | None:
        """Take a sighting, in any order; return why all or part of it is not used, or None."""
        if not self._commanded.began:
            return 'sighting before the first command'
        measured, refused = self._places.measured(sighting)
        if measured is None:
            return '; '.join(refused) or 'sighting of nothing that has a place on the arm'
        late = self._log[-1].measured.stamp_s - measured.stamp_s if self._log else 0.0
        if late > self.config.max_lateness_s:
            return (
                f'sighting is {1e3 * late:.0f} ms older than the newest '
                f'(limit {1e3 * self.config.max_lateness_s:.0f} ms)'
            )
        self._insert(measured)
        return '; '.join(refused) or None

    def _insert(self, measured: Measured) -> None:
        log = self._log
        at = len(log)
        if log and measured.stamp_s < log[-1].measured.stamp_s:
            at = bisect_right(log, measured.stamp_s, key=lambda entry: entry.measured.stamp_s)
        if at < len(log) and log[at].before.measured:
            belief = log[at].before
        elif at < len(log):  # older than all others
            belief = self._believer.first(measured.stamp_s)
        else:
            belief = self._belief or self._believer.first(measured.stamp_s)
        again = [measured, *(entry.measured for entry in log[at:])]
        innovations = log[at].innovations if at < len(log) else self._innovations
        del log[at:]
        for one in again:
            log.append(Entry(one, belief, innovations))
            belief, taken = self._applied(belief, one)
            if (taken.rows == one.sizes).all():
                innovations = innovations.with_squares(taken.distances, int(taken.rows.sum()))
        self._belief, self._innovations = belief, innovations
        oldest = log[-1].measured.stamp_s - self.config.max_lateness_s
        while len(log) > 1 and log[1].before.stamp_s < oldest:
            log.pop(0)

    def _applied(self, belief: Belief, measured: Measured) -> tuple[Belief, Taken]:
        """
        Return the belief after a measurement, and the part of it that was used.

        If all of it was rejected, the belief is exactly as without it. A prediction in two steps
        would not be the same to the bit, because each step learns speeds.
        """
        after, taken = self._believer.updated(belief, measured)
        if taken.rows.any() or self._believer.contradicted(belief, measured):
            return after, taken
        left = replace(belief, rejected_since_s=after.rejected_since_s, partly=after.partly)
        return left, taken

    # -- outputs

    def estimate(self, now_s: float) -> Estimate | None:
        """Return the estimate for now; None before the first measurement of poses or actuators."""
        belief = self._current()
        if belief is None:
            if self._actuated_s == -np.inf:
                return None
            belief = self._believer.first(now_s)
        now = self._believer.foreseen(belief, now_s, self._tips)
        tips = now.poses
        seen = None
        with contextlib.suppress(ValueError):  # no configuration follows from the tips
            seen = self._model.observed_configuration(tips)
        health, reason = self._health(belief, now_s)
        return Estimate(
            stamp_s=now_s,
            measured_s=belief.accepted_s,
            tip=tips[-1],
            tip_covariance=belief.hindsight.scale * now.last_covariance,
            tip_twist=now.twist,
            section_tips=tips,
            strains=now.strains,
            strain_rates=now.strain_rates,
            strain_covariance=belief.hindsight.scale * now.strain_covariance,
            configuration=seen,
            tip_load=None if self._weighing is None else self._weighing.load(),
            innovations=self._innovations,
            health=health,
            reason=reason,
        )

    def place(self, place: Place, now_s: float) -> tuple[Array, Array] | None:
        """Return pose (4, 4) and covariance (6, 6) of a place on the arm now, or None."""
        belief = self._current()
        if belief is None:
            return None
        now = self._believer.foreseen(
            belief,
            now_s,
            (np.array([place.section]), np.array([place.fraction]), np.array([place.offset])),
        )
        return now.poses[0], belief.hindsight.scale * now.last_covariance

    def pace(self, now_s: float) -> float:
        """Return the share of speed allowed to a reference: less towards the end of `bridge_s`."""
        belief = self._current()
        if belief is None:
            return 1.0
        age = now_s - belief.accepted_s
        wanted = float(np.clip((self.config.bridge_s - age) / self.config.slow_s, 0.0, 1.0))
        if self._paced is not None and wanted > self._paced[1]:
            before_s, before = self._paced
            wanted = min(wanted, before + max(now_s - before_s, 0.0) / self.config.slow_s)
        self._paced = (now_s, wanted)
        return wanted

    def _current(self) -> Belief | None:
        return self._belief

    def _tip_seen(self, now_s: float) -> TipSeen:
        """Return the estimated tip, without the effect of an estimated load."""
        belief = self._current()
        assert belief is not None
        now = self._believer.foreseen(belief, now_s, self._tips)
        return TipSeen(now.poses[-1], now.last_covariance, *now.drift())

    def _health(self, belief: Belief, now_s: float) -> tuple[Health, str]:
        age = now_s - belief.accepted_s
        if age == np.inf:
            return Health.DEGRADED, 'no pose has been measured: from the actuators alone'
        if age > self.config.bridge_s:
            limit = 1e3 * self.config.bridge_s
            why = belief.partly and f' ({belief.partly})'
            return Health.LOST, f'no pose for {1e3 * age:.0f} ms (limit {limit:.0f} ms){why}'
        usual = _USUAL / self._around.rate_hz + self.config.slow_s * 0.1
        if age > usual:
            return Health.DEGRADED, f'predicted: no pose for {1e3 * age:.0f} ms'
        if belief.partly:
            return Health.DEGRADED, belief.partly
        return Health.OK, ''


def _observer(
    config: PredictingConfig, model: ArmModel, surroundings: Surroundings
) -> TipLoadObserver | None:
    """Return the observer of the load, or None; raise ModelError if the model has no loads."""
    if config.tip_load is None:
        return None
    beyond, spread = surroundings.load_beyond_m, config.tip_load_spread_N
    share = config.tip_load_model_share
    if config.tip_load == 'force':
        return TipForceObserver(model, beyond, spread, share, config.memory_s)
    gravity = np.array(surroundings.gravity_m_s2)
    if not gravity.any():
        raise ModelError("tip_load = weight: there is no gravity; expected 'force'")
    return TipWeightObserver(model, gravity, beyond, spread, share, surroundings.swung_mass_kg)
