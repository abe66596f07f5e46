"""Dynamics of the muscle arm's backbone: exact derivatives, closed forms, rest, dissipation."""

import math
from itertools import pairwise

import numpy as np
import pytest

from softarm_ros.models.minimum_energy.arm import MinimumEnergyArm
from softarm_ros.models.minimum_energy.config import BackboneConfig, ParallelModulesConfig
from softarm_ros.models.minimum_energy.kernels import elastic_energy, positions_into, retract_into
from softarm_ros.models.minimum_energy.muscles import muscle_anchors
from softarm_ros.models.minimum_energy.rod import curvatures_of
from softarm_ros.plant.pam_arm.backbone_kernels import (
    add_masses,
    backbone_gradient_into,
    solve_positive_into,
    step_backbone,
    turns_into,
)

ROD = BackboneConfig()
NO_MUSCLES = np.zeros((0, 3, 3)), np.zeros((0, 3)), np.zeros((0, 3))


def straight(n):
    nodes = np.zeros((n + 1, 4))
    nodes[:, 0] = 1.0
    return nodes


def moved(nodes, rng, size):
    out = nodes.copy()
    retract_into(nodes, size * rng.normal(size=3 * (len(nodes) - 1)), 1.0, out)
    return out


class Swing:
    """A rod of n intervals, driven by the compiled step alone."""

    def __init__(self, n, h, bending, density, gravity=(0.0, 0.0, 0.0), damping=(0.0, 0.0)):
        self.n, self.h, self.ds = n, h, 1.0 / n
        self.stiffness = np.array([bending, bending, bending])
        self.masses = np.full(n, density / n)
        self.masses[-1] *= 0.5
        self.inertias = 1e-8 * self.masses
        self.gravity = np.array(gravity)
        self.nodes, self.r = straight(n), np.zeros((n + 1, 3))
        positions_into(self.nodes, self.ds, self.r)
        self.v, self.w = np.zeros((n, 3)), np.zeros((n, 3))
        self.damping, self.drag = np.array(damping), 0.0

    def step(self):
        anchors, lengths, stiffness = NO_MUSCLES
        used = step_backbone(
            self.nodes, self.r, self.v, self.w, self.ds, self.stiffness, self.masses,
            self.inertias, self.drag, self.gravity, anchors, lengths, stiffness, self.damping,
            1e-12 + 1e-9 * self.stiffness[0], self.h, lengths.copy(),
        )  # fmt: skip
        assert used >= 0
        return self.r[-1].copy()

    def energy(self):
        kinetic = 0.5 * np.sum(self.masses[:, None] * self.v**2)
        weight = np.sum(self.masses[:, None] * self.gravity * self.r[1:])
        return kinetic + elastic_energy(self.nodes, self.ds, self.stiffness) - weight


def frequency_and_decay(x, h):
    """Frequency [Hz] and damping ratio of a decaying oscillation, from its zero crossings."""
    up = np.flatnonzero((x[:-1] < 0.0) & (x[1:] >= 0.0))
    times = h * (up + x[up] / (x[up] - x[up + 1]))
    peaks = [np.max(x[a:b]) for a, b in pairwise(up)]
    decrement = np.log(peaks[0] / peaks[-1]) / (len(peaks) - 1)
    return (len(times) - 1) / (times[-1] - times[0]), decrement / (2.0 * math.pi)


def plucked(swing, shape, size, seconds):
    """Start with nodes' velocities along x in proportion to `shape` (n,)."""
    swing.v[:, 0] = size * shape
    return np.array([swing.step()[0] for _ in range(round(seconds / swing.h))])


def cantilever_mode(n):
    s = np.arange(1, n + 1) / n
    b = 1.8751040687
    ratio = (math.cosh(b) + math.cos(b)) / (math.sinh(b) + math.sin(b))
    return (np.cosh(b * s) - np.cos(b * s) - ratio * (np.sinh(b * s) - np.sin(b * s))) / 2.0


