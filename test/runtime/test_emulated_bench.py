"""The process of emulated devices: its orders, and its pace on a clock that the test sets."""

import multiprocessing

import pytest
from manual_clock import ManualClock

from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.runtime.emulated_bench import _run

CHUNK_S = 0.002


class Arm:
    """An arm that counts its time, and may be slow."""

    def __init__(self, clock):
        self.clock, self.time_s, self.takes_s = clock, 0.0, 0.0

    def advance(self, duration_s):
        self.clock.sleep(self.takes_s)
        self.time_s += duration_s

    def report(self):
        return {'time': f'{self.time_s:.3f}'}

    def inject(self, fault):
        if fault == 'ended':
            raise EmulationError('the board has ended')
        if fault != 'steppers unplug':
            raise ValueError(f'no fault {fault!r}')
        return 'steppers: unplug'


@pytest.fixture
def running():
    clock = ManualClock()
    arm = Arm(clock)
    ours, theirs = multiprocessing.Pipe()

    def run():
        with pytest.raises(EOFError):  # the end of the test closes the pipe
            _run(arm, theirs, clock)

    task = clock.task(run, 'bench')
    task.start()
    yield clock, arm, ours
    ours.close()
    task.join()
    theirs.close()
    assert clock.failures == []


def passed(clock, arm, seconds):
    """Return how far the arm's time [s] advances in some seconds of the clock."""
    before = arm.time_s
    clock.sleep(seconds)
    return arm.time_s - before


def test_time_of_the_arm_follows_the_clock(running):
    clock, arm, _ = running
    assert passed(clock, arm, 1.0) == pytest.approx(1.0, abs=2.0 * CHUNK_S)


def test_short_delay_is_caught_up_and_a_long_one_is_not(running):
    clock, arm, _ = running
    clock.sleep(0.1)
    for takes_s, lost_s in ((0.08, 0.0), (0.5, 0.5)):
        before_s, began_s = arm.time_s, clock.now_s()
        arm.takes_s = takes_s
        clock.sleep(2.0 * CHUNK_S)
        arm.takes_s = 0.0
        clock.sleep(1.0)
        gone_s = clock.now_s() - began_s
        assert gone_s - (arm.time_s - before_s) == pytest.approx(lost_s, abs=3.0 * CHUNK_S)


def test_orders_are_answered_while_time_passes(running):
    clock, _, pipe = running
    clock.sleep(0.1)

    def answer(*order):
        pipe.send(order)
        clock.sleep(2.0 * CHUNK_S)
        assert pipe.poll()
        return pipe.recv()

    assert float(answer('report')['time']) == pytest.approx(0.1, abs=3.0 * CHUNK_S)
    assert answer('inject', 'steppers unplug') == 'steppers: unplug'
    assert isinstance(answer('inject', 'nonsense'), ValueError)
    assert isinstance(answer('inject', 'ended'), EmulationError)
