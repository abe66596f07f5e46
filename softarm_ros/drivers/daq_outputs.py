"""Writing of analogue and digital outputs, at every change and at a minimum rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.daq_channel import plain_channel
from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.drivers.daq_session import (
    DaqFaultError,
    DaqSession,
    OpenChannel,
    daq_errors,
)
from softarm_ros.drivers.polling import PollingThread
from softarm_ros.geometry.arrays import Array

if TYPE_CHECKING:
    from nidaqmx.task import Task

OUTPUTS = 'outputs'


@dataclass(frozen=True)
class Levels:
    """Wanted levels at the terminals: volts (outputs,), and high or low (lines,)."""

    volts: Array
    high: NDArray[np.bool_]


class OutputWriter:
    """
    Writes the levels returned by `levels` until stopped; reports an error and starts again.

    `on_written` is called after the device has accepted the levels, `on_fault` after an error.
    """

    def __init__(
        self,
        config: DaqConfig,
        levels: Callable[[], Levels],
        on_written: Callable[[Levels], None],
        on_fault: Callable[[str, DaqFaultError], None],
        clock: Clock = MONOTONIC,
        open_channel: OpenChannel = plain_channel,
    ) -> None:
        self._config = config
        self._open_channel = open_channel
        self._levels = levels
        self._on_written = on_written
        self._on_fault = on_fault
        self._clock = clock
        self.running = False

    def run(self, thread: PollingThread) -> None:
        """Write when woken and at the minimum rate; write a last time when the thread ends."""
        while not thread.ending.is_set():
            with DaqSession(self._config, self._open_channel) as session:
                try:
                    self._write(session, thread)
                    return
                except DaqFaultError as error:
                    # Report before the tasks are cleared: that takes long if the host hangs.
                    self._on_fault(OUTPUTS, error)
                finally:
                    self.running = False
            thread.ending.wait(self._config.reopen_s)

    def _write(self, session: DaqSession, thread: PollingThread) -> None:
        write_volts = self._analogue(session)
        write_lines = self._digital(session)
        period_s = 1.0 / self._config.output_rate_hz
        written: NDArray[np.bool_] | None = None
        news = False
        while True:
            ending = thread.ending.is_set()
            levels = self._levels()
            with daq_errors():
                write_volts(levels.volts)
                # Lines seldom change: a new analogue value does not wait for them.
                if not news or written is None or (levels.high != written).any():
                    write_lines(levels.high)
                    written = levels.high
            self.running = True
            self._on_written(levels)
            if ending:
                return
            news = thread.wait(self._clock.now_s() + period_s)

    def _analogue(self, session: DaqSession) -> Callable[[Array], object]:
        from nidaqmx.stream_writers import AnalogMultiChannelWriter

        if not self._config.outputs:
            return lambda volts: None
        task: Task = session.task('analogue_outputs')
        for output in self._config.outputs:
            with daq_errors(output.channel):
                task.ao_channels.add_ao_voltage_chan(
                    output.channel, min_val=output.min_V, max_val=output.max_V
                )
        with daq_errors():
            writer = AnalogMultiChannelWriter(task.out_stream, auto_start=True)
            writer.verify_array_shape = False
        return lambda volts: writer.write_one_sample(volts, timeout=0.0)

    def _digital(self, session: DaqSession) -> Callable[[NDArray[np.bool_]], object]:
        from nidaqmx.constants import LineGrouping
        from nidaqmx.stream_writers import DigitalMultiChannelWriter

        if not self._config.lines:
            return lambda high: None
        task: Task = session.task('digital_outputs')
        for line in self._config.lines:
            with daq_errors(line.line):
                task.do_channels.add_do_chan(line.line, line_grouping=LineGrouping.CHAN_PER_LINE)
        with daq_errors():
            writer = DigitalMultiChannelWriter(task.out_stream, auto_start=True)
            writer.verify_array_shape = False
        return lambda high: writer.write_one_sample_one_line(high, timeout=0.0)
