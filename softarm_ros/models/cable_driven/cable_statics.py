"""The proposed model: cables cut into the soft body between their anchors (eq. 1-30)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven.arm import CableDrivenArm
from softarm_ros.models.cable_driven.cable_equilibrium_kernels import (
    equilibrium_into,
    equilibrium_jacobian_into,
)
from softarm_ros.models.cable_driven.cable_statics_kernels import (
    MAX_BENDING_RAD,
    NO_CABLE,
    NOT_HOLDABLE,
    OK,
    OVERPULLED,
    TOO_BENT,
    holding_contractions_into,
    holding_jacobian_into,
)
from softarm_ros.models.cable_driven.constant_curvature import not_holdable
from softarm_ros.models.cable_driven.slack_kernels import taut_bend_jacobian_into
from softarm_ros.models.config import CableConfig, SectionConfig

_NO_GUESS = np.array([math.nan, math.nan])


@dataclass(frozen=True)
class SectionStatics:
    """
    Equilibrium of one section: its bend, and the state of each of its m cables.

    Attributes
    ----------
    bend : (2,)
        Bending vector theta (cos phi, sin phi) [rad].
    contraction : (m,)
        Pulled-in length [m]; the cable's length in the section is L - contraction. For a slack
        cable of a forward solution, the given contraction.
    tension : (m,)
        T [N], zero for slack cables.
    incident_angle : (m,)
        alpha [rad] between cable and endcap normal.
    cable_curvature : (m,)
        kappa_c [1/m].
    cut_in_depth : (m,)
        delta_max [m], towards the centre of the bend.

    """

    bend: Array
    contraction: Array
    tension: Array
    incident_angle: Array
    cable_curvature: Array
    cut_in_depth: Array

    @property
    def theta(self) -> float:
        """Bending angle [rad]."""
        return math.hypot(self.bend[0], self.bend[1])

    @property
    def phi(self) -> float:
        """Bending direction [rad] from the section x axis, 0 for a straight section."""
        return math.atan2(self.bend[1], self.bend[0])


class CableSection:
    """
    Statics of one section and its cables at given angles around the backbone.

    Parameters
    ----------
    config
        Geometry and stiffnesses.
    cable_angles_rad
        Angle of each cable from the section x axis [rad].
    cable_names
        Names for error messages; 'cable 1', 'cable 2', ... by default.

    """

    def __init__(
        self,
        config: SectionConfig,
        cable_angles_rad: Sequence[float] | Array = (0.0,),
        cable_names: Sequence[str] | None = None,
    ) -> None:
        self.config = config
        angles = np.array(cable_angles_rad, dtype=np.float64)
        if angles.ndim != 1 or angles.size == 0 or not np.isfinite(angles).all():
            raise ValueError(f'cable_angles_rad = {cable_angles_rad}: expected finite angles')
        radius = config.cable_radius_m
        self._cables = np.stack([radius * np.cos(angles), radius * np.sin(angles), angles], axis=1)
        self._section = np.array(
            [
                config.length_m,
                config.endcap_length_m,
                config.bending_stiffness_N_m2,
                config.cutting_in_stiffness_N_m2,
            ]
        )
        self.cable_names = tuple(cable_names or (f'cable {i + 1}' for i in range(angles.size)))

    def section_inverse(self, theta: float, phi: float = 0.0) -> SectionStatics:
        """
        Return the statics that hold the section at a bending angle and direction [rad].

        Only the two cables next to the bending direction carry tension (eq. 41 for three cables);
        the others are just taut, with length L (1 - d_i kappa).

        Raises
        ------
        ModelError
            Beyond 175 degrees, if the cables cannot hold the direction, or if an inner cable would
            have no length left.

        """
        bx, by = theta * math.cos(phi), theta * math.sin(phi)
        if not (math.isfinite(bx) and math.isfinite(by)):
            raise ValueError(f'theta = {theta}, phi = {phi}: expected finite angles')
        contraction, moments, alphas = self._holding(bx, by)
        return self._statics(np.array([bx, by]), contraction, moments, alphas)

    def section_forward(self, lengths: Array, guess: Array | None = None) -> SectionStatics:
        """
        Return the equilibrium for cable lengths (m,) [m] within the bending part.

        `guess` (2,) [rad] is a bending vector to start from. A cable longer than L (1 - d_i kappa)
        is slack.

        Raises
        ------
        ModelError
            If cables are pulled in against each other further than they can cut in, or bend the
            section beyond 175 degrees.

        """
        values = np.array(lengths, dtype=np.float64)
        if values.shape != (len(self._cables),):
            raise ValueError(
                f'lengths has shape {values.shape}, expected ({len(self._cables)},): '
                f'{", ".join(self.cable_names)}'
            )
        for name, value in zip(self.cable_names, values):
            if not math.isfinite(value):
                raise ValueError(f'length of {name} is {value}, expected a finite number')
        return self._forward(self.config.length_m - values, guess)

    def _holding(self, bx: float, by: float) -> tuple[Array, Array, Array]:
        """Return the contractions, moments per lever and alphas that hold a bending vector."""
        m = len(self._cables)
        contraction, moments, alphas = np.empty(m), np.empty(m), np.empty(m)
        status = holding_contractions_into(
            bx, by, self._section, self._cables, contraction, moments, alphas
        )
        if status != OK:
            raise self.error(status, bx, by, contraction)
        return contraction, moments, alphas

    def _equilibrium(
        self, contraction: Array, guess: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Return the bending vector, moments per lever and alphas under contractions (m,) [m]."""
        m = len(self._cables)
        moments, alphas = np.empty(m), np.empty(m)
        start = _NO_GUESS if guess is None else np.array(guess, dtype=np.float64)
        if start.shape != (2,):
            raise ValueError(f'guess has shape {start.shape}, expected (2,)')
        status, bx, by, overpull = equilibrium_into(
            contraction, self._section, self._cables, start, moments, alphas
        )
        if status != OK:
            raise self.error(status, bx, by, contraction, overpull)
        return np.array([bx, by]), moments, alphas

    def _forward(self, contraction: Array, guess: Array | None = None) -> SectionStatics:
        bend, moments, alphas = self._equilibrium(contraction, guess)
        return self._statics(bend, contraction, moments, alphas)

    def _contraction_jacobian(self, bx: float, by: float) -> Array:
        """Return d contraction / d bend (m, 2) [m/rad]."""
        _, moments, alphas = self._holding(bx, by)
        jacobian = np.empty((len(self._cables), 2))
        holding_jacobian_into(bx, by, self._section, self._cables, moments, alphas, jacobian)
        return jacobian

    def _bend_jacobian(self, contraction: Array, bend: Array) -> Array:
        """Return d bend / d contraction (2, m) [rad/m]."""
        jacobian = np.empty((2, contraction.size))
        bent = equilibrium_jacobian_into(
            bend[0], bend[1], contraction, self._section, self._cables, jacobian
        )
        if not bent:  # the limit of the straight section: cables guide it without cutting in
            taut_bend_jacobian_into(bend[0], bend[1], contraction, self._cables, jacobian)
        return jacobian

    def _statics(
        self, bend: Array, contraction: Array, moments: Array, alphas: Array
    ) -> SectionStatics:
        length = self.config.length_m
        theta = math.hypot(bend[0], bend[1])
        x = 0.5 * theta
        psi = x - alphas
        chord = (length - self._cables[:, :2] @ bend) * np.sinc(x / math.pi)
        depth = 0.5 * chord * np.sin(0.5 * alphas) / (math.cos(0.5 * x) * np.cos(0.5 * psi))
        return SectionStatics(
            bend=bend,
            contraction=contraction,
            tension=moments / np.cos(alphas),
            incident_angle=alphas,
            cable_curvature=2.0 * np.sin(psi) / chord,
            cut_in_depth=depth,
        )

    def error(
        self, status: int, bx: float, by: float, contraction: Array, overpull: float = 0.0
    ) -> ModelError:
        """Return the error that explains the status of a kernel."""
        name = self.config.name
        theta = math.degrees(math.hypot(bx, by))
        limit = math.degrees(MAX_BENDING_RAD)
        pulled = ', '.join(
            f'{cable} {1e3 * value:.3f} mm' for cable, value in zip(self.cable_names, contraction)
        )
        if status == NOT_HOLDABLE:
            return not_holdable(name, bx, by)
        if status == NO_CABLE:
            return ModelError(
                f'section {name}: bent by {theta:.1f} deg its inner cable would have no length '
                f'left (length_m = {self.config.length_m}, '
                f'cable_radius_m = {self.config.cable_radius_m})'
            )
        if status == TOO_BENT:
            return ModelError(
                f'section {name}: a bend of about {theta:.1f} deg is beyond {limit:g} deg, the '
                f'limit of the model: {pulled}'
            )
        if status == OVERPULLED:
            return ModelError(
                f'section {name}: cables are pulled in against each other by '
                f'{1e3 * overpull:.3f} mm each, more than they can cut in at this bend: {pulled}'
            )
        return ModelError(f'section {name}: no equilibrium found for contractions {pulled}')


