"""Relays and valves behind the outputs of a board: delays, order, late events."""

import numpy as np
import pytest

from softarm_ros import load_rig
from softarm_ros.plant.pam_arm.config import RelayConfig
from softarm_ros.plant.pam_arm.relays import DEFLATE, INFLATE, Relays
from softarm_ros.runtime.arm_assembly import build_plant

RELAYS = RelayConfig(
    shortest_delay_s=0.005,
    longest_delay_s=0.015,
    closing_spread_s=1e-3,
    jitter_s=5e-4,
    link_delay_s=0.02,
)
STEP_S = 0.005


def relays(seed=0, **changes):
    return Relays(2, RELAYS.model_copy(update=changes), np.random.default_rng(seed))


def outputs(*on):
    mask = np.zeros((2, 2), dtype=np.bool_)
    for muscle, valve in on:
        mask[muscle, valve] = True
    return mask


def opened(bench, events, until_s, seen_late_s=0.0):
    """Return the total time that each valve is open, in steps as the plant takes them."""
    total, now, events = np.zeros((2, 2)), 0.0, list(events)
    while now < until_s:
        while events and events[0][0] + seen_late_s <= now:
            at, mask = events.pop(0)
            bench.switch(mask, at, now)
        bench.catch_up(now)
        overlap = np.minimum(bench.close_s, now + STEP_S) - np.maximum(bench.open_s, now)
        total += np.maximum(overlap, 0.0)
        now += STEP_S
    return total


def test_valve_follows_its_output_with_its_own_delays():
    bench = relays()
    bench.switch(outputs((0, INFLATE)), 0.1, 0.1)
    opening, closing = bench.delays_s[0, INFLATE]
    assert bench.open_s[0, INFLATE] == pytest.approx(0.1 + opening, abs=1.5e-3)
    assert bench.close_s[0, INFLATE] == np.inf
    bench.switch(outputs(), 0.15, 0.15)
    assert bench.close_s[0, INFLATE] == pytest.approx(0.15 + closing, abs=1.5e-3)
    assert bench.open_s[0, DEFLATE] == bench.open_s[1, INFLATE] == -1.0


@pytest.mark.parametrize('late_s', [0.0, 0.004, 0.03, 0.2])
def test_valve_opens_for_the_same_time_if_its_events_arrive_late(late_s):
    events, told = [], 0.0
    for k in range(20):
        start, length = 0.1 * k, 0.02 + 0.002 * k
        events += [(start, outputs((0, INFLATE))), (start + length, outputs())]
        told += length
    total = opened(relays(jitter_s=0.0, closing_spread_s=0.0), events, 3.0, late_s)
    # Over twenty pulses only the late closing of the last one remains.
    assert -1e-9 <= total[0, INFLATE] - told <= late_s + STEP_S
    assert total.sum() == total[0, INFLATE]


def test_pulse_shorter_than_the_opening_delay_does_not_open_the_valve():
    bench = relays()
    bench.delays_s[0, INFLATE] = 0.015, 0.005
    events = [(0.1, outputs((0, INFLATE))), (0.105, outputs())]
    assert opened(bench, events, 0.3).sum() == 0.0
    later = [(0.4, outputs((0, INFLATE))), (0.5, outputs())]
    assert opened(bench, later, 0.7)[0, INFLATE] == pytest.approx(0.09, abs=4e-3)


def test_valve_stays_open_if_it_is_switched_on_before_it_has_closed():
    # 14 ms to close, 6 ms to open: a pause of 5 ms does not close the valve, one of 12 ms does.
    for pause, open_for in ((0.005, 0.105 + 0.008), (0.012, 0.1 + 2 * 0.008)):
        bench = relays(jitter_s=0.0)
        bench.delays_s[0, DEFLATE] = 0.006, 0.014
        on = outputs((0, DEFLATE))
        events = [(0.1, on), (0.15, outputs()), (0.15 + pause, on), (0.2 + pause, outputs())]
        assert opened(bench, events, 0.4)[0, DEFLATE] == pytest.approx(open_for, abs=1e-9)


def test_arm_moves_equally_by_outputs_and_by_commands():
    """The same pulses, once as commands that the plant's board times, once as outputs."""
    rig = load_rig('pam_arm')
    told, switched = build_plant(rig, 3), build_plant(rig, 3)
    told.drives.relays.delays_s[:] = switched.drives.relays.delays_s[:] = 0.01
    target = rig.model().inverse((0.05, 0.02, 0.99)).actuation
    for _ in range(40):
        told.step(target, 0.05)
    changes = []
    for pulse in told.drives.board.log:
        changes.append((pulse.on_s, pulse.muscle, int(pulse.inflate), True))
        changes.append((pulse.off_s, pulse.muscle, int(pulse.inflate), False))
    changes.sort(key=lambda change: change[0])
    mask = np.zeros((30, 2), dtype=np.bool_)
    for k in range(400):
        while changes and changes[0][0] <= STEP_S * k + 1e-9:
            at, muscle, valve, on = changes.pop(0)
            mask[muscle, valve] = on
            switched.drives.switch(mask, at, switched.time_s)
        switched.advance(STEP_S)
    assert len(told.drives.board.log) > 30
    np.testing.assert_allclose(
        switched.body.muscle_lengths(), told.body.muscle_lengths(), atol=2e-5
    )
    with pytest.raises(ValueError, match=r'outputs have shape \(2, 2\); expected \(30, 2\)'):
        switched.drives.switch(outputs(), 0.0, 0.0)
