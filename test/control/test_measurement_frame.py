"""Tip and section poses of one camera frame are paired and used once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softarm_ros.control.measurement_frame import FramePairing

PERIOD_NS = 10_000_000
WAIT_S, AGE_S, ABSENT_S = 0.003, 0.05, 0.2


def pairing():
    return FramePairing(WAIT_S, AGE_S, ABSENT_S)


def tip(k):
    return np.array([float(k), 0.0, 0.2])


def sections(k):
    tips = np.tile(np.eye(4), (2, 1, 1))
    tips[-1, 0, 3] = k
    return tips


def number(frame):
    return round(frame.position[0])


def run(pairs, first, count, *, with_sections=True):
    """Feed frames at 100 Hz, each used at once; return the time of the last one."""
    for k in range(first, first + count):
        now = k * 1e-9 * PERIOD_NS
        if with_sections:
            pairs.on_sections(now, k * PERIOD_NS, sections(k))
        pairs.on_tip(now, k * PERIOD_NS, tip(k))
        frame = pairs.take(now + (0.0 if with_sections else WAIT_S))
        assert number(frame) == k
        assert (frame.section_tips is not None) == with_sections
    return now


def test_tip_and_sections_with_one_stamp_form_one_frame_in_either_order():
    pairs = pairing()
    run(pairs, 0, 3)
    pairs.on_tip(0.03, 3 * PERIOD_NS, tip(3))
    assert not pairs.ready(0.03)
    assert pairs.take(0.03) is None  # waits for its sections, since earlier frames had them
    pairs.on_sections(0.031, 3 * PERIOD_NS, sections(3))
    frame = pairs.take(0.031)
    assert number(frame) == 3
    assert frame.section_tips[-1, 0, 3] == 3
    assert pairs.take(0.031) is None  # used once
    assert pairs.counts.complete == 4


def test_tips_are_used_at_once_if_sections_never_come():
    pairs = pairing()
    for k in range(50):
        now = 0.01 * k
        pairs.on_tip(now, k * PERIOD_NS, tip(k))
        assert pairs.ready(now)
        frame = pairs.take(now)
        assert number(frame) == k
        assert frame.section_tips is None
    assert pairs.problem() is None
    assert pairs.counts.tip_only == 50


def test_tip_is_used_without_its_lost_sections_after_the_wait():
    pairs = pairing()
    run(pairs, 0, 2)
    pairs.on_tip(0.02, 2 * PERIOD_NS, tip(2))
    assert pairs.take(0.02 + 0.9 * WAIT_S) is None
    frame = pairs.take(0.02 + WAIT_S)
    assert number(frame) == 2
    assert frame.section_tips is None  # not those of frame 1
    pairs.on_sections(0.025, 2 * PERIOD_NS, sections(2))  # late: not used for the next tip either
    pairs.on_tip(0.03, 3 * PERIOD_NS, tip(3))
    assert pairs.take(0.03 + WAIT_S).section_tips is None


def test_newer_tip_replaces_a_waiting_one():
    pairs = pairing()
    run(pairs, 0, 1)
    pairs.on_tip(0.010, 1 * PERIOD_NS, tip(1))
    pairs.on_tip(0.011, 2 * PERIOD_NS, tip(2))
    pairs.on_sections(0.011, 2 * PERIOD_NS, sections(2))
    assert number(pairs.take(0.011)) == 2
    assert pairs.take(1.0) is None
    assert pairs.counts.superseded == 1


def test_lasting_absence_of_sections_is_a_problem_and_ends_the_wait():
    pairs = pairing()
    run(pairs, 0, 2)
    run(pairs, 2, 25, with_sections=False)
    told = pairs.problem()
    assert 'section poses missing for 2' in told
    assert 'limit 200 ms' in told
    pairs.on_tip(0.27, 27 * PERIOD_NS, tip(27))
    assert pairs.ready(0.27)  # it no longer waits for sections
    assert number(pairs.take(0.27)) == 27
    run(pairs, 28, 1)
    assert pairs.problem() is None


def test_time_without_tips_does_not_count_as_missing_sections():
    """A flipped body hides the sections once, then the computer stalls: late is not missing."""
    pairs = pairing()
    run(pairs, 0, 2)
    run(pairs, 2, 1, with_sections=False)
    assert pairs.problem() is None
    pairs.on_tip(0.5, 50 * PERIOD_NS, tip(50))
    assert pairs.problem() is None
    assert not pairs.ready(0.5)  # it waits for its sections
    pairs.on_sections(0.501, 50 * PERIOD_NS, sections(50))
    assert pairs.take(0.501).section_tips is not None


def test_unused_parts_of_a_frame_expire():
    pairs = pairing()
    pairs.on_sections(0.0, 0, sections(0))
    pairs.on_tip(0.0, 0, tip(0))
    assert pairs.take(AGE_S + 0.001) is None
    assert pairs.counts.expired == 1
    pairs.on_sections(1.0, 5 * PERIOD_NS, sections(5))
    pairs.on_tip(1.0 + AGE_S + 0.001, 5 * PERIOD_NS, tip(5))
    assert pairs.take(1.1).section_tips is None  # the sections expired before their tip came


def test_negative_time_setting_is_refused_by_name():
    with pytest.raises(ValueError, match=r'max_age_s = -1'):
        FramePairing(0.0, -1.0, 1.0)


PARTS = st.tuples(st.integers(0, 12), st.booleans(), st.floats(0.0, 0.03))


@settings(max_examples=400, deadline=None)
@given(st.lists(PARTS, max_size=60), st.booleans())
def test_sections_are_never_paired_with_the_tip_of_another_frame(parts, wait):
    """Any order, loss, duplication and delay of parts."""
    pairs, now, used = pairing(), 0.0, []
    for k, is_tip, pause in parts:
        now += pause
        if is_tip:
            pairs.on_tip(now, k * PERIOD_NS, tip(k))
        else:
            pairs.on_sections(now, k * PERIOD_NS, sections(k))
        frame = pairs.take(now, wait=wait)
        if frame is None:
            continue
        assert frame.stamp_ns == number(frame) * PERIOD_NS
        if frame.section_tips is not None:
            assert frame.section_tips[-1, 0, 3] == number(frame)
        used.append(frame.stamp_ns)
    assert used == sorted(set(used))  # each once, none after a newer one


@settings(max_examples=300, deadline=None)
@given(st.lists(PARTS, max_size=80))
def test_every_frame_is_delivered_at_most_once_late_or_not(parts):
    pairs, now, used, others = pairing(), 0.0, [], []
    for k, is_tip, pause in parts:
        now += pause
        if is_tip:
            pairs.on_tip(now, k * PERIOD_NS, tip(k))
        else:
            pairs.on_sections(now, k * PERIOD_NS, sections(k))
        frame = pairs.take(now)
        used += [] if frame is None else [frame]
        others += pairs.take_others(now)
    stamps = [frame.stamp_ns for frame in (*used, *others)]
    assert len(stamps) == len(set(stamps))
    for frame in others:
        assert frame.stamp_ns == number(frame) * PERIOD_NS
        if frame.section_tips is not None:
            assert frame.section_tips[-1, 0, 3] == number(frame)


def test_late_frame_waits_for_its_sections_like_any_other():
    pairs = pairing()
    run(pairs, 0, 2)
    pairs.on_tip(0.04, 4 * PERIOD_NS, tip(4))
    pairs.on_sections(0.04, 4 * PERIOD_NS, sections(4))
    assert number(pairs.take(0.04)) == 4
    pairs.on_tip(0.041, 2 * PERIOD_NS, tip(2))
    assert pairs.take(0.041) is None
    assert pairs.take_others(0.041) == []
    pairs.on_sections(0.042, 2 * PERIOD_NS, sections(2))
    (late,) = pairs.take_others(0.042)
    assert number(late) == 2
    assert late.section_tips[-1, 0, 3] == 2
    pairs.on_tip(0.043, 3 * PERIOD_NS, tip(3))
    (alone,) = pairs.take_others(0.043 + WAIT_S)
    assert alone.section_tips is None
    pairs.on_tip(0.05, 3 * PERIOD_NS, tip(3))  # a duplicate
    assert pairs.take_others(0.06) == []


def run_apart(pairs, first, count, apart_ns):
    """Feed tips, each with sections of another stamp; return the time of the last one."""
    for k in range(first, first + count):
        now = k * 1e-9 * PERIOD_NS
        pairs.on_sections(now, k * PERIOD_NS + apart_ns, sections(k))
        pairs.on_tip(now, k * PERIOD_NS, tip(k))
        pairs.take(now + WAIT_S)
    return now


@pytest.mark.parametrize('apart_ns', [-3_000_000, 2_000])
def test_sections_that_never_have_the_stamp_of_a_tip_are_reported_as_unused(apart_ns):
    pairs = pairing()
    run_apart(pairs, 0, 15, apart_ns)
    assert pairs.unused_sections() is None  # for as long as they may be missing
    run_apart(pairs, 15, 15, apart_ns)
    assert pairs.unused_sections() == (
        'section poses come, but none with the stamp of a tip pose, so they are not used '
        f'(the newest by {1e-6 * apart_ns:+.3f} ms)'
    )
    assert pairs.problem() is None  # tips alone may drive an arm
    run(pairs, 40, 3)
    assert pairs.unused_sections() is None


@pytest.mark.parametrize('come', [False, True])
def test_sections_that_never_come_or_come_with_their_tips_are_not_called_unused(come):
    pairs = pairing()
    run(pairs, 0, 40, with_sections=come)
    assert pairs.unused_sections() is None


def test_sections_that_lose_the_stamps_of_their_tips_are_not_called_missing_alone():
    pairs = pairing()
    run(pairs, 0, 5)
    run(pairs, 5, 40, with_sections=False)
    assert pairs.problem().endswith('(limit 200 ms)')
    pairs = pairing()
    run(pairs, 0, 5)
    run_apart(pairs, 5, 40, 2_500_000)
    assert pairs.problem().endswith('those that come have other stamps (the newest by +2.500 ms)')