class CableStaticsArm(CableDrivenArm):
    """Arm whose cables cut in: contraction depends on tension, tension on bending stiffness."""

    name: str = 'cable_statics'

    def __init__(
        self,
        sections: Sequence[SectionConfig],
        cables: Sequence[CableConfig],
        within: ActuationRange | None = None,
    ) -> None:
        super().__init__(sections, cables, within)
        self._statics = [
            CableSection(
                section,
                self._paths[k][:, 2],
                [self.cables[i].name for i in self._columns[k]],
            )
            for k, section in enumerate(self.sections)
        ]

    def section(self, k: int) -> CableSection:
        """Return the statics of section k, counted from the base."""
        return self._statics[k]

    def _section_contraction(self, k: int, bend: Array) -> Array:
        return self._statics[k]._holding(bend[0], bend[1])[0]

    def _section_contraction_jacobian(self, k: int, bend: Array) -> Array:
        return self._statics[k]._contraction_jacobian(bend[0], bend[1])

    def _section_bend(self, k: int, contraction: Array) -> Array:
        return self._statics[k]._equilibrium(contraction)[0]

    def _section_bend_jacobian(self, k: int, contraction: Array, bend: Array) -> Array:
        return self._statics[k]._bend_jacobian(contraction, bend)


@dataclass(frozen=True)
class SingleCable:
    """
    One cable on the inside of the bend (eq. 21): SI units and radians.

    `alpha` is the incident angle, `kappa_c` the cable's curvature, `delta` its largest cut-in
    depth.
    """

    theta: float
    contraction: float
    tension: float
    alpha: float
    kappa_c: float
    delta: float


