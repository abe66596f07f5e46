"""What an estimator is: from sightings and commands to the state of the arm, now."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.sightings import Place, Sighting
from softarm_ros.models.arm_model import Posture

TIP = 'tip'  # name of the tip's body or point in a sighting
SECTION = 'section_'  # followed by the index of the section whose tip a body sits on


class Health(str, Enum):
    """How far an estimate can be relied on."""

    OK = 'ok'
    DEGRADED = 'degraded'  # predicted, or from fewer measurements than usual
    LOST = 'lost'  # not to be driven by


@dataclass(frozen=True)
class TipLoad:
    """
    A load on the tip beside the one that the rig file states.

    Attributes
    ----------
    force : (3,)
        Base frame [N].
    covariance : (3, 3)
        [N2]; 0 across the directions in which a load is looked for.
    problem : str
        Why it is not told, with its standard deviation; empty where it is.

    """

    force: Array
    covariance: Array
    problem: str = ''


@dataclass(frozen=True)
class Innovations:
    """
    How far measurements were from what was predicted of them, since the arm began to be seen.

    Attributes
    ----------
    rows : int
        Numbers that were measured and used.
    squares : float
        Sum of the innovations' squares in units of their covariance. Where noise and covariance
        are as stated it is chi-squared with as many degrees of freedom as there are rows.

    """

    rows: int = 0
    squares: float = 0.0

    @property
    def mean(self) -> float:
        """Return the mean square of a row, 1 where all is as stated; nan before the first."""
        return self.squares / self.rows if self.rows else float('nan')


@dataclass(frozen=True)
class Estimate:
    """
    Where the arm is, as far as that is known.

    Attributes
    ----------
    stamp_s : float
        Time that the estimate is of [s]: now, or that of the measurement where nothing predicts.
    measured_s : float
        Time of the newest measurement in it [s].
    tip : (4, 4)
        Pose of the tip, base frame.
    tip_covariance : (6, 6), optional
        Of position [m2], then rotation vector [rad2], along the axes of the base frame.
    tip_twist : (6,), optional
        Velocity of the tip [m/s], then angular velocity [rad/s], base frame.
    section_tips : (sections, 4, 4), optional
        Poses of all section tips, base frame; None where only the tip is known.
    strains : (sections, 6), optional
        Configuration of every section, whatever its mechanics: the logarithm of the transform from
        its base to its tip (linear part [m], then rotation vector [rad], in the section's frame).
    strain_rates : (sections, 6), optional
        Their velocities [1/s].
    strain_covariance : (6 sections, 6 sections), optional
    configuration : (dof,), optional
        In the model's coordinates, where section tips tell it.
    tip_load : TipLoad, optional
        Where it was asked for.
    innovations : Innovations, optional
        Where measurements are predicted; of those that were used as a whole.
    health : Health
    reason : str
        Why it is not ok; empty where it is.

    """

    stamp_s: float
    measured_s: float
    tip: Array
    tip_covariance: Array | None = None
    tip_twist: Array | None = None
    section_tips: Array | None = None
    strains: Array | None = None
    strain_rates: Array | None = None
    strain_covariance: Array | None = None
    configuration: Array | None = None
    tip_load: TipLoad | None = None
    innovations: Innovations | None = None
    health: Health = Health.OK
    reason: str = ''


@dataclass(frozen=True)
class Surroundings:
    """
    What an estimator knows of a rig beside its own fields.

    Attributes
    ----------
    response_s : float
        Of the arm to a command.
    rate_hz : float
        Of the pose sensor.
    position_noise_m : float
        Of the pose sensor.
    places : mapping
        Of bodies and points that are not section tips.
    gravity_m_s2 : (3,)
        Base frame.
    load_beyond_m : float
        How far beyond the tip, along its z axis, a load acts: in the middle of a gripper.
    swung_mass_kg : float
        At the tip, that would swing as the arm does; 0: not known.

    """

    response_s: float = 0.05
    rate_hz: float = 100.0
    position_noise_m: float = 2.0e-4
    places: Mapping[str, Place] | None = None
    gravity_m_s2: tuple[float, float, float] = (0.0, 0.0, 9.81)
    load_beyond_m: float = 0.0
    swung_mass_kg: float = 0.0


class Estimator(ABC):
    """
    From sightings and commands to an estimate; no clock, no I/O. Times are seconds of one clock.

    Sightings are in the base frame. Bodies are `tip` and `section_0`, `section_1`, ... unless the
    estimator has been given other places.

    Attributes
    ----------
    predicts : bool
        Whether older measurements help where there is a newer one.

    """

    predicts = False

    @abstractmethod
    def observe(self, sighting: Sighting) -> str | None:
        """Take a sighting, in any order; return why it, or some of it, is not used, or None."""

    @abstractmethod
    def estimate(self, now_s: float) -> Estimate | None:
        """Return the estimate for now, or None where there is none (yet, or nothing new)."""

    def command(self, now_s: float, posture: Posture) -> None:  # noqa: B027
        """Take what the arm is asked for from now on."""

    def actuated(self, stamp_s: float, actuation: Array) -> None:  # noqa: B027
        """Take the measured actuation (m,), without pretension."""

    def pace(self, now_s: float) -> float:
        """Return how fast a reference may go on, as a share: 0 holds the arm."""
        return 1.0

    def reset(self) -> None:  # noqa: B027
        """Forget everything: the arm begins anew."""
