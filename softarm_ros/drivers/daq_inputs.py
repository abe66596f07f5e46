"""Hardware-timed reading of all analogue inputs, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from softarm_ros.clock import MONOTONIC, Clock, Event
from softarm_ros.drivers.daq_channel import plain_channel
from softarm_ros.drivers.daq_config import AnalogInput, DaqConfig, ForceSensorConfig, Terminal
from softarm_ros.drivers.daq_session import (
    DaqFaultError,
    DaqSession,
    OpenChannel,
    daq_errors,
)
from softarm_ros.drivers.sample_clock import SampleClock
from softarm_ros.geometry.arrays import Array

if TYPE_CHECKING:
    from nidaqmx.task import Task

INPUTS = 'inputs'


class InputReader:
    """
    Reads until stopped; reports an error and starts again.

    `on_block` gets the stamps (k,) and voltages (channels, k) of each block, `on_fault` each
    error. Both are called by the thread that runs `run`. After a pause, all older samples are one
    block, and the newest are a block as always.
    """

    def __init__(
        self,
        config: DaqConfig,
        on_block: Callable[[Array, Array], None],
        on_fault: Callable[[str, DaqFaultError], None],
        clock: Clock = MONOTONIC,
        open_channel: OpenChannel = plain_channel,
    ) -> None:
        self._config = config
        self._clock = clock
        self._open_channel = open_channel
        self._on_block = on_block
        self._on_fault = on_fault
        self.running = False
        self.starts = 0

    def run(self, stop: Event) -> None:
        """Read until `stop` is set."""
        while not stop.is_set():
            with DaqSession(self._config, self._open_channel) as session:
                try:
                    self._read(session.task(INPUTS), stop)
                    return
                except DaqFaultError as error:
                    # Report before the tasks are cleared: that takes long if the host hangs.
                    self._on_fault(INPUTS, error)
                finally:
                    self.running = False
            stop.wait(self._config.reopen_s)

    def _read(self, task: Task, stop: Event) -> None:
        from nidaqmx.stream_readers import AnalogMultiChannelReader

        config = self._config
        self._set_up(task)
        with daq_errors():
            reader = AnalogMultiChannelReader(task.in_stream)
            reader.verify_array_shape = False  # saves two calls to the host per block
            before = self._clock.now_s()
            task.start()
            clock = SampleClock(config.sample_rate_hz, before, self._clock.now_s())
        self.starts += 1
        count = config.block_samples
        while not stop.is_set():
            volts = np.empty((len(config.input_channels), count))
            with daq_errors():
                reader.read_many_sample(
                    volts, count, timeout=config.block_s + config.read_margin_s
                )
            stamps = clock.stamp(count, self._clock.now_s())
            # Apart from those of the pause: their mean would be half the pause older.
            for part in self._parts(count):
                self._on_block(stamps[part], volts[:, part])
            self.running = True  # only now are there values to start from
            count = self._next_count(self._clock.now_s() - float(stamps[-1]))

    def _parts(self, count: int) -> list[slice]:
        """Return the samples before the newest block, if there are any, and the newest block."""
        newest = count - self._config.block_samples
        return [*([slice(newest)] if newest > 0 else []), slice(newest, None)]

    def _next_count(self, age_s: float) -> int:
        """
        Return the number of samples to read next, given the age [s] of the newest sample read.

        Normally that is one block. A reader that has fallen behind reads all waiting samples in
        one call, since reading block by block might never catch up.
        """
        config = self._config
        waiting = int(age_s * config.sample_rate_hz)
        if waiting < 2 * config.block_samples:
            return config.block_samples
        return min(waiting, max(config.block_samples, config.buffer_samples // 2))

    def _set_up(self, task: Task) -> None:
        from nidaqmx.constants import AcquisitionType, TerminalConfiguration

        config = self._config
        terminals: dict[Terminal, TerminalConfiguration] = {
            'default': TerminalConfiguration.DEFAULT,
            'rse': TerminalConfiguration.RSE,
            'nrse': TerminalConfiguration.NRSE,
            'differential': TerminalConfiguration.DIFF,
            'pseudo_differential': TerminalConfiguration.PSEUDO_DIFF,
        }
        parts: list[tuple[str, AnalogInput | ForceSensorConfig]]
        parts = [(part.channel, part) for part in config.inputs]
        if config.force_sensor is not None:
            parts += [(channel, config.force_sensor) for channel in config.force_sensor.channels]
        for channel, part in parts:
            with daq_errors(channel):
                task.ai_channels.add_ai_voltage_chan(
                    channel,
                    terminal_config=terminals[part.terminal],
                    min_val=part.min_V,
                    max_val=part.max_V,
                )
        with daq_errors():
            task.timing.cfg_samp_clk_timing(
                config.sample_rate_hz,
                sample_mode=AcquisitionType.CONTINUOUS,
                samps_per_chan=config.buffer_samples,
            )
