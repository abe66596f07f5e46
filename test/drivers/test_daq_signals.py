"""Processing of samples, without a device: stamps, forces, open circuits, configurations."""

import numpy as np
import pytest
from daq_cases import CALIBRATION, daq_config
from hypothesis import given, settings
from hypothesis import strategies as st

from softarm_ros.drivers.daq_config import AnalogInput, AnalogOutput
from softarm_ros.drivers.force_sensor import ForceSensor
from softarm_ros.drivers.sample_clock import SampleClock
from softarm_ros.drivers.sensor_watch import SensorWatch

# -- stamps


@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    st.lists(st.floats(0.0, 0.03), min_size=400, max_size=400),
    st.floats(-1e-4, 1e-4),
    st.floats(0.0, 0.01),
)
def test_sample_stamps_follow_the_device_clock_despite_read_jitter(delays, drift, start_delay):
    rate, block = 1000.0, 10
    true_rate = rate * (1.0 + drift)
    delays[::20] = [0.0] * len(delays[::20])  # now and then a block is read at once
    clock = SampleClock(rate, 100.0 - 1e-3, 100.0 + start_delay)
    last_arrival, previous = 0.0, -np.inf
    for k, delay in enumerate(delays):
        true = 100.0 + (k * block + np.arange(block)) / true_rate
        last_arrival = max(last_arrival, true[-1] + delay)
        stamps = clock.stamp(block, last_arrival)
        assert (np.diff(stamps) >= 0.0).all()
        assert stamps[0] >= previous
        assert stamps[-1] <= last_arrival + 1e-9
        previous = stamps[-1]
        # At first within the error of the start, then of a block read at once, plus drift.
        assert np.abs(stamps - true).max() < 1e-3 + start_delay + 5e-4
        if k > 20:
            assert np.abs(stamps - true).max() < 1.6e-3


def test_late_block_is_not_stamped_late():
    clock = SampleClock(1000.0, 0.0, 0.0)
    for k in range(100):
        clock.stamp(10, 0.01 * (k + 1))
    late = clock.stamp(10, 1.01 + 0.2)
    assert late[-1] == pytest.approx(1.009, abs=1.1e-3)


# -- forces


def test_force_sensor_recovers_the_load_after_taring():
    rng = np.random.default_rng(3)
    sensor = ForceSensor(daq_config().force_sensor)
    loads = rng.uniform(-1.0, 1.0, (6, 50)) * [[20], [20], [60], [1], [1], [1]]
    bias = rng.uniform(-0.5, 0.5, (6, 1))
    sensor.tare(1000)
    assert sensor.taring
    for _ in range(10):
        sensor.wrench(np.tile(bias, 100))
    assert not sensor.taring
    assert np.allclose(sensor.bias_V, bias[:, 0])
    volts = np.linalg.solve(CALIBRATION, loads) + bias
    assert np.allclose(sensor.wrench(volts), loads)


def test_overload_and_saturation_are_named():
    sensor = ForceSensor(daq_config().force_sensor)
    volts = np.zeros((6, 5))
    volts[2] = 10.0
    assert 'Dev1/ai18 saturated' in sensor.overload(volts, sensor.wrench(volts))
    wrench = np.zeros((6, 5))
    wrench[3] = 2.5
    assert sensor.overload(np.zeros((6, 5)), wrench) == 'Tx = 2.5 N m beyond 2 N m'
    assert sensor.overload(np.zeros((6, 5)), np.zeros((6, 5))) is None


# -- sensors


def watch(**changes):
    return SensorWatch([daq_config().inputs[0].model_copy(update=changes)], open_after_s=0.05)


def codes(watch, volts, blocks=20):
    found = set()
    for _ in range(blocks):
        found |= {code for _, code, _ in watch.look(volts()[None], 0.01)}
    return found


def test_sensor_watch_reports_open_limit_and_stuck_codes():
    rng = np.random.default_rng(0)

    def noisy(volts):
        return lambda: volts + 1e-3 * rng.standard_normal(10)

    assert codes(watch(), noisy(3.0)) == set()
    assert codes(watch(), noisy(0.1)) == {'open'}
    assert codes(watch(), noisy(9.9)) == {'open'}
    assert codes(watch(), noisy(5.2)) == {'limit'}
    assert codes(watch(), lambda: np.full(10, 3.0), 30) == {'stuck'}
    assert codes(watch(stuck_after_s=None), lambda: np.full(10, 3.0), 30) == set()


