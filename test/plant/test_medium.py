"""A medium around the chain: momentum of the added mass, drag, forces, matrix of a step."""

import numpy as np
import pytest

from softarm_ros.models.hydrodynamics.config import WaterConfig
from softarm_ros.models.hydrodynamics.morison import Hydrodynamics, PieceMotion
from softarm_ros.plant.body_kernels import load_bodies, place_bodies
from softarm_ros.plant.joint_kernels import conjugate_moment, log_of_quaternion, turn
from softarm_ros.plant.layout import BodyParameters, Loads, Medium, new_scratch, rest_state
from softarm_ros.plant.medium_kernels import immerse
from softarm_ros.plant.water_kernels import Water, wet

N, H = 4, 1e-3
NO_LOADS = Loads(np.zeros(3), np.zeros(3))
GRAVITY = np.array([1.0, -3.0, 9.0])


def chain():
    return BodyParameters(
        segment_length=np.full(N, 0.1),
        offset=np.full(N, 0.02),
        stiffness=np.full((N, 3), 1.0),
        damping_time=np.zeros((N, 2)),
        mass=np.full(N, 0.1),
        centre=np.full(N, 0.01),
        inertia=np.full((N, 2), 1e-4),
        base_rotation=np.eye(3),
        gravity=GRAVITY,
        tip_offset=np.zeros(1),
    )


def state_of(rng):
    state = rest_state(N, 0, 1)
    for q in state.quaternion:
        turn(q, *(0.4 * rng.normal(size=3)))
    state.extension[:] = 0.01 * rng.normal(size=N)
    state.velocity[:] = rng.normal(size=(N, 4)) * [1.0, 1.0, 1.0, 0.1]
    return state


def later(state, dt):
    moved = state.copy()
    for q, rate in zip(moved.quaternion, moved.velocity):
        turn(q, *(dt * rate[:3]))
    moved.extension[:] += dt * moved.velocity[:, 3]
    return moved


def motion(body, state):
    """Return origins, axes, their velocities and angular velocities, all (N, 3)."""
    scratch = new_scratch(N, 0, 1, immersed=True)
    place_bodies(body, state, scratch)
    load_bodies(body, state, NO_LOADS, scratch, H)
    r, z = scratch.origin[1:].copy(), scratch.rotation[1:, :, 2].copy()
    w = scratch.twist[:, :3].copy()
    return r, z, scratch.twist[:, 3:] + np.cross(w, r), w


def immersed(body, state, medium):
    scratch = new_scratch(N, 0, 1, immersed=True)
    place_bodies(body, state, scratch)
    load_bodies(body, state, NO_LOADS, scratch, H)
    dry = scratch.bias.copy()
    immerse(body, medium, scratch, H)
    return scratch.bias - dry, scratch


def random_medium(rng, **changes):
    root = rng.normal(size=(N, 3, 3))
    medium = Medium(
        force=rng.normal(size=(N, 3)),
        drag=root @ root.transpose(0, 2, 1),
        turning=rng.uniform(0.1, 1.0, N),
        added=rng.uniform(0.1, 1.0, (N, 3)),
        current=rng.normal(size=3),
    )
    return medium._replace(**changes)


def momentum(body, state, medium, t=0.0):
    """Return the momentum (N, 6) of the added mass against the current, about a point in it."""
    r, z, u, w = motion(body, state)
    r, u, added = r - t * medium.current, u - medium.current, medium.added
    along = np.sum(u * z, axis=1)[:, None] * z
    linear = added[:, :1] * (u - along) + added[:, 1:2] * along
    spin = added[:, 2:] * (w - np.sum(w * z, axis=1)[:, None] * z)
    return np.hstack([np.cross(r, linear) + spin, linear])


