"""The control loop of a task: moves, dwells and gripper commands in sequence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.control.config import TrackerConfig
from softarm_ros.control.reach import Reach
from softarm_ros.control.tracker import Tracker
from softarm_ros.control.trajectory import Trajectory
from softarm_ros.control.trajectory_config import LineConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.runtime.configuration_move import ConfigurationMove, plan_move
from softarm_ros.runtime.loop import CycleOutput, Loop, Phase, PoseSample

_NEAR_M = 1e-5  # a line shorter than this is skipped


@dataclass(frozen=True)
class Stage:
    """
    One step of a task, ready to run.

    Attributes
    ----------
    label : str
        Text that is reported when the stage begins.
    position, speed : (3,) [m] and [m/s], or None
        Target of the tip, along a straight line, and its speed.
    configuration : (dof,) or None
        Target of a motion in configuration space.
    duration_s : float
        Least duration of a motion; duration of a dwell or a gripper command.
    gripper_pressure_Pa : float or None
        Gripper pressure, set when the stage begins and kept.

    """

    label: str
    duration_s: float = 0.0
    position: Array | None = None
    speed: float = 0.0
    configuration: Array | None = None
    gripper_pressure_Pa: float | None = None


class TaskLoop(Loop):
    """
    Drives an arm through the stages of a task.

    Attitudes are reached in configuration space by the model alone, as by an arm without tip
    feedback. Positions are tracked along straight lines, with feedback unless the loop is open,
    and feedback holds them until the next motion. The reference of an attitude is the model's tip,
    so the reported error is that of the model.
    """

    counts = 'step'

    def __init__(
        self,
        tracker: Tracker,
        stages: tuple[Stage, ...],
        config: TrackerConfig,
        *,
        open_loop: bool,
    ) -> None:
        waypoints = [s.position for s in stages if s.position is not None]
        points = np.array(waypoints).reshape(-1, 3)
        reach = Reach(points, np.zeros(len(points)), points, tracker.model.rest_configuration)
        super().__init__(tracker, reach, config, open_loop=open_loop)
        self.stages = stages
        self._index = 0
        self._move: ConfigurationMove | None = None
        self._line: Trajectory | None = None
        self._held_at: Array | None = None  # position that feedback holds between motions
        self._braking = False  # the command comes to rest before a motion to an attitude
        self._gripper: float | None = None

    @property
    def stage(self) -> Stage:
        """The current stage."""
        return self.stages[min(self._index, len(self.stages) - 1)]

    def path(self, n: int) -> Array:
        """Return (n, 3) points [m] through the model's tips of all stages."""
        tips = [self.model.tip_and_jacobian(self.model.rest_configuration)[0]]
        for stage in self.stages:
            if stage.position is not None:
                tips.append(stage.position)
            elif stage.configuration is not None:
                tips.append(self.model.tip_and_jacobian(stage.configuration)[0])
        corners = np.array(tips)
        at = np.linspace(0.0, len(corners) - 1.0, n)
        return np.stack([np.interp(at, np.arange(len(corners)), c) for c in corners.T], axis=1)

    def start(self, now_s: float) -> None:
        """Begin with the first stage."""
        self.phase = Phase.TRACK
        self._begin(0)

    def resume(self, now_s: float) -> None:
        """Continue after a hold; the rest of a motion to an attitude begins at rest."""
        held = self.phase is Phase.HELD
        super().resume(now_s)
        if held and self._move is not None:
            left_s = self._move.duration_s - self._phase_time
            self._move, self._phase_time = self._move_to(self._move.goal, left_s), 0.0

    def cycle(self, now_s: float, pose: PoseSample | None) -> CycleOutput:
        """Read the newest pose (None: nothing new) and update the command."""
        period = self._advance_clock(now_s)
        self._read(pose)
        age = 0.0 if self._pose is None else max(now_s - self._pose.stamp_s, 0.0)
        if self.phase is Phase.TRACK:
            self._update(period, age)
        elif self.phase is Phase.DONE:
            self.tracker.brake(period)  # feedback may still have moved the command
        matched = self._reference(self._phase_time - age)
        done = self.phase is Phase.DONE
        return CycleOutput(
            now_s,
            self.phase,
            self._index,
            1.0 if done else self._index / len(self.stages),
            self._reference(self._phase_time),
            self.tracker.configuration.copy(),
            self.tracker.actuation.copy(),
            self._distance_from(matched),
            matched,
            self._take_events(),
            self._gripper,
        )

    # -- stages ---------------------------------------------------------------------------

    def _begin(self, index: int) -> None:
        self._index, self._phase_time, self._braking = index, 0.0, False
        self._move = self._line = None
        if index == len(self.stages):
            self.phase = Phase.DONE
            self._index = index - 1
            self._tell('info', 'task completed')
            return
        stage = self.stage
        self._tell('info', f'step {index + 1} of {len(self.stages)}: {stage.label}')
        if stage.gripper_pressure_Pa is not None:
            self._gripper = stage.gripper_pressure_Pa
        if stage.configuration is not None:
            self._held_at = None
            self._move = self._move_to(stage.configuration, stage.duration_s)
        elif stage.position is not None:
            self._line = self._line_to(stage)
            self._held_at = stage.position

    def _move_to(self, goal: Array, least_s: float) -> ConfigurationMove:
        """Return a motion from the present command to a configuration (dof,), rest to rest."""
        start = self.tracker.configuration.copy()
        return plan_move(self.model, self.limits, start, goal, max(least_s, self.period_s))

    def _line_to(self, stage: Stage) -> Trajectory | None:
        known = self._pose is not None and not self.open_loop
        start = self._pose.position if known and self._pose else self.tracker.tip()
        if stage.position is None or np.linalg.norm(stage.position - start) < _NEAR_M:
            return None
        line = LineConfig(
            type='line',
            start=(float(start[0]), float(start[1]), float(start[2])),
            end=(float(stage.position[0]), float(stage.position[1]), float(stage.position[2])),
            speed=stage.speed,
        )
        return Trajectory(
            line,
            max_acceleration=self.config.max_acceleration_m_s2,
            max_jerk=self.config.max_jerk_m_s3,
        )

    def _update(self, period: float, age: float) -> None:
        if self._move is not None:
            self.tracker.move_to(self._move.at(self._phase_time), period)
            if self._phase_time >= self._move.duration_s:
                self._begin(self._index + 1)
            return
        if self._braking:
            if self.tracker.brake(period):
                self._begin(self._index + 1)
            return
        velocity = np.zeros(3)
        if self._line is not None:
            velocity = self._line.sample(self._phase_time).velocity
        error = np.zeros(3)
        if self._held_at is not None:
            error = self._error(age)
            self.tracker.step(self.pace * velocity, self.pace * error, period, self._measured())
        if self._finished(error):
            following = self.stages[self._index + 1 : self._index + 2]
            to_attitude = any(stage.configuration is not None for stage in following)
            self._braking = to_attitude and self._held_at is not None
            if not self._braking:
                self._begin(self._index + 1)

    def _finished(self, error: Array) -> bool:
        if self.stage.position is None:
            return self._phase_time >= self.stage.duration_s
        moving = self._line.duration_s if self._line is not None else 0.0
        over = self._phase_time - moving
        if over < 0.0:
            return False
        # Without a measurement, the tip cannot be known to be close.
        away = np.inf if self._pose is None else float(np.linalg.norm(error))
        if away <= self.config.settle_tolerance_m or self.open_loop:
            return True
        if over < self.config.settle_timeout_s:
            return False
        self._tell(
            'warning',
            f'step {self._index + 1}: {1e3 * away:.1f} mm from its position after '
            f'{self.config.settle_timeout_s:g} s (tolerance '
            f'{1e3 * self.config.settle_tolerance_m:.1f} mm)',
        )
        return True

    def _error(self, age: float) -> Array:
        if self.open_loop:
            return self._reference(self._phase_time) - self.tracker.tip()
        if self._pose is None:
            return np.zeros(3)
        return self._reference(self._phase_time - age) - self._pose.position

    def _reference(self, time_s: float) -> Array:
        if self._line is not None:
            return self._line.sample(time_s).position
        if self._held_at is not None:
            return self._held_at
        if self._move is not None:
            return self.model.tip_and_jacobian(self._move.at(time_s))[0]
        return self.tracker.tip()
