"""Board link over a line in memory: data in any pieces, with any garbage, in any order."""

import itertools
import struct
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stepper_cases import MOTORS, MemoryPort, config, limits

from softarm_ros.drivers import messages
from softarm_ros.drivers.board_clock import BoardClock
from softarm_ros.drivers.board_link import BoardLink, LinkDownError, RebootedError, RefusedError
from softarm_ros.drivers.cable_steppers import CableSteppers
from softarm_ros.drivers.frames import Frame, FrameReceiver, encode
from softarm_ros.drivers.messages import Cause, Kind, Result, State, StepperState, Type
from softarm_ros.drivers.serial_counters import SerialCounter

BOOT_ID = 0x12345678
HELLO = struct.pack('<6BI', 1, Kind.STEPPERS, 0, 1, 6, 1, BOOT_ID)


def state(count, what=State.IDLE, cause=Cause.NONE, zeroed=0, positions=(0,) * MOTORS):
    """Return the `count`th state frame that the board sends."""
    layout = struct.pack('<I6B6i', 10000 * count, what, cause, 0, 0, zeroed, 0, *positions)
    return encode(Frame(Type.STEPPER_STATE, count & 0xFF, layout))


def taken(data):
    """Return the host's frames in the data that was written."""
    receiver = FrameReceiver(key_of=lambda t: messages.key_of(t, BOOT_ID))
    return receiver.feed(bytes(data))


class User:
    """Records states, stamps and refusals."""

    def __init__(self):
        self.states, self.stamps, self.refusals = [], [], []

    def state(self, said, stamp_s):
        self.states.append(said)
        self.stamps.append(stamp_s)

    def refused(self, ack):
        self.refusals.append(ack)


def connected(user=None):
    """Return a link after its handshake, its port and its user."""
    port, user = MemoryPort(), user or User()
    # No loss by silence here: generating examples takes time.
    link = BoardLink(
        port, config(link_timeout_s=0.25, answer_timeout_s=0.01), user, SerialCounter()
    )
    port.pieces.append(encode(Frame(Type.HELLO_REPLY, 0, HELLO)))
    link.shake_hands(Kind.STEPPERS, time.monotonic() + 5.0, threading.Event())
    link._heard_s = np.inf
    port.written.clear()
    return link, port, user


def cut(data, places):
    """Return `data` in pieces."""
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in itertools.pairwise(edges)]


def listen(link, port):
    while port.pieces:
        link.listen(0.0)


# Bytes that may look like the end of a frame, and a delimiter, so that the next one is whole.
garbage = st.binary(max_size=60).map(lambda noise: noise + b'\0')
places = st.lists(st.integers(0, 1000), max_size=20)


@given(st.lists(garbage, min_size=1, max_size=8), places)
@settings(max_examples=40, deadline=None)
def test_every_state_arrives_once_despite_garbage_and_any_splitting(noises, places):
    link, port, user = connected()
    stream = b''.join(noise + state(i + 1) for i, noise in enumerate(noises))
    port.pieces = cut(stream, places)
    listen(link, port)
    assert [said.time_us for said in user.states] == [10000 * (i + 1) for i in range(len(noises))]
    assert link._counter.received.lost == 0
    assert np.all(np.diff(user.stamps) >= 0.0)
    assert max(user.stamps, default=0.0) <= time.monotonic()


@given(st.permutations(range(1, 30)), places, st.sets(st.integers(1, 29)))
@settings(max_examples=40, deadline=None)
def test_reordered_states_arrive_gaps_are_counted_and_stamps_stay_monotonic(
    order, places, dropped
):
    link, port, user = connected()
    kept = [i for i in order if i not in dropped]
    port.pieces = cut(b''.join(map(state, kept)), places)
    listen(link, port)
    assert len(user.states) == len(kept)
    # The reply to the handshake was frame 0; a step back in the sequence is no gap.
    steps = [late - early for early, late in itertools.pairwise([0, *kept])]
    assert link._counter.received.lost == sum(step - 1 for step in steps if step > 0)
    assert np.all(np.diff(user.stamps) >= 0.0)
    assert np.all(np.array(user.stamps) <= time.monotonic())


