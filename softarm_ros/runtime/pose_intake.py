"""From measured tips and sections to the pose samples of a control loop."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from softarm_ros.control.feedback_watch import FeedbackWatch
from softarm_ros.control.measurement_frame import FramePairing
from softarm_ros.models.arm_model import Array
from softarm_ros.runtime.loop import PoseSample

if TYPE_CHECKING:
    from softarm_ros.plant.mocap import PoseMeasurement
    from softarm_ros.plant.plant import Plant

_BASE = 'base'


class PoseIntake:
    """
    Refuses poses that are not to be used, pairs the rest by frame, hands each out once.

    Parameters
    ----------
    watch : FeedbackWatch
        Whose cheap checks every tip passes.
    frames : FramePairing
        Of what passes them.
    observe : callable
        From section tips (sections, 4, 4) to the measured configuration (dof,) or None.

    """

    def __init__(
        self,
        watch: FeedbackWatch,
        frames: FramePairing,
        observe: Callable[[Array], Array | None],
    ) -> None:
        self.watch, self.frames = watch, frames
        self._observe = observe

    def on_tip(self, now_s: float, stamp_ns: int, frame_id: str, position: Array) -> str | None:
        """Take a measured tip position (3,) [m]; return why it is not used, or None."""
        refusal = self.watch.admit(now_s, 1e-9 * stamp_ns, frame_id, position)
        if refusal is None:
            self.frames.on_tip(now_s, stamp_ns, position)
        return refusal

    def on_sections(
        self, now_s: float, stamp_ns: int, frame_id: str, section_tips: Array
    ) -> str | None:
        """Take measured section tips (sections, 4, 4); return why they are not used, or None."""
        refusal = self.watch.foreign(frame_id)
        if refusal is None:
            self.frames.on_sections(now_s, stamp_ns, section_tips)
        return refusal

    def take(self, now_s: float, *, wait: bool = True) -> tuple[PoseSample, int] | None:
        """Return the newest pose and its time stamp [ns], once; None if there is nothing new."""
        frame = self.frames.take(now_s, wait=wait)
        if frame is None:
            return None
        seen = None
        if frame.section_tips is not None:
            with contextlib.suppress(ValueError):  # tips that give no configuration
                seen = self._observe(frame.section_tips)
        return PoseSample(1e-9 * frame.stamp_ns, frame.position, seen), frame.stamp_ns


def measure(plant: Plant, intake: PoseIntake, now_s: float) -> list[PoseMeasurement]:
    """Give an intake what the cameras of a plant have measured; return it."""
    measured = plant.poll_poses()
    for frame in measured:
        stamp_ns, frame_id = round(1e9 * frame.stamp_s), frame.frame_id or _BASE
        intake.on_sections(now_s, stamp_ns, frame_id, frame.section_tips)
        intake.on_tip(now_s, stamp_ns, frame_id, frame.section_tips[-1, :3, 3])
    return measured
