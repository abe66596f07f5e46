"""The last seconds for plots: evenly thinned, bounded, restarted when time goes back."""

import numpy as np
import pytest

from softarm_ros.cli.viewer.history import History
from softarm_ros.runtime.view_state import ViewState


def test_history_keeps_one_state_per_step_over_the_last_span():
    history = History(2, span_s=2.0, step_s=0.1)
    for i in range(500):
        state = ViewState(error_m=1e-5 * i, command=np.array([i, -i], dtype=float))
        history.add(0.02 * i, state)
    times, error, latency, commands, measured, effort, _ = history.columns()
    assert np.isnan(measured).all() and np.isnan(effort).all()
    assert len(times) == 20
    assert times[-1] == 0.0
    assert np.diff(times) == pytest.approx(0.1)
    assert error[0, -1] == pytest.approx(4.95)
    assert np.isnan(latency).all()
    assert commands[:, -1] == pytest.approx([495.0, -495.0])


def test_history_restarts_when_time_goes_back():
    history = History(1)
    assert history.add(10.0, ViewState(error_m=0.001))
    assert not history.add(10.05, ViewState(error_m=0.002))
    assert history.add(3.0, ViewState(error_m=0.003))
    columns = history.columns()
    assert columns.times == pytest.approx([0.0])
    assert columns.error[0] == pytest.approx([3.0])


@pytest.mark.parametrize('apart_s', [0.3, 7.0, 100.0])
def test_states_older_than_the_span_are_dropped_at_any_interval_of_states(apart_s):
    history = History(1, span_s=2.0, step_s=0.1)
    for i in range(30):
        history.add(10.0 + 0.1 * i, ViewState(error_m=0.001))
    for i in range(1, 4):
        history.add(12.9 + apart_s * i, ViewState(error_m=0.002))
    times = history.columns().times
    assert times[0] > -2.0
    assert times[-1] == 0.0


def test_an_empty_history_has_empty_columns():
    columns = History(3, 2).columns()
    assert columns.times.size == 0
    assert columns.command.shape == (3, 0)
    assert columns.configuration.shape == (2, 0)
