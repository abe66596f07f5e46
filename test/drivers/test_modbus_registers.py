"""Numbers in registers against known words; merging of spans as a property."""

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softarm_ros.drivers.modbus_registers import Register, RegisterRow, Span, merge_spans

INTEGERS = {'int16': (-(2**15), 2**15 - 1), 'uint16': (0, 2**16 - 1)}
INTEGERS |= {'int32': (-(2**31), 2**31 - 1), 'uint32': (0, 2**32 - 1)}


@pytest.mark.parametrize(
    ('kind', 'order', 'value', 'words'),
    [
        ('int16', 'high_first', -2, [0xFFFE]),
        ('uint16', 'high_first', 0xABCD, [0xABCD]),
        ('int32', 'high_first', 0x12345678, [0x1234, 0x5678]),
        ('int32', 'low_first', 0x12345678, [0x5678, 0x1234]),
        ('int32', 'high_first', -1, [0xFFFF, 0xFFFF]),
        ('uint32', 'low_first', 0x80000001, [0x0001, 0x8000]),
        ('float32', 'high_first', 1.0, [0x3F80, 0x0000]),
        ('float32', 'low_first', -2.5, [0x0000, 0xC020]),
    ],
)
def test_known_numbers_are_encoded_and_decoded(kind, order, value, words):
    register = Register(address=0, type=kind, word_order=order)
    assert register.encode_raw(value) == words
    assert register.decode_raw(words) == value


def test_register_applies_scale_and_zero():
    register = Register(address=0, type='int16', scale=0.001, zero=1.0)
    assert register.encode(1.25) == [250]
    assert register.decode([0xFFFF]) == pytest.approx(0.999)


@pytest.mark.parametrize('kind', list(INTEGERS))
@pytest.mark.parametrize('order', ['high_first', 'low_first'])
def test_integers_round_trip_and_overflow_is_refused(kind, order):
    register = Register(address=0, type=kind, word_order=order)
    low, high = INTEGERS[kind]

    @settings(max_examples=60, derandomize=True, deadline=None)
    @given(st.integers(low, high))
    def check(value):
        assert register.decode_raw(register.encode_raw(value)) == value

    check()
    for beyond in (low - 1, high + 1):
        with pytest.raises(ValueError, match='does not fit'):
            register.encode_raw(beyond)


@pytest.mark.parametrize('value', [math.nan, math.inf, 1e300])
def test_non_finite_and_too_large_values_are_refused(value):
    with pytest.raises(ValueError, match='does not fit'):
        Register(address=0, type='int32').encode(value)


def test_scaled_value_is_rounded_to_within_half_a_count():
    register = Register(address=0, type='int16', scale=0.001)

    @settings(max_examples=100, derandomize=True, deadline=None)
    @given(st.floats(-32.0, 32.0))
    def check(value):
        assert abs(register.decode(register.encode(value)) - value) <= 0.0005 + 1e-12

    check()


def test_float32_words_follow_ieee_754():
    register = Register(address=0, type='float32', word_order='low_first')

    @settings(max_examples=100, derandomize=True, deadline=None)
    @given(st.floats(width=32, allow_nan=False, allow_infinity=False))
    def check(value):
        low, high = register.encode_raw(value)
        assert struct.unpack('>f', struct.pack('>HH', high, low))[0] == value

    check()


def test_zero_scale_and_wrong_number_of_words_are_refused():
    with pytest.raises(ValueError, match='scale'):
        Register(address=0, scale=0.0)
    with pytest.raises(ValueError, match='takes 2 registers, found 1'):
        Register(address=0, type='int32').decode([1])


SPANS = st.builds(
    Span,
    st.integers(1, 2),
    st.sampled_from(['holding', 'input']),
    st.integers(0, 400),
    st.integers(1, 4),
)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(SPANS, max_size=25), st.integers(0, 20), st.integers(4, 125))
def test_merged_spans_cover_all_spans_without_splitting_one(spans, max_gap, max_count):
    def cells(many):
        return {(s.unit, s.table, a) for s in many for a in range(s.start, s.end)}

    merged = merge_spans(spans, max_gap, max_count)
    asked, covered = cells(spans), cells(merged)
    assert asked <= covered
    assert all(span.count <= max_count for span in merged)
    for span in spans:  # a number is never split between two requests
        assert any(
            (m.unit, m.table) == (span.unit, span.table)
            and m.start <= span.start
            and span.end <= m.end
            for m in merged
        )
    if max_gap == 0:
        assert covered == asked


def test_neighbouring_spans_become_one_request():
    spans = [Span(1, 'holding', 16, 1), Span(1, 'holding', 17, 2), Span(1, 'holding', 20, 2)]
    assert merge_spans(spans, 0, 125) == [
        Span(1, 'holding', 16, 3),
        Span(1, 'holding', 20, 2),
    ]
    assert merge_spans(spans, 1, 125) == [Span(1, 'holding', 16, 6)]


REGISTERS = st.builds(
    Register,
    address=st.just(0),
    type=st.sampled_from([*INTEGERS, 'float32']),
    word_order=st.sampled_from(['high_first', 'low_first']),
    scale=st.sampled_from([1.0, -0.001, 0.0025]),
    zero=st.sampled_from([0.0, 0.3]),
    table=st.sampled_from(['holding', 'input']),
)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(st.tuples(REGISTERS, st.integers(0, 2)), min_size=1, max_size=12), st.data())
def test_row_of_registers_has_the_words_and_values_of_each_register(placed, data):
    places, spans, start = [], [], 7
    for register, gap in placed:
        start += gap
        places.append((register, start))
        spans.append(Span(1, register.table, start, register.words))
        start += register.words
    spans = merge_spans(spans, 1, 16)
    cells = [(span.table, at) for span in spans for at in range(span.start, span.end)]
    row = RegisterRow(places, spans)
    sizes = data.draw(st.lists(st.floats(0.4, 32.0), min_size=len(places), max_size=len(places)))
    given = [math.copysign(size, register.scale) for size, (register, _) in zip(sizes, places)]
    memory = dict.fromkeys(cells, 0)
    for value, (register, start) in zip(given, places):
        for at, word in enumerate(register.encode(value), start):
            memory[register.table, at] = word
    words = row.encode(given)
    assert words == [memory[cell] for cell in cells]
    alone = [
        register.decode([memory[register.table, start + i] for i in range(register.words)])
        for register, start in places
    ]
    assert row.decode(words) == alone


@pytest.mark.parametrize('value', [math.nan, math.inf, 40.0])
def test_row_of_registers_refuses_what_a_register_refuses(value):
    register = Register(address=0, scale=0.001)
    row = RegisterRow([(register, 0), (register, 1)], [Span(1, 'holding', 0, 2)])
    with pytest.raises(ValueError, match='does not fit into int16'):
        row.encode([1.0, value])
