"""The thread of a driver: start, wait, wake, end and exceptions."""

import os
import threading
from itertools import pairwise

import pytest
from manual_clock import ManualClock

from softarm_ros.drivers import polling
from softarm_ros.drivers.polling import JOIN_S, PollingThread
from softarm_ros.drivers.problems import DriverError

PERIOD_S = 0.02


class Polled:
    """Work that records its rounds, in the time of a clock."""

    def __init__(self, **options):
        self.clock = ManualClock()
        self.rounds, self.woken, self.errors = [], [], []
        self.fail = None
        self.takes_s = 0.0
        self.thread = PollingThread('poll', self.work, self.errors.append, self.clock, **options)

    def work(self, thread):
        while not thread.ending.is_set():
            now = self.clock.now_s()
            self.rounds.append(now)
            if self.fail is not None:
                raise self.fail
            self.clock.sleep(self.takes_s)
            self.woken.append(thread.wait(now + PERIOD_S))
        self.rounds.append('ended')

    def gaps(self):
        times = [t for t in self.rounds if t != 'ended']
        return [round(b - a, 6) for a, b in pairwise(times)]


def test_thread_works_once_per_period_and_ends_at_close():
    polled = Polled()
    polled.thread.start()
    polled.thread.start()  # already started
    polled.clock.sleep(0.095)
    assert polled.gaps() == [PERIOD_S] * 4
    assert not any(polled.woken)
    began = polled.clock.now_s()
    polled.thread.close()
    polled.thread.close()
    assert polled.clock.now_s() == began, 'the end does not wait for the next round'
    assert polled.rounds[-1] == 'ended' and polled.rounds.count('ended') == 1


def test_late_round_is_followed_at_once_and_missed_rounds_are_not_made_up():
    polled = Polled()
    polled.takes_s = 0.05
    polled.thread.start()
    polled.clock.sleep(0.07)
    polled.takes_s = 0.0
    polled.clock.sleep(0.065)
    assert polled.gaps() == [0.05, 0.05, PERIOD_S]
    polled.thread.close()


def test_woken_thread_works_at_once():
    polled = Polled()
    polled.thread.start()
    polled.clock.sleep(0.005)
    polled.thread.wake()
    polled.clock.sleep(0.001)
    assert polled.gaps() == [0.005] and polled.woken == [True]
    polled.clock.sleep(0.03)
    assert polled.gaps() == [0.005, PERIOD_S] and polled.woken == [True, False]
    polled.thread.close()


def test_wake_during_a_round_starts_the_next_round_at_once():
    polled = Polled()
    polled.takes_s = 0.01
    polled.thread.start()
    polled.clock.sleep(0.005)
    polled.thread.wake()
    polled.clock.sleep(0.006)
    assert polled.gaps() == [0.01]
    polled.thread.close()


def test_thread_can_be_restarted_after_close():
    polled = Polled()
    for _ in range(2):
        polled.rounds.clear()
        polled.thread.start()
        polled.clock.sleep(0.05)
        assert polled.gaps() == [PERIOD_S] * 2
        polled.thread.close()
        assert polled.rounds[-1] == 'ended'


@pytest.mark.parametrize('raised', [ZeroDivisionError('a defect'), SystemExit(1)])
def test_exception_ends_the_thread_is_logged_and_reported_once(caplog, raised):
    polled = Polled()
    polled.thread.start()
    polled.clock.sleep(0.03)
    polled.fail = raised
    polled.clock.sleep(0.1)
    assert polled.errors == [polled.fail]
    assert [record.message for record in caplog.records] == ['poll failed']
    polled.thread.start()  # no restart before close
    polled.clock.sleep(0.1)
    assert len(polled.errors) == 1
    polled.fail = None
    polled.thread.close()
    polled.thread.start()
    polled.clock.sleep(0.05)
    polled.thread.close()
    assert polled.rounds[-1] == 'ended'


def test_close_waits_at_most_join_s_and_start_is_refused_until_the_work_ends(caplog):
    polled = Polled()
    polled.takes_s = 2.0 * JOIN_S
    polled.thread.start()
    polled.clock.sleep(0.01)
    began = polled.clock.now_s()
    polled.thread.close()
    assert polled.clock.now_s() - began == pytest.approx(JOIN_S)
    assert [record.message for record in caplog.records] == ['poll has not ended within 5 s']
    with pytest.raises(DriverError, match='poll is still ending'):
        polled.thread.start()
    polled.clock.sleep(2.0 * JOIN_S)
    assert polled.rounds[-1] == 'ended'
    polled.takes_s = 0.0
    polled.thread.start()
    polled.clock.sleep(0.01)
    polled.thread.close()
    assert polled.rounds.count('ended') == 2


def test_end_calls_the_interrupt_of_other_waits():
    port = []
    polled = Polled(interrupt=lambda: port.append('woken'))
    polled.thread.start()
    polled.clock.sleep(0.01)
    polled.thread.end()
    assert port == ['woken']
    polled.thread.close()


@pytest.mark.skipif(not hasattr(os, 'SCHED_FIFO'), reason='Linux')
@pytest.mark.parametrize('goes_first', [False, True])
def test_thread_priority_is_raised_only_if_goes_first(monkeypatch, goes_first):
    asked = []
    monkeypatch.setattr(polling.os, 'sched_getscheduler', lambda pid: os.SCHED_FIFO)
    monkeypatch.setattr(polling.os, 'sched_getparam', lambda pid: os.sched_param(20))
    monkeypatch.setattr(
        polling.os,
        'sched_setscheduler',
        lambda pid, policy, parameter: asked.append((policy, parameter.sched_priority)),
    )
    names = []
    thread = PollingThread(
        'steppers',
        lambda thread: names.append(threading.current_thread().name),
        names.append,
        goes_first=goes_first,
    )
    thread.start()
    thread.close()
    assert asked == ([(os.SCHED_FIFO, 21)] if goes_first else [])
    assert names == ['steppers']
