"""Base class of estimators: present state of the arm from sightings and commands."""

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
    """How far an estimate can be trusted."""

    OK = 'ok'
    DEGRADED = 'degraded'  # predicted, or from fewer measurements than usual
    LOST = 'lost'  # must not be used for control


@dataclass(frozen=True)
class TipLoad:
    """
    An additional load on the tip, beyond the one in the rig file.

    Attributes
    ----------
    force : (3,)
        Load in the base frame [N].
    covariance : (3, 3)
        [N2]; 0 in directions in which no load is estimated.
    problem : str
        Why the load cannot be given, with its standard deviation; empty if it can.

    """

    force: Array
    covariance: Array
    problem: str = ''


@dataclass(frozen=True)
class Innovations:
    """
    How far measurements lay from their predictions since the arm was first seen.

    Attributes
    ----------
    rows : int
        Number of scalar measurements used.
    squares : float
        Sum of the squared innovations, normalized by their covariance. If noise and covariance are
        as stated, it is chi-squared with `rows` degrees of freedom.

    """

    rows: int = 0
    squares: float = 0.0

    def with_squares(self, distances: Array, rows: int) -> Innovations:
        """Return the innovations with the normalized squares (n,) of further rows."""
        return Innovations(self.rows + rows, self.squares + float(distances.sum()))

    @property
    def mean(self) -> float:
        """Mean normalized square per row: 1 if noise is as stated, nan before the first row."""
        return self.squares / self.rows if self.rows else float('nan')


@dataclass(frozen=True)
class Estimate:
    """
    Estimated state of the arm.

    Attributes
    ----------
    stamp_s : float
        Time of the estimate [s]: now, or the measurement's time if the estimator cannot predict.
    measured_s : float
        Time of the newest measurement used [s].
    tip : (4, 4)
        Pose of the tip, base frame.
    tip_covariance : (6, 6), optional
        Of position [m2], then rotation vector [rad2], along the axes of the base frame.
    tip_twist : (6,), optional
        Velocity of the tip [m/s], then angular velocity [rad/s], base frame.
    section_tips : (sections, 4, 4), optional
        Poses of all section tips, base frame; None if only the tip is known.
    strains : (sections, 6), optional
        Configuration of every section in a form common to all arms: the logarithm of the transform
        from its base to its tip (linear part [m], then rotation vector [rad], section frame).
    strain_rates : (sections, 6), optional
        Time derivatives of the strains [m/s, rad/s].
    strain_covariance : (6 sections, 6 sections), optional
    configuration : (dof,), optional
        In the model's coordinates, if section tips determine it.
    tip_load : TipLoad, optional
        If the rig asks for it.
    innovations : Innovations, optional
        If the estimator predicts measurements; of the measurements that were used completely.
    health : Health
    reason : str
        Why the health is not ok; empty if it is.

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
    Facts about a rig that an estimator needs beyond its own fields.

    Attributes
    ----------
    response_s : float
        Response time of the arm to a command.
    rate_hz : float
        Rate of the pose sensor.
    position_noise_m : float
        Position noise of the pose sensor.
    places : mapping
        Places of the bodies and points that are not section tips.
    gravity_m_s2 : (3,)
        Base frame.
    load_beyond_m : float
        Distance beyond the tip, along its z axis, at which a load acts: the middle of a gripper.
    swung_mass_kg : float
        Mass at the tip with the same inertia in a swing as the arm; 0 if not known.

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
    Estimates the arm's state from sightings and commands, without clock or I/O.

    Times are seconds of one clock. Sightings are in the base frame. Bodies are `tip`, `section_0`,
    `section_1`, ... unless the estimator is given other places.

    Attributes
    ----------
    predicts : bool
        Whether a measurement still helps after a newer one has arrived.

    """

    predicts = False

    @abstractmethod
    def observe(self, sighting: Sighting) -> str | None:
        """Take a sighting, in any order; return why all or part of it is not used, or None."""

    @abstractmethod
    def estimate(self, now_s: float) -> Estimate | None:
        """Return the estimate for now, or None (no measurement yet, or none that is new)."""

    def command(self, now_s: float, posture: Posture) -> None:  # noqa: B027
        """Take the posture that is commanded from now on."""

    def actuated(self, stamp_s: float, actuation: Array) -> None:  # noqa: B027
        """Take the measured actuation (m,), without pretension."""

    def pace(self, now_s: float) -> float:
        """Return the speed allowed to the reference, as a share: 0 holds the arm."""
        return 1.0

    def reset(self) -> None:  # noqa: B027
        """Forget everything, for a fresh start of the arm."""
