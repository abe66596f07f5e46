"""DAQ driver and host over loopback; test_daq.py checks how soon faults are reported."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from daq_cases import daq_config
from manual_clock import wait_until

pytest.importorskip('nidaqmx', reason='nidaqmx is not installed (extra hardware)')
pytest.importorskip('grpc', reason='grpcio is not installed (extra hardware)')

from softarm_ros.drivers.connections import OF_THIS_COMPUTER
from softarm_ros.drivers.daq import DaqDriver
from softarm_ros.emulation.daq_service import EmulatedDaq

PATIENCE_S = 20.0  # for a busy computer
# Only deliberate delays exceed these times, not those of a busy computer.
TIMES = {
    'call_timeout_s': 1.0,
    'read_margin_s': 1.0,
    'command_timeout_s': 2.0,
    'buffer_samples': 5000,
}
PRESSURES = np.array([1e4, 2e4, 3e4, 4e4, 5e4, 6e4])


def test_killed_host_keeps_the_outputs_and_makes_them_safe_once_it_is_back():
    config = daq_config(**TIMES)
    daq = EmulatedDaq(config).start()
    daq.volts[:6] = [1.0, 2.0, 3.0, 4.0, 4.5, 1.5]
    daq.volts[6:] = 0.0
    driver = DaqDriver(config.model_copy(update={'host': daq_config(daq.port).host}))
    driver.start()
    try:

        def ready():
            state = driver.state()
            return state.reading and state.writing

        def followed():
            assert driver.set_outputs(PRESSURES) is None
            state = driver.state()
            return np.allclose(state.outputs[:6], PRESSURES, atol=5.0) and np.allclose(
                state.values, 0.25e6 * (daq.volts[:6] - 1.0), atol=200.0
            )

        wait_until(ready, PATIENCE_S, 'connection')
        driver.enable()
        wait_until(followed, PATIENCE_S, 'outputs and inputs')
        assert np.allclose(daq.output_V[:6], PRESSURES / 1e4, atol=4e-4)
        assert driver.state().problems == ()

        daq.kill()
        wait_until(lambda: driver.state().problems, PATIENCE_S, 'report')
        assert driver.state().problems[0].code in ('grpc UNAVAILABLE', 'grpc CANCELLED')
        # A device keeps its outputs when its host dies; the driver cannot change that.
        assert np.allclose(daq.output_V[:6], PRESSURES / 1e4, atol=4e-4)
        daq.revive()
        wait_until(lambda: not daq.output_V[:6].any(), PATIENCE_S, 'safe outputs')
        wait_until(ready, PATIENCE_S, 'connection')
        assert driver.set_outputs(PRESSURES) == 'DAQ outputs not enabled'
    finally:
        driver.close()
        daq.close()
    assert daq.errors == []


def test_second_driver_is_refused_and_leaves_the_tasks_of_the_first():
    config = daq_config(**TIMES)
    daq = EmulatedDaq(config).start()
    config = config.model_copy(update={'host': daq_config(daq.port).host})
    first = DaqDriver(config)
    second = DaqDriver(config, open_channel=OF_THIS_COMPUTER.open_channel)  # as `softarm jog` does
    first.start()
    try:
        wait_until(
            lambda: first.state().reading and first.state().writing, PATIENCE_S, 'connection'
        )
        second.start()
        wait_until(lambda: len(second.state().problems) > 1, PATIENCE_S, 'refusal')
        said = ' '.join(problem.text for problem in second.state().problems)
        assert said.count('is used by another program of this computer') == 2
        samples = first.state().stamp_s
        wait_until(lambda: first.state().stamp_s > samples + 0.1, PATIENCE_S, 'newer samples')
        assert first.state().problems == ()
    finally:
        second.close()
        first.close()
        daq.close()


def test_hanging_call_ends_at_its_deadline_and_the_driver_reconnects():
    """The host stops answering and then answers again: its old tasks are cleared."""
    config = daq_config(**TIMES | {'call_timeout_s': 0.2, 'read_margin_s': 0.1})
    with EmulatedDaq(config) as daq:
        driver = DaqDriver(config.model_copy(update={'host': daq_config(daq.port).host}))
        driver.start()
        wait_until(lambda: driver.state().reading, PATIENCE_S, 'connection')
        daq.host_faults.hang = True
        wait_until(lambda: driver.state().problems, PATIENCE_S, 'report')
        assert 'grpc DEADLINE_EXCEEDED' in {p.code for p in driver.state().problems}
        daq.host_faults.hang = False
        wait_until(lambda: driver.state().reading, PATIENCE_S, 'connection')
        driver.close()


def test_nidaqmx_is_imported_by_one_thread_only():
    # Two threads that import nidaqmx at the same time break each other's import.
    program = (
        'import sys, time\n'
        'from daq_cases import daq_config\n'
        'from softarm_ros.drivers.daq import DaqDriver\n'
        'assert "nidaqmx" not in sys.modules\n'
        'driver = DaqDriver(daq_config(port=1))\n'
        'driver.start()\n'
        'while not driver.state().problems: time.sleep(0.01)\n'
        'time.sleep(0.5)\n'
        'print({problem.code for problem in driver.state().problems})\n'
        'driver.close()\n'
    )
    done = subprocess.run(
        [sys.executable, '-c', program],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {'PYTHONPATH': os.pathsep.join([str(Path(__file__).parent), *sys.path])},
    )
    assert done.stdout.strip() == "{'grpc UNAVAILABLE'}", done.stdout + done.stderr


def test_missing_ni_daqmx_driver_is_reported():
    driver = DaqDriver(daq_config())
    driver.start()
    try:
        wait_until(lambda: driver.state().problems, PATIENCE_S, 'report')
        text = str(driver.state().problems[0])
        if 'NI-DAQmx' not in text:
            pytest.skip(f'NI-DAQmx is installed here: {text}')
        assert not driver.state().reading
    finally:
        driver.close()
