"""Memory of commands: stepped as in a control loop, and over a recording as in identification."""

import numpy as np
import pytest
from scipy.integrate import trapezoid

from softarm_ros.models.command_features import begun, command_features, stepped
from softarm_ros.models.hysteresis import Hysteresis

GROUPS = (0, 0, 1, 1)
CHOICES = (
    ('linear', 'square', 'cube'),
    ('lag 0.3', 'play 0.25'),
    ('valve 0.2 0.5', 'lag 0.3', 'play 0.05', 'highest 0.4'),
    ('worked 0.2', 'stiffened 0.1', 'highest 0.7', 'local'),
)


def wandering(rng, count):
    """Return non-uniform times, and commands that reverse now and then."""
    time = np.cumsum(rng.exponential(0.03, count))
    u = np.cumsum(rng.normal(0.0, 0.1, (count, len(GROUPS))), axis=0)
    return time, np.clip(u, -1.0, 1.0)


def operator(weights=(0.1, 0.2, 0.15), lag=0.2):
    rows = np.tile(np.array([*weights, lag])[:, None], (1, 4))
    return Hysteresis((0.02, 0.1, 0.4), 0.5, rows, np.full(4, 2.0), np.array([1.0, 2.0, 3.0, 4.0]))


@pytest.mark.parametrize('features', CHOICES)
@pytest.mark.parametrize('seed', range(5))
def test_stepped_features_equal_those_of_the_whole_recording(features, seed):
    rng = np.random.default_rng(seed)
    time, u = wandering(rng, 200)
    rest = rng.uniform(-1.0, 1.0, len(GROUPS))  # the first command is above or below it
    at_once = command_features(features, u, time, rest, GROUPS)
    memory = begun(features, rest, GROUPS)
    for row, command, elapsed in zip(at_once, u, np.diff(time, prepend=time[0])):
        memory = stepped(features, memory, command, elapsed, GROUPS)
        np.testing.assert_allclose(memory.values, row, atol=1e-12)


def test_hysteresis_loops_close_with_their_closed_form_area_and_the_lag_settles():
    h = operator(lag=0.0)
    swing = (
        2.0
        + h.half
        * np.concatenate(
            [np.linspace(0, 1, 500), np.linspace(1, -1, 1000), np.linspace(-1, 1, 1000)]
        )[:, None]
        * 0.9
    )
    time = 0.01 * np.arange(len(swing))
    out = swing - h.lacking(h.remembered(swing, time))
    np.testing.assert_allclose(out[-1], out[499], atol=1e-9)
    area = trapezoid(out[499:], swing[499:], axis=0)
    # Closed form of the loop area: 4 w r (A - r) for each play that is crossed.
    r, w = np.array(h.widths), h.weights[:3, 0]
    expected = 4.0 * np.sum(w * r * (0.9 - r)) * h.half**2
    np.testing.assert_allclose(np.abs(area), expected, rtol=5e-3)
    late = operator(weights=(0.0, 0.0, 0.0))
    memory = late.begun(swing[0])
    for _ in range(40):
        memory = late.stepped(memory, swing[-1], 0.5)
    np.testing.assert_allclose(late.lacking_now(memory, swing[-1]), 0.0, atol=1e-8)


def test_response_grows_with_the_command_but_never_faster_than_the_command():
    h = operator()
    rng = np.random.default_rng(1)
    time, u = wandering(rng, 400)
    commands = h.middle + h.half * u
    out = commands - h.lacking(h.remembered(commands, time))
    higher = commands.copy()
    higher[-1] += 0.1 * h.half
    after = higher - h.lacking(h.remembered(higher, time))
    assert np.all(after[-1] > out[-1])
    assert np.all(after[-1] - out[-1] <= 0.1 * h.half + 1e-12)


@pytest.mark.parametrize('seed', range(5))
def test_stepped_hysteresis_equals_that_of_the_whole_recording(seed):
    h = operator()
    time, u = wandering(np.random.default_rng(seed), 300)
    commands = h.middle + h.half * u
    at_once = h.lacking(h.remembered(commands, time))
    states = h.begun(commands[0])
    for row, command, elapsed in zip(at_once, commands, np.diff(time, prepend=time[0])):
        states = h.stepped(states, command, elapsed)
        np.testing.assert_allclose(h.lacking_now(states, command), row, atol=1e-12)