def test_added_mass_wrench_is_the_rate_of_its_momentum():
    rng = np.random.default_rng(1)
    body, state = chain(), state_of(rng)
    medium = random_medium(
        rng, force=np.zeros((N, 3)), drag=np.zeros((N, 3, 3)), turning=np.zeros(N)
    )
    needed, _ = immersed(body, state, medium)
    dt = 1e-5
    ahead, back = (momentum(body, later(state, s * dt), medium, s * dt) for s in (1, -1))
    np.testing.assert_allclose(needed, (ahead - back) / (2.0 * dt), rtol=1e-6, atol=1e-7)


def test_drag_and_forces_act_at_the_origins_of_the_bodies():
    rng = np.random.default_rng(2)
    body, state = chain(), state_of(rng)
    medium = random_medium(rng, added=np.zeros((N, 3)))
    needed, _ = immersed(body, state, medium)
    r, _, u, w = motion(body, state)
    force = np.einsum('kij,kj->ki', medium.drag, u) - medium.force
    moment = np.cross(r, force) + medium.turning[:, None] * w
    np.testing.assert_allclose(needed, np.hstack([moment, force]), rtol=1e-12, atol=1e-12)


def test_linearised_drag_equals_the_drag_of_the_relative_velocity():
    """At the present motion, force less drag matrix times velocity is the drag itself."""
    rng = np.random.default_rng(5)
    body, state = chain(), state_of(rng)
    nothing = {'force': np.zeros((N, 3)), 'drag': np.zeros((N, 3, 3))}
    still = random_medium(rng, added=np.zeros((N, 3)), turning=np.zeros(N), **nothing)
    moving = still._replace(force=np.ones((N, 3)), drag=np.ones((N, 3, 3)))
    pieces = Hydrodynamics(WaterConfig(), np.full(N, 0.12), 0.03)
    water = Water(
        pieces.coefficients, pieces.length, pieces.diameter, np.zeros((N, 3)), np.zeros((N, 3))
    )
    scratch = new_scratch(N, 0, 1, immersed=True)
    place_bodies(body, state, scratch)
    load_bodies(body, state, NO_LOADS, scratch, H)
    wet(scratch, water, still, moving)
    r, z, u, _ = motion(body, state)
    rest = np.zeros((N, 3))
    drag = pieces.loads(PieceMotion(r, z, u, rest, rest), still.current).drag
    found = moving.force - np.einsum('kij,kj->ki', moving.drag, u)
    np.testing.assert_allclose(found, drag, rtol=1e-10, atol=1e-12)


def test_step_matrix_gives_twice_the_added_mass_energy_plus_the_drag_loss():
    rng = np.random.default_rng(3)
    body, state = chain(), state_of(rng)
    medium = random_medium(rng)
    _, scratch = immersed(body, state, medium)
    _, z, u, w = motion(body, state)
    for g in range(N):
        V, M = scratch.twist[g], scratch.medium[g]
        np.testing.assert_allclose(M, M.T, atol=1e-12)
        across, along, inertia = medium.added[g]
        uz, wz = u[g] @ z[g], w[g] @ z[g]
        twice = across * (u[g] @ u[g] - uz**2) + along * uz**2
        twice += inertia * (w[g] @ w[g] - wz**2)
        lost = u[g] @ medium.drag[g] @ u[g] + medium.turning[g] * (w[g] @ w[g])
        assert pytest.approx(twice + H * lost, rel=1e-12) == V @ M @ V


def test_moment_on_the_rotation_vector_does_equal_work_on_the_joint():
    rng = np.random.default_rng(4)
    for _ in range(20):
        q, moment, rate = np.array([0.0, 0.0, 0.0, 1.0]), rng.normal(size=3), rng.normal(size=3)
        turn(q, *(0.8 * rng.normal(size=3)))
        ahead, back = q.copy(), q.copy()
        turn(ahead, *(1e-6 * rate))
        turn(back, *(-1e-6 * rate))
        phi = [np.array(log_of_quaternion(one)[:3]) for one in (ahead, back)]
        work = moment @ (phi[0] - phi[1]) / 2e-6
        assert np.array(
            conjugate_moment(np.array(log_of_quaternion(q)), *moment)
        ) @ rate == pytest.approx(work, rel=1e-6)