def test_first_frequency_of_a_cantilever():
    bending, density = 0.5, 0.4
    expected = 1.8751040687**2 * math.sqrt(bending / density) / (2.0 * math.pi)
    swing = Swing(20, 2e-3, bending, density)
    frequency, ratio = frequency_and_decay(plucked(swing, cantilever_mode(20), 1e-2, 6.0), 2e-3)
    assert frequency == pytest.approx(expected, rel=0.01)
    # Backward Euler damps by omega h / 2 where nothing else does.
    assert ratio == pytest.approx(math.pi * expected * 2e-3, rel=0.05)


def test_damping_of_strains_is_that_of_kelvin_and_voigt():
    bending, density, time = 0.5, 0.4, 0.02
    omega = 1.8751040687**2 * math.sqrt(bending / density)
    swing = Swing(10, 1e-3, bending, density, damping=(0.0, time))
    _, ratio = frequency_and_decay(plucked(swing, cantilever_mode(10), 1e-2, 8.0), 1e-3)
    assert ratio == pytest.approx(0.5 * omega * (time + 1e-3), rel=0.02)


def test_a_limp_rod_swings_like_a_hanging_chain():
    expected = 0.5 * 2.404825558 * math.sqrt(9.81) / (2.0 * math.pi)
    s = np.arange(1, 21) / 20
    j0 = np.array([_bessel0(2.404825558 * math.sqrt(1.0 - x)) for x in s])
    swing = Swing(20, 4e-3, 1e-5, 0.4, gravity=(0.0, 0.0, 9.81))
    frequency, _ = frequency_and_decay(plucked(swing, j0, 1e-2, 12.0), 4e-3)
    assert frequency == pytest.approx(expected, rel=0.015)


def _bessel0(x):
    angle = (np.arange(400) + 0.5) * math.pi / 400
    return float(np.mean(np.cos(x * np.sin(angle))))


def test_a_free_swing_never_gains_energy():
    swing = Swing(10, 5e-3, 0.1, 0.4, gravity=(0.0, 0.0, 9.81), damping=(0.0, 0.01))
    swing.v[:, 0], swing.v[:, 1] = np.linspace(0.1, 2.0, 10), np.linspace(0.0, 1.0, 10)
    energies = [swing.energy()]
    for _ in range(400):
        swing.step()
        energies.append(swing.energy())
    assert np.all(np.diff(energies) <= 1e-9)
    assert energies[-1] < energies[0] - 0.05


