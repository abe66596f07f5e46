"""Frame codec against the golden vectors and against line errors."""

import json
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softarm_ros.drivers import messages
from softarm_ros.drivers.frames import (
    MAX_PAYLOAD,
    CorruptError,
    Frame,
    FrameReceiver,
    MalformedError,
    decode,
    encode,
)

GOLDEN = json.loads(
    (Path(__file__).parents[2] / 'firmware/protocol/golden_vectors.json').read_text('utf-8')
)
BOOT_ID = GOLDEN['boot_id']
FRAMES = st.builds(
    Frame,
    st.integers(0x10, 0x7F),
    st.integers(0, 255),
    st.binary(max_size=MAX_PAYLOAD),
)


def golden_key(frame_type: int) -> int:
    return messages.key_of(frame_type, BOOT_ID)


@pytest.mark.parametrize('vector', GOLDEN['frames'], ids=lambda v: v['name'])
def test_golden_frames_are_encoded_and_decoded(vector):
    frame = Frame(vector['type'], vector['sequence'], bytes.fromhex(vector['payload']))
    assert messages.encode_for(frame, BOOT_ID).hex() == vector['encoded']
    assert decode(bytes.fromhex(vector['encoded'])[:-1], golden_key) == frame


@pytest.mark.parametrize('vector', GOLDEN['invalid'], ids=lambda v: v['name'])
def test_invalid_golden_frames_are_refused(vector):
    error = {'corrupt': CorruptError, 'malformed': MalformedError}[vector['verdict']]
    with pytest.raises(error):
        decode(bytes.fromhex(vector['encoded']), golden_key)


MADE = {
    'hello': lambda f: messages.hello(*f),
    'ping': lambda f: messages.ping(*f),
    'stepper_config': lambda f: messages.StepperConfig(*f).payload(),
    'zero': lambda f: messages.zero(f[0], f[1:]),
    'zero_two_motors': lambda f: messages.zero(f[0], f[1:]),
    'targets': messages.targets,
    'valve_config': lambda f: messages.valve_config(*f),
    'open_none': lambda f: messages.open_valves(f[0], f[1:]),
    'open_some': lambda f: messages.open_valves(f[0], f[1:]),
    'open_all_inflate': lambda f: messages.open_valves(f[0], f[1:]),
    'keep': lambda f: messages.keep(*f),
}


@pytest.mark.parametrize(
    'vector',
    [v for v in GOLDEN['frames'] if v['name'] != 'longest_payload'],  # of no message
    ids=lambda v: v['name'],
)
def test_golden_fields_are_packed_and_parsed(vector):
    payload = bytes.fromhex(vector['payload'])
    frame = Frame(vector['type'], vector['sequence'], payload)
    if vector['type'] < 0x80:
        assert MADE.get(vector['name'], lambda _: b'')(vector['fields']) == payload
        with pytest.raises(messages.MessageError, match='no device sends it'):
            messages.parse(frame)
        return
    parsed = messages.parse(frame)
    flat: list[int] = []
    for value in vars(parsed).values():
        flat.extend(value if isinstance(value, tuple) else [value])
    assert flat == vector['fields']


def test_every_type_has_a_golden_frame():
    assert {v['type'] for v in GOLDEN['frames']} - {0x7F} == set(messages.Type)


@given(st.lists(FRAMES, max_size=8), st.lists(st.integers(0, 600), max_size=12))
def test_frames_arrive_for_any_splitting_of_the_stream(frames, cuts):
    stream = b''.join(encode(frame, 7) for frame in frames)
    receiver = FrameReceiver(lambda _: 7)
    places = [0, *sorted(cut for cut in cuts if cut <= len(stream)), len(stream)]
    received = [f for a, b in pairwise(places) for f in receiver.feed(stream[a:b])]
    assert received == frames
    assert receiver.counters.frames == len(frames)
    assert receiver.counters.corrupt == receiver.counters.malformed == 0


@given(st.lists(FRAMES, min_size=1, max_size=5), st.lists(st.binary(max_size=300), max_size=6))
def test_garbage_between_delimiters_costs_no_frame(frames, garbage):
    receiver = FrameReceiver(lambda _: 7)
    received = []
    for index, frame in enumerate(frames):
        if index < len(garbage):
            received += receiver.feed(garbage[index] + b'\0')
        received += receiver.feed(encode(frame, 7))
    assert received == frames


@given(FRAMES, st.data())
def test_up_to_three_wrong_bits_are_always_detected(frame, data):
    encoded = encode(frame, 7)[:-1]
    bits = data.draw(
        st.sets(st.integers(0, 8 * len(encoded) - 1), min_size=1, max_size=3), label='bits'
    )
    wrong = bytearray(encoded)
    for bit in bits:
        wrong[bit // 8] ^= 1 << bit % 8
    assert FrameReceiver(lambda _: 7).feed(bytes(wrong) + b'\0') == []


@given(st.binary(max_size=2000))
def test_noise_yields_no_frame_and_the_buffer_stays_bounded(noise):
    receiver = FrameReceiver(lambda _: 7)
    assert receiver.feed(noise) == []
    assert len(receiver._bytes) <= 200


@given(st.permutations(range(20)))
def test_reordered_frames_keep_their_arrival_order_and_gaps_are_counted(order):
    receiver = FrameReceiver()
    stream = b''.join(encode(Frame(1, sequence)) for sequence in order)
    assert [f.sequence for f in receiver.feed(stream)] == list(order)
    forward = [b - a - 1 for a, b in pairwise(order) if b > a]
    assert receiver.counters.lost == sum(forward)


@given(st.integers(0, 255), st.lists(st.integers(1, 100), min_size=1, max_size=20))
def test_lost_frames_are_counted_across_the_sequence_wrap(first, steps):
    receiver = FrameReceiver()
    sequence = first
    receiver.feed(encode(Frame(1, sequence)))
    for step in steps:
        sequence = (sequence + step) % 256
        receiver.feed(encode(Frame(1, sequence)))
    assert receiver.counters.lost == sum(step - 1 for step in steps)


@given(FRAMES, st.integers(0, 2**32 - 1))
def test_frame_sealed_for_another_boot_is_corrupt(frame, other):
    if other == 7:
        return
    with pytest.raises(CorruptError, match='seal'):
        decode(encode(frame, other)[:-1], lambda _: 7)


def test_parse_refuses_unknown_types_results_and_payloads():
    with pytest.raises(messages.MessageError, match='payload'):
        messages.parse(Frame(messages.Type.ACK, 0, b'ab'))
    with pytest.raises(messages.MessageError, match='0xf0'):
        messages.parse(Frame(0xF0, 0))
    with pytest.raises(messages.MessageError, match='Result'):
        messages.parse(Frame(messages.Type.ACK, 0, struct.pack('<BBB', 1, 2, 99)))


@pytest.mark.parametrize(
    ('make', 'words'),
    [
        (lambda: Frame(256, 0), 'type: 256'),
        (lambda: Frame(0, -1), 'sequence: -1'),
        (lambda: Frame(0, 0, b'a' * 129), 'payload: 129'),
        (lambda: messages.targets([0] * 5), 'positions: 5'),
        (lambda: messages.open_valves(0, [0] * 59), 'open_ms: 59'),
    ],
)
def test_invalid_frame_fields_are_refused_by_name(make, words):
    with pytest.raises(ValueError, match=words):
        make()
