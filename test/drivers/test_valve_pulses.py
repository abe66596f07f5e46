"""Books of valve pulses over a line that delays and loses frames, in simulated time."""

import numpy as np
import pytest
import valve_drive

from softarm_ros.drivers import messages
from softarm_ros.drivers.muscle_lengths import MuscleLengths
from softarm_ros.drivers.valve_config import ValveBoardConfig, ValveDriveConfig
from softarm_ros.drivers.valve_pulses import InterlockError, PulseBook, ValveBatch

DRIVE = ValveDriveConfig.model_validate(valve_drive.DRIVE)
MUSCLES = 6
PAIRS = (3, 0, 29, 7, 8, 15)
REST = np.full(MUSCLES, 0.1)


def book_at_rest():
    book = PulseBook(MuscleLengths(DRIVE, REST, np.zeros_like), PAIRS)
    book.start(65530)  # the batch numbers soon wrap
    return book


class Board:
    """The outputs of a board that gets the frames of a line, in steps of 1 ms."""

    def __init__(self):
        self.number = 65530
        self.left = np.zeros(60, dtype=int)
        self.opened_ms = np.zeros(60, dtype=int)
        self.lengths = REST.copy()
        self.closest_ms = 1000  # between two openings of a valve
        self._closed_ms = np.full(60, 1000)

    def take(self, batch: ValveBatch):
        if batch.number == self.number:
            return
        self.number = batch.number
        for output, ms in enumerate(batch.open_ms):
            if ms != messages.GO_ON:
                self.left[output] = ms

    def tick(self):
        for output in np.flatnonzero((self.left > 0) | (self.opened_ms > 0)):
            if self.left[output] == 0:  # it closes
                muscle = PAIRS.index(output // 2)
                table = DRIVE.table()
                curve = table.deflating if output % 2 else table.inflating
                time = float(curve.inverse(self.lengths[muscle])) + 1e-3 * self.opened_ms[output]
                self.lengths[muscle] = float(curve(time))
                self.opened_ms[output], self._closed_ms[output] = 0, 0
                continue
            if self.opened_ms[output] == 0:
                if self._closed_ms[output ^ 1] < 30 or self.opened_ms[output ^ 1]:
                    continue  # the dead time of the firmware
                self.closest_ms = min(self.closest_ms, self._closed_ms[output])
            assert self.opened_ms[output ^ 1] == 0, 'interlock: both open'
            self.left[output] -= 1
            self.opened_ms[output] += 1
        self._closed_ms += 1

    def lengths_now(self):
        """Return the lengths, including what the open valves have changed so far."""
        lengths, table = self.lengths.copy(), DRIVE.table()
        for output in np.flatnonzero(self.opened_ms):
            i, curve = PAIRS.index(output // 2), table.deflating if output % 2 else table.inflating
            lengths[i] = curve(curve.inverse(lengths[i]) + 1e-3 * self.opened_ms[output])
        return lengths

    @property
    def mask(self) -> int:
        return sum(1 << int(output) for output in np.flatnonzero(self.left))


class Line:
    """Delivers frames in order, each after a random delay; some are lost."""

    def __init__(self, rng, shortest_ms, longest_ms, loss):
        self.rng, self.range, self.loss = rng, (shortest_ms, longest_ms), loss
        self.frames = []

    def put(self, now_ms, frame):
        if self.rng.uniform() < self.loss:
            return
        due = now_ms + int(self.rng.integers(self.range[0], self.range[1] + 1))
        self.frames.append((max(due, self.frames[-1][0] if self.frames else 0), frame))

    def due(self, now_ms):
        while self.frames and self.frames[0][0] <= now_ms:
            yield self.frames.pop(0)[1]


def run(seed, shortest_ms, longest_ms, loss, seconds=20, hold_rate=0.4, readings=None):
    """Follow random targets with holds between; return book, board and the errors at holds."""
    rng = np.random.default_rng(seed)
    book, board = book_at_rest(), Board()
    down, up = Line(rng, shortest_ms, longest_ms, loss), Line(rng, shortest_ms, longest_ms, loss)
    target, until, errors = None, 0, []
    for ms in range(1000 * seconds):
        now = 1e-3 * ms
        if ms >= until:
            hold = rng.uniform() < hold_rate
            target = None if hold else REST + rng.uniform(-0.006, 0.006, MUSCLES)
            until = ms + int(rng.integers(300, 1500) if hold else rng.integers(20, 1500))
        for number, mask, stamp, true in up.due(ms):
            stamp += 1e-3 * shortest_ms
            book.seen(number, mask, stamp)
            if readings is not None:
                now_there = book.lengths.under_way(book.left(stamp))
                readings.append(
                    (np.abs(now_there - true).max(), np.abs(book.lengths.estimate - true).max())
                )
        if ms % 10 == 0:
            batch = None
            if book.pending is None and target is not None:
                batch = book.next_pulses(target, now)
            elif target is None and book.anything_open(now):
                batch = book.closing(now)
            elif book.pending is not None and now > book.pending.sent_s + 0.15:
                batch = book.pending
            if batch is not None:
                batch.payload()
                book.sent(batch, now)
                down.put(ms, batch)
        for batch in down.due(ms):
            board.take(batch)
        board.tick()
        if ms % 20 == 0:
            true = board.lengths_now() if readings is not None else None
            up.put(ms, (board.number, board.mask, now, true))
        if target is None and ms == until - 1:
            assert book.pending is None
            assert board.mask == 0
            errors.append(np.abs(book.lengths.estimate - board.lengths).max())
    return book, board, errors


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('delay_ms', [0, 20, 50])
def test_count_is_exact_on_a_line_with_constant_delay_even_with_cut_pulses(seed, delay_ms):
    book, board, errors = run(seed, delay_ms, delay_ms, 0.0)
    assert book.pulses > 100
    assert book.cut > 5
    assert len(errors) > 3
    assert board.closest_ms >= 30
    # Closing batches take as long as those they close: cut pulses are known to the millisecond.
    assert max(errors) < 1e-9


def test_reading_includes_the_progress_of_pulses_under_way():
    readings = []
    run(5, 20, 20, 0.0, readings=readings)
    off, led_off = np.max(readings, axis=0)
    # A state every 20 ms shows when a pulse began; at 6 mm/s that is 0.12 mm.
    assert off < 1.3e-4
    assert led_off > 5e-4  # the end of the pulses is not the reading


@pytest.mark.parametrize('seed', range(4))
def test_interlock_and_count_hold_on_a_line_with_jitter_and_loss(seed):
    book, board, errors = run(seed, 15, 45, 0.05)
    assert book.pulses > 100
    assert board.closest_ms >= 15  # the relays of the arm need this
    assert book.cut > 5
    # A cut pulse is known to within the jitter, or as states show it: 30 ms a cut, either way,
    # at 5.7 mm/s; errors of both signs cancel in part.
    assert max(errors) < 1e-6 * (20 + 115 * book.cut / MUSCLES)


def test_count_is_exact_on_a_lossy_line_if_no_pulse_is_cut():
    book, board, _ = run(7, 20, 20, 0.05, hold_rate=0.0)
    still = [i for i in range(MUSCLES) if board.mask >> 2 * PAIRS[i] & 3 == 0]
    assert book.cut == 0
    assert book.pulses > 100
    if book.pending is None:
        np.testing.assert_allclose(book.lengths.estimate[still], board.lengths[still], atol=1e-9)


def test_pending_batch_is_settled_when_the_board_is_back_after_a_lost_link():
    def begun():
        book = book_at_rest()
        batch = book.next_pulses(REST - 0.008, 1.0)
        book.sent(batch, 1.0)
        return book, batch

    book, batch = begun()
    book.found(65530, cut_s=None)  # it never arrived
    assert np.array_equal(book.lengths.estimate, REST)
    assert book.next_pulses(REST - 0.008, 1.5).number == batch.number

    book, batch = begun()
    book.found(batch.number, cut_s=None)  # it arrived, and the watchdog let it end
    curve = DRIVE.table().deflating
    led = float(curve(curve.inverse(0.1) + 0.2))
    np.testing.assert_allclose(book.lengths.estimate, led, atol=1e-12)
    assert book.cut == 0

    book, batch = begun()
    book.found(batch.number, cut_s=1.12)  # it arrived, and our HELLO closed it
    led = float(curve(curve.inverse(0.1) + 0.12))
    np.testing.assert_allclose(book.lengths.estimate, led, atol=1e-12)
    assert book.cut == MUSCLES
    assert book.pending is None


def test_batch_that_would_open_both_valves_is_refused():
    open_ms = [0] * messages.VALVES
    open_ms[58], open_ms[59] = 20, messages.GO_ON
    with pytest.raises(InterlockError, match='pair 29: inflate 20 ms and deflate 65535 ms'):
        ValveBatch(1, None, tuple(open_ms), 0.0).payload()


def test_pulses_go_to_the_outputs_of_the_configured_pairs():
    book = book_at_rest()
    target = REST.copy()
    target[2], target[5] = 0.095, 0.105
    batch = book.next_pulses(target, 0.0)
    timed = {i: ms for i, ms in enumerate(batch.open_ms) if ms not in (0, messages.GO_ON)}
    assert timed == {2 * 29 + 1: 200, 2 * 15: 200}


@pytest.mark.parametrize(
    ('pairs', 'message'),
    [
        ((0, 30), r'pairs\[1\] = 30: the board has 0 to 29'),
        ((4, 2, 4), r'pairs\[2\] = 4: two muscles have it'),
    ],
)
def test_missing_and_duplicate_valve_pairs_are_refused(pairs, message):
    with pytest.raises(ValueError, match=message):
        ValveBoardConfig(port='/dev/rfcomm0', pairs=pairs)


def test_load_model_is_called_once_per_target_without_changing_the_choices():
    asked = []

    def load_of(target):
        asked.append(target.copy())
        return 40.0 * (0.1 - target)

    def choose(lengths, target):
        choice = lengths.choose(target, np.ones(MUSCLES, dtype=bool))
        lengths.carry_out(choice, np.where(choice.ticks > 0, 0.002, 0.0))
        return choice

    kept = MuscleLengths(DRIVE, REST, load_of)
    rng = np.random.default_rng(1)
    for target in rng.uniform(0.095, 0.105, (5, MUSCLES)):
        before = len(asked)
        for _ in range(4):
            anew = MuscleLengths(DRIVE, kept.estimate, load_of).choose(
                target, np.ones(MUSCLES, dtype=bool)
            )
            choice = choose(kept, target)
            np.testing.assert_array_equal(choice.muscles, anew.muscles)
            np.testing.assert_array_equal(choice.ticks, anew.ticks)
            np.testing.assert_array_equal(choice.inflate, anew.inflate)
        assert len(asked) - before == 5  # four times by new objects, once by the one that keeps it