def test_voltage_spike_is_not_reported_as_an_open_circuit():
    sensor = watch()
    for k in range(100):
        volts = np.full(10, 3.0) + 1e-3 * np.arange(10)
        if k % 5 == 0:
            volts[:] = 0.0
        assert list(sensor.look(volts[None], 0.01)) == []


@pytest.mark.parametrize('open_V', [0.02, 9.9])
@pytest.mark.parametrize('share', range(1, 10))
def test_block_with_a_wire_break_keeps_the_value_of_its_sound_samples(open_V, share):
    volts = np.where(np.arange(10) < share, 3.0 + 1e-3 * np.arange(10), open_V)
    config = daq_config().inputs[0]
    shown = config.volts(watch().values(volts[None])[0])
    assert shown.mean() == pytest.approx(3.0, abs=5e-3)
    np.testing.assert_allclose(shown[:share], volts[:share], rtol=1e-12)


def test_blocks_that_are_entirely_open_or_sound_are_shown_unchanged():
    for volts in (np.full(10, 0.02), np.linspace(2.0, 3.0, 10)):
        expected = daq_config().inputs[0].value(volts)
        np.testing.assert_array_equal(watch().values(volts[None])[0], expected)


def test_inputs_are_watched_apart():
    config = daq_config().inputs[0]
    both = SensorWatch([config, config.model_copy(update={'name': 'other'})], open_after_s=0.05)
    alone = SensorWatch([config], open_after_s=0.05)
    rng = np.random.default_rng(0)
    found, lone = [], []
    for k in range(60):
        volts = 3.0 + 1e-3 * rng.standard_normal((2, 10))
        if 10 <= k < 20:
            volts[1, 5 if k == 10 else 0 :] = 0.1  # open, from the middle of a block
        if 20 <= k < 30:
            volts[1] = 5.2  # beyond its limit
        if k >= 30:
            volts[1] = 3.0  # stuck
        values = both.values(volts)
        np.testing.assert_array_equal(values[0], config.value(volts[0]))
        found += both.look(volts, 0.01)
        lone += alone.look(volts[1:], 0.01)
    assert {name for name, _, _ in found} == {'other'}
    assert [text for _, *text in found] == [text for _, *text in lone]
    assert {code for _, code, _ in found} == {'open', 'limit', 'stuck'}


# -- configurations


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'low': 2.0, 'high': 1.0}, 'low = 2.0 is not less than high = 1.0'),
        ({'scale': 0.0}, 'scale = 0'),
        ({'open_below_V': -11.0}, 'never reached'),
        ({'scale': -2.0, 'zero': 1.0, 'high': 21.1}, r'high = 21.1 V outside \[-19, 21\] V'),
        ({'channel': 'ai0'}, 'channel'),
    ],
)
def test_invalid_analog_inputs_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        AnalogInput.model_validate({'name': 'p', 'channel': 'Dev1/ai0'} | change)


def test_output_range_beyond_its_voltage_range_is_refused():
    fields = {'name': 'v', 'channel': 'Dev1/ao0', 'scale': 1e4, 'low': 0.0, 'high': 1.1e5}
    with pytest.raises(ValueError, match=r'high = 110000.0 V takes 11 V, outside \[0.0, 10.0\] V'):
        AnalogOutput.model_validate(fields | {'safe': 0.0})


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'buffer_samples': 15}, 'less than two blocks'),
        ({'lines': [{'name': 'valve_1', 'line': 'Dev1/port0/line0'}]}, 'valve_1'),
        ({'inputs': [{'name': 'p', 'channel': 'Dev1/ao0'}]}, 'expected a channel ai'),
        (
            {
                'force_sensor': daq_config().force_sensor.model_dump()
                | {'calibration': np.ones((6, 6)).tolist()}
            },
            'singular',
        ),
    ],
)
def test_inconsistent_daq_configurations_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        daq_config(**change)
