"""The thread of a driver: begin, wait, wake, end, and what a defect leaves."""

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
    """Work that notes its rounds, in the time of a clock."""

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


def test_it_works_once_a_period_and_ends():
    polled = Polled()
    polled.thread.start()
    polled.thread.start()  # it has begun
    polled.clock.sleep(0.095)
    assert polled.gaps() == [PERIOD_S] * 4
    assert not any(polled.woken)
    began = polled.clock.now_s()
    polled.thread.close()
    polled.thread.close()
    assert polled.clock.now_s() == began, 'the end does not wait for the next round'
    assert polled.rounds[-1] == 'ended' and polled.rounds.count('ended') == 1


def test_a_round_that_took_too_long_is_followed_at_once_and_none_is_made_up_for():
    polled = Polled()
    polled.takes_s = 0.05
    polled.thread.start()
    polled.clock.sleep(0.07)
    polled.takes_s = 0.0
    polled.clock.sleep(0.065)
    assert polled.gaps() == [0.05, 0.05, PERIOD_S]
    polled.thread.close()


def test_who_is_woken_works_at_once():
    polled = Polled()
    polled.thread.start()
    polled.clock.sleep(0.005)
    polled.thread.wake()
    polled.clock.sleep(0.001)
    assert polled.gaps() == [0.005] and polled.woken == [True]
    polled.clock.sleep(0.03)
    assert polled.gaps() == [0.005, PERIOD_S] and polled.woken == [True, False]
    polled.thread.close()


def test_a_call_during_a_round_is_not_overlooked():
    polled = Polled()
    polled.takes_s = 0.01
    polled.thread.start()
    polled.clock.sleep(0.005)
    polled.thread.wake()
    polled.clock.sleep(0.006)
    assert polled.gaps() == [0.01]
    polled.thread.close()


def test_it_begins_anew_after_its_end():
    polled = Polled()
    for _ in range(2):
        polled.rounds.clear()
        polled.thread.start()
        polled.clock.sleep(0.05)
        assert polled.gaps() == [PERIOD_S] * 2
        polled.thread.close()
        assert polled.rounds[-1] == 'ended'


def test_a_defect_ends_it_is_logged_and_handed_on_once(caplog):
    polled = Polled()
    polled.thread.start()
    polled.clock.sleep(0.03)
    polled.fail = ZeroDivisionError('a defect')
    polled.clock.sleep(0.1)
    assert polled.errors == [polled.fail]
    assert [record.message for record in caplog.records] == ['poll failed']
    polled.thread.start()  # not before somebody has closed it
    polled.clock.sleep(0.1)
    assert len(polled.errors) == 1
    polled.fail = None
    polled.thread.close()
    polled.thread.start()
    polled.clock.sleep(0.05)
    polled.thread.close()
    assert polled.rounds[-1] == 'ended'


def test_what_does_not_return_is_waited_for_no_longer_than_said_and_has_no_twin(caplog):
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


def test_the_end_interrupts_what_else_is_waited_for():
    port = []
    polled = Polled(interrupt=lambda: port.append('woken'))
    polled.thread.start()
    polled.clock.sleep(0.01)
    polled.thread.end()
    assert port == ['woken']
    polled.thread.close()


@pytest.mark.skipif(not hasattr(os, 'SCHED_FIFO'), reason='Linux')
@pytest.mark.parametrize('goes_first', [False, True])
def test_it_goes_first_only_where_it_is_said(monkeypatch, goes_first):
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