def single_cable_inverse(
    theta: float, length: float, radius: float, bending_stiffness: float, cutting_in: float
) -> SingleCable:
    """
    Return the state of the single cable that holds a section at `theta` [rad].

    Parameters
    ----------
    theta
        Bending angle [rad] towards the cable, 0 to 175 degrees.
    length, radius
        L and d [m].
    bending_stiffness, cutting_in
        K_b [N m^2] and K_t [N/m^2].

    Raises
    ------
    ModelError
        For a negative angle (a cable cannot push) and beyond the range of the model.

    """
    section = _one_cable_section(length, radius, bending_stiffness, cutting_in)
    return _single(section.section_inverse(theta))


def single_cable_forward(
    contraction: float, length: float, radius: float, bending_stiffness: float, cutting_in: float
) -> SingleCable:
    """
    Return the state of a single cable pulled in by `contraction` [m]: the solution of eq. 21.

    Parameters and errors are those of `single_cable_inverse`; a cable with a negative contraction
    is slack.
    """
    section = _one_cable_section(length, radius, bending_stiffness, cutting_in)
    return _single(section.section_forward(np.array([length - contraction])))


def _one_cable_section(
    length: float, radius: float, bending_stiffness: float, cutting_in: float
) -> CableSection:
    config = SectionConfig(
        name='section',
        length_m=length,
        endcap_length_m=0.0,
        cable_radius_m=radius,
        bending_stiffness_N_m2=bending_stiffness,
        cutting_in_stiffness_N_m2=cutting_in,
    )
    return CableSection(config, (0.0,), ('cable',))


def _single(state: SectionStatics) -> SingleCable:
    return SingleCable(
        theta=state.theta,
        contraction=float(state.contraction[0]),
        tension=float(state.tension[0]),
        alpha=float(state.incident_angle[0]),
        kappa_c=float(state.cable_curvature[0]),
        delta=float(state.cut_in_depth[0]),
    )