def test_gradient_is_that_of_the_energy_written_out_and_hessian_its_difference():
    rng = np.random.default_rng(5)
    n, modules, h, ds = 6, 3, 0.01, 0.1
    stiffness = np.array([0.3, 0.4, 0.2])
    masses, inertias = rng.uniform(0.01, 0.05, n), rng.uniform(1e-6, 1e-5, n)
    gravity, drag = np.array([1.0, -2.0, 9.0]), 0.7
    damping = np.array([3.0, 4.0, 2.0])
    anchors = muscle_anchors(ParallelModulesConfig(modules=modules))
    lengths = 0.2 + 2e-3 * rng.normal(size=(modules, 3))
    muscles = rng.uniform(1e3, 2e3, (modules, 3))
    before = moved(straight(n), rng, 0.1)
    r_before = np.empty((n + 1, 3))
    positions_into(before, ds, r_before)
    velocity, spin = rng.normal(size=(n, 3)), rng.normal(size=(n, 3))

    def energy(q):
        r, turn = np.empty((n + 1, 3)), np.empty((n, 3))
        positions_into(q, ds, r)
        turns_into(before, q, turn)
        total = elastic_energy(q, ds, stiffness) - np.sum(masses[:, None] * gravity * r[1:])
        ahead, gone = r[1:] - r_before[1:] - h * velocity, r[1:] - r_before[1:]
        total += np.sum(masses[:, None] * (ahead**2 / (2 * h * h) + drag * gone**2 / (2 * h)))
        total += np.sum(
            inertias[:, None] * ((turn - h * spin) ** 2 / (2 * h * h) + drag * turn**2 / (2 * h))
        )
        strain = curvatures_of(q, ds) - curvatures_of(before, ds)
        total += np.sum(damping * strain**2) * ds / 2
        for t in range(modules):
            a, b = 2 * t, 2 * t + 2
            for i in range(3):
                arm = _rotation(q[b]) @ anchors[t, i] - _rotation(q[a]) @ anchors[t, i]
                length = np.linalg.norm(arm + r[b] - r[a])
                total += 0.5 * muscles[t, i] * (length - lengths[t, i]) ** 2
        return total

    def derivatives(q, still=False):
        rate, turning = (0.0, 0.0 * inertias) if still else (drag, inertias)
        rows, width = 3 * n, 8
        gradient, band = np.empty(rows), np.empty((rows, width + 1))
        backbone_gradient_into(
            q, before, r_before, velocity, spin, ds, stiffness, masses, turning, rate, gravity,
            anchors, lengths, muscles, 0.0 * damping if still else damping, h,
            np.empty((n + 1, 3)), np.empty((modules, 3, 3)), np.empty((n, 3)), np.empty((n, 3)),
            np.empty((n, 3)), gradient, band, np.empty((rows, 3 * modules)), True,
        )  # fmt: skip
        hessian = np.zeros((rows, rows))
        for i in range(rows):
            for j in range(min(i, width) + 1):
                hessian[i, i - j] = band[i, j]
        add_masses(
            q, ds, masses, 1.0 / h**2 + rate / h, np.empty((n, 3, 3)), np.empty((n, 3, 3)), hessian
        )
        return gradient, np.tril(hessian) + np.tril(hessian, -1).T

    q = moved(before, rng, 0.02)
    gradient, _ = derivatives(q)
    _, hessian = derivatives(q, still=True)
    for _ in range(8):
        step, size = rng.normal(size=3 * n), 1e-5
        ahead, back = q.copy(), q.copy()
        retract_into(q, size * step, 1.0, ahead)
        retract_into(q, -size * step, 1.0, back)
        slope = (energy(ahead) - energy(back)) / (2 * size)
        assert slope == pytest.approx(gradient @ step, rel=1e-6, abs=1e-7)
        change = (derivatives(ahead, True)[0] - derivatives(back, True)[0]) @ step / (2 * size)
        assert change == pytest.approx(step @ hessian @ step, rel=1e-5)


def _rotation(q):
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def test_steps_lead_to_the_rest_that_the_static_model_finds():
    modules, n, h = ParallelModulesConfig(muscle_stiffness_N_m=5e4), 20, 0.01
    model = MinimumEnergyArm(ROD, modules, n, tip_load_kg=0.03)
    lengths = model.inverse((0.2, 0.1, 0.9)).actuation
    state = model.equilibrium(lengths)
    ds = 1.0 / n
    masses = np.full(n, ROD.mass_per_length_kg_m * ds)
    masses[-1] *= 0.5
    inertias = masses * 1e-4
    masses[-1] += 0.03
    nodes, r = straight(n), np.zeros((n + 1, 3))
    positions_into(nodes, ds, r)
    v, w, now = np.zeros((n, 3)), np.zeros((n, 3)), np.full((10, 3), 0.1)
    for _ in range(1500):
        used = step_backbone(
            nodes, r, v, w, ds, model.rod.stiffness, masses, inertias, 5.0,
            np.array([0.0, 0.0, 9.81]), muscle_anchors(modules), lengths.reshape(10, 3),
            np.full((10, 3), 5e4), np.array([0.02, 0.05]), 1e-9, h, now,
        )  # fmt: skip
        assert used >= 0
    np.testing.assert_allclose(r, state.positions, atol=1e-7)
    np.testing.assert_allclose(now.ravel(), state.lengths, atol=1e-8)


def test_cholesky_solves_and_refuses():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(9, 9))
    matrix, wanted = root @ root.T + np.eye(9), rng.normal(size=9)
    vector = matrix @ wanted
    assert solve_positive_into(matrix.copy(), vector)
    np.testing.assert_allclose(vector, wanted, atol=1e-10)
    assert not solve_positive_into(matrix - 100.0 * np.eye(9), vector)