@given(st.integers(0, 400), st.integers(0, 7), st.lists(st.integers(1, 8), max_size=4))
@settings(max_examples=40, deadline=None)
def test_flipped_bit_costs_at_most_two_frames(place, bit, rest):
    link, port, user = connected()
    frames = [state(i + 1) for i in range(8)]
    stream = bytearray(b''.join(frames))
    stream[place % len(stream)] ^= 1 << bit
    port.pieces = cut(bytes(stream), rest)
    listen(link, port)
    heard = [said.time_us // 10000 for said in user.states]
    assert set(heard) <= set(range(1, 9))
    assert len(heard) >= 6  # a broken delimiter costs two frames
    assert len(heard) == len(set(heard))


states = st.builds(
    state,
    st.integers(1, 1000),
    st.sampled_from([s for s in State if s is not State.BOOT]),
    st.sampled_from(Cause),
    st.integers(0, 255),
    st.tuples(*[st.integers(-(2**31), 2**31 - 1)] * MOTORS),
)


@given(st.lists(st.one_of(states, garbage), max_size=8), places)
@settings(max_examples=40, deadline=None)
def test_driver_sends_nothing_but_disarm_before_a_command(said, places):
    """The driver may answer states with frames that stop, never with frames that move."""
    driver = CableSteppers(config(), limits())
    link, port, _ = connected(driver)
    driver._board._trouble = ''
    port.pieces = cut(b''.join(said), places)
    while port.pieces:
        link.listen(0.0)
        driver.cycle(link, time.monotonic())
    assert {frame.type for frame in taken(port.written)} <= {Type.DISARM}


@given(states)
@settings(max_examples=40, deadline=None)
def test_targets_are_sent_only_if_the_board_is_ready_and_homed(said):
    driver = CableSteppers(config(), limits())
    link, port, _ = connected(driver)
    driver._board._trouble = ''
    port.pieces = [said]
    listen(link, port)
    fit = driver._state.state in (State.IDLE, State.ARMED, State.RUNNING)
    homed = driver._state.zeroed & 0x3F == 0x3F
    assert (driver.follow(np.full(MOTORS, 0.01)) is None) == (fit and homed)
    driver.cycle(link, time.monotonic())
    types = [frame.type for frame in taken(port.written)]
    if not (fit and homed):
        assert not {Type.ARM, Type.TARGETS} & set(types)
    else:
        assert types[-1] == Type.TARGETS
        assert (Type.ARM in types) == (driver._state.state is State.IDLE)


def test_targets_of_unconfigured_motors_are_their_positions():
    driver = CableSteppers(config(count=2), limits(2))
    link, port, _ = connected(driver)
    driver._board._trouble = ''
    port.pieces = [state(1, State.RUNNING, zeroed=0x3F, positions=(1, 2, 3, 4, 5, 6))]
    listen(link, port)
    driver.follow(np.zeros(2))
    driver.cycle(link, time.monotonic())
    assert taken(port.written)[-1].payload == messages.targets([0, 0, 3, 4, 5, 6])


def test_answers_are_matched_by_type_and_sequence():
    link, port, _ = connected()

    def ack(frame_type, sequence, result):
        return encode(Frame(Type.ACK, 9, struct.pack('<BBB', frame_type, sequence, result)))

    sequence = link._sequence
    port.pieces = [
        ack(Type.ZERO, sequence, Result.LIMIT),
        ack(Type.RESET, (sequence + 7) & 0xFF, Result.LIMIT),
        ack(Type.RESET, sequence, Result.MOVING),
    ]
    assert link.ask(Type.RESET) is Result.MOVING


def test_unanswered_request_is_sent_three_times():
    link, port, _ = connected()
    with pytest.raises(LinkDownError, match='no answer to RESET'):
        link.ask(Type.RESET)
    assert [frame.type for frame in taken(port.written)] == [Type.RESET] * 3
    assert link._counter.unanswered == 3


def test_silence_is_reported_as_link_loss():
    link, _, _ = connected()
    link._heard_s = time.monotonic() - 300.0
    with pytest.raises(LinkDownError, match=r'no state for 30\d\d\d\d ms'):
        link.listen(0.0)


def test_boot_state_is_a_restart_and_counts_no_lost_frames():
    link, port, _ = connected()
    port.pieces = [state(5), state(1, State.BOOT)]
    link.listen(0.0)
    with pytest.raises(RebootedError):
        link.listen(0.0)
    assert link._counter.received.lost == 4  # before the first state, none by the restart


@pytest.mark.parametrize(
    ('version', 'kind', 'text'),
    [(2, Kind.STEPPERS, 'version 2 of the protocol, 1 is needed'), (1, Kind.VALVES, 'valves')],
)
def test_wrong_board_kind_or_protocol_version_is_refused(version, kind, text):
    port = MemoryPort()
    link = BoardLink(port, config(), User(), SerialCounter())
    reply = struct.pack('<6BI', version, kind, 0, 1, 6, 1, BOOT_ID)
    port.pieces = [encode(Frame(Type.HELLO_REPLY, 0, reply))]
    with pytest.raises(RefusedError, match=text):
        link.shake_hands(Kind.STEPPERS, time.monotonic() + 5.0, threading.Event())


@pytest.mark.parametrize(
    ('said', 'text'),
    [
        (b'', r'^nowhere: no answer at \d+ baud; another device'),
        (
            b'ok T:21.3\n',
            r'^nowhere: no answer at \d+ baud \(10 bytes came, no frame among them\)',
        ),
        (state(1), r'^nowhere: no answer at \d+ baud; another device'),
    ],
)
def test_unanswered_handshake_names_the_port_and_the_received_bytes(said, text):
    port = MemoryPort()
    link = BoardLink(port, config(), User(), SerialCounter())
    port.pieces = [said] if said else []
    with pytest.raises(LinkDownError, match=text):
        link.shake_hands(Kind.STEPPERS, time.monotonic() + 0.05, threading.Event())


# -- time stamps of a board


@given(
    st.lists(st.floats(0.0, 0.02), min_size=400, max_size=400),
    st.floats(-5e-3, 5e-3),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=40, deadline=None)
def test_board_stamps_stay_accurate_despite_drift_and_jitter(jitter, drift, start_us):
    """Half a per cent of drift, a counter that wraps, arrivals late by up to 20 ms."""
    clock = BoardClock()
    for i, late in enumerate(jitter):
        true_s = 100.0 + 0.01 * i
        arrival = true_s + (late if i % 10 else 0.0)  # one in ten arrives at once
        time_us = (start_us + round(0.01 * i * (1.0 + drift) * 1e6)) % 2**32
        stamp = clock.stamp(time_us, arrival)
        assert stamp <= arrival + 1e-9
        if i > 10:
            assert abs(stamp - true_s) < 0.006  # drift within a second, and rounding


def test_stepper_state_contains_the_positions_of_all_motors():
    said = messages.parse(taken(state(3, positions=(1, -2, 3, -4, 5, -6)))[0])
    assert isinstance(said, StepperState)
    assert said.positions == (1, -2, 3, -4, 5, -6)
