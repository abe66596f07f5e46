"""Driver of an NI DAQ device: reads pressures and forces, writes valve voltages, in threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.counters import LatencyRecord
from softarm_ros.drivers.daq_channel import plain_channel
from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.drivers.daq_inputs import INPUTS, InputReader
from softarm_ros.drivers.daq_outputs import OUTPUTS, Levels, OutputWriter
from softarm_ros.drivers.daq_session import (
    OVERRUN,
    DaqFaultError,
    OpenChannel,
)
from softarm_ros.drivers.daq_state import DaqCounts, DaqState, SampleBlock
from softarm_ros.drivers.force_sensor import ForceSensor
from softarm_ros.drivers.polling import PollingThread
from softarm_ros.drivers.problems import (
    DriverError,
    Problem,
    ProblemLog,
    import_library,
    require_none,
)
from softarm_ros.drivers.sensor_watch import SensorWatch
from softarm_ros.geometry.arrays import Array

COMMAND = 'command'
WRENCH = 'wrench'
_KEPT_S = 5.0  # duration of the samples kept until the caller takes them


class DaqDriver:
    """
    Reads all inputs and writes all outputs of one device; the caller never waits for it.

    Outputs have their safe values until `enable`. After any problem they return to them until
    `reset` and `enable` are called, even if the device reconnects. Link problems from before the
    outputs were enabled (without outputs: before the first samples) are cleared when the link
    works. By default, the clock is the computer's and a host is reached over the network.

    Attributes
    ----------
    on_samples :
        Called by the reading thread after each block of samples, which `take_blocks` then returns.

    """

    def __init__(
        self,
        config: DaqConfig,
        clock: Clock = MONOTONIC,
        open_channel: OpenChannel = plain_channel,
    ) -> None:
        self.config = config
        self.clock = clock
        self.on_samples: Callable[[], object] = lambda: None
        self._inputs = InputReader(config, self._on_block, self._on_fault, clock, open_channel)
        self._outputs = OutputWriter(
            config, self._levels, self._on_written, self._on_fault, clock, open_channel
        )
        self._force = ForceSensor(config.force_sensor) if config.force_sensor else None
        self._watch = SensorWatch(config.inputs, config.open_after_s)
        outputs = config.outputs
        self._scale, self._zero, self._min_V, self._max_V = (
            np.array([getattr(output, name) for output in outputs], dtype=float)
            for name in ('scale', 'zero', 'min_V', 'max_V')
        )
        self._bounds = np.array([part.bounds for part in config.streamed]).reshape(-1, 2).T
        self._inverted = np.array([line.inverted for line in config.lines], dtype=bool)
        self._problems = ProblemLog()
        self._reading = PollingThread(
            'daq inputs',
            lambda thread: self._inputs.run(thread.ending),
            lambda error: self._on_failure('daq inputs', error),
            clock,
        )
        self._writing = PollingThread(
            'daq outputs',
            self._outputs.run,
            lambda error: self._on_failure('daq outputs', error),
            clock,
        )
        self._command_latency = LatencyRecord()
        self._read_age = LatencyRecord()

        self._lock = threading.Lock()
        self._used = False  # since the last reset; later link problems are latched
        self._values = np.full(len(config.inputs), np.nan)
        self._wrench = np.full(6, np.nan)
        self._stamp_s = -np.inf
        self._unread: deque[SampleBlock] = deque(maxlen=max(2, round(_KEPT_S / config.block_s)))
        self._enabled = False
        self._targets = np.array([min(max(0.0, o.low), o.high) for o in config.outputs])
        self._on = np.array([bool(line.safe) for line in config.lines], dtype=bool)
        self._written = np.full(len(config.outputs), np.nan)
        self._written_on = self._on.copy()
        self._streamed = [i for i, o in enumerate(config.outputs) if o.streamed]
        self._command_s = -np.inf  # of the latest streamed command
        self._unsent_s: float | None = None
        self._pending_s: float | None = None
        self._samples = self._blocks = self._overruns = self._dropped = 0
        self._commands = self._superseded = 0
        self._make_safe()

    # -- for the caller

    def start(self) -> None:
        """
        Start reading, and write the safe values until `enable`.

        Raises
        ------
        DriverError
            If nidaqmx, or for a remote host grpc, is not installed.

        """
        import_library('nidaqmx.stream_readers', 'nidaqmx.stream_writers')
        if self.config.host is not None:
            import_library('grpc', 'nidaqmx._grpc_interpreter')
        if self.config.input_channels:
            self._reading.start()
        if self.config.outputs or self.config.lines:
            self._writing.start()

    def close(self) -> None:
        """Write the safe values and release the device; may be called twice."""
        self.disable()
        self._writing.end()
        self._reading.close()
        self._writing.close()
        self._problems.end_lasting()

    def enable(self) -> None:
        """
        Let the outputs follow commands.

        Raises
        ------
        DriverError
            If there are problems (call `reset` first) or the device does not answer.

        """
        reading = self._inputs.running or not self.config.input_channels
        writing = self._outputs.running or not (self.config.outputs or self.config.lines)
        with self._lock:
            require_none('DAQ', self._problems)
            if not (reading and writing):
                raise DriverError('DAQ is not ready: it does not answer yet')
            self._used = True
            if not self._enabled:
                self._enabled, self._command_s = True, np.inf  # no command yet, so none is stale

    def disable(self) -> None:
        """Set all outputs to their safe values."""
        with self._lock:
            self._make_safe()
        self._writing.wake()

    def reset(self) -> None:
        """
        Clear all problems; those that persist are reported again.

        Outputs become safe, as after any problem. Without problems they do not change: a reset
        must not release a held arm.
        """
        if not self._problems:
            return
        self.disable()
        with self._lock:
            self._used = False
        self._problems.clear()

    def set_outputs(self, values: Sequence[float] | Array) -> str | None:
        """
        Set the SI values of all streamed outputs; return why they are refused, or None.

        Raises
        ------
        ValueError
            If the number of values is wrong, or a value is not finite or beyond its limits.

        """
        checked = self.checked(values)
        with self._lock:
            if not self._enabled:
                return 'DAQ outputs not enabled'
            if np.array_equal(self._targets[self._streamed], checked):
                self._command_s = self.clock.now_s()  # refreshes the command; no write needed
                return None
            self._targets[self._streamed] = checked
            self._command_s = self._note_command()
        self._writing.wake()
        return None

    def checked(self, values: Sequence[float] | Array) -> Array:
        """Return the SI values of all streamed outputs (m,); raise as `set_outputs`."""
        wanted, (least, most) = np.array(values, dtype=float), self._bounds
        if wanted.shape != least.shape:
            raise ValueError(f'{len(values)} output values; expected {len(least)}')
        if not ((wanted >= least) & (wanted <= most)).all():
            for part, value in zip(self.config.streamed, wanted.tolist()):
                part.check(value)
        return wanted

    def set_output(self, name: str, value: float) -> str | None:
        """Set the SI value of one output that is not streamed; otherwise as `set_outputs`."""
        index = _index('output', name, [output.name for output in self.config.outputs])
        output = self.config.outputs[index]
        if output.streamed:
            raise ValueError(f'output {name} is streamed: use set_outputs')
        checked = output.check(value)
        with self._lock:
            if not self._enabled:
                return 'DAQ outputs not enabled'
            self._targets[index] = checked
            self._note_command()
        self._writing.wake()
        return None

    def set_line(self, name: str, on: bool) -> str | None:
        """Switch one line; return why it is refused, or None."""
        index = _index('line', name, [line.name for line in self.config.lines])
        with self._lock:
            if not self._enabled:
                return 'DAQ outputs not enabled'
            self._on[index] = bool(on)
            self._note_command()
        self._writing.wake()
        return None

    def tare(self) -> None:
        """Define the mean force of the next `tare_s` seconds as zero."""
        if self._force is None:
            raise DriverError('there is no force sensor to tare')
        if not self._inputs.running:  # later samples may be of another load
            raise DriverError('the DAQ sends no samples; call tare again when it does')
        with self._lock:
            self._force.tare(max(1, round(self.config.tare_s * self.config.sample_rate_hz)))

    @property
    def bias_V(self) -> Array:
        """Gauge voltages without load (6,), for the rig file."""
        if self._force is None:
            raise DriverError('there is no force sensor')
        with self._lock:
            return self._force.bias_V

    @property
    def taring(self) -> bool:
        """Whether a bias is being measured."""
        with self._lock:
            return self._force is not None and self._force.taring

    def take_blocks(self) -> list[SampleBlock]:
        """Return all samples since the last call, at most those of the last five seconds."""
        with self._lock:
            blocks = list(self._unread)
            self._unread.clear()
        return blocks

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems since the last reset."""
        return self._problems.all()

    @property
    def enabled(self) -> bool:
        """Whether the outputs follow commands."""
        return self._enabled

    @property
    def values(self) -> Array:
        """Means over the latest block (inputs,), SI; NaN before the first."""
        with self._lock:
            return self._values.copy()

    def state(self) -> DaqState:
        """Return the current values, outputs, link state and problems."""
        problems = self._problems.all()
        with self._lock:
            return DaqState(
                values=self._values.copy(),
                wrench=self._wrench.copy(),
                stamp_s=self._stamp_s,
                age_s=self.clock.now_s() - self._stamp_s,
                outputs=self._written.copy(),
                lines=tuple(map(bool, self._written_on)),
                reading=self._inputs.running,
                writing=self._outputs.running,
                enabled=self._enabled,
                problems=problems,
            )

    def counts(self) -> DaqCounts:
        """Return latency and loss since the driver was created."""
        with self._lock:
            return DaqCounts(
                self._samples,
                self._blocks,
                self._overruns,
                self._inputs.starts,
                self._dropped,
                self._commands,
                self._superseded,
                self._command_latency.summary(),
                self._read_age.summary(),
            )

    # -- under the lock

    def _note_command(self) -> float:
        now = self.clock.now_s()
        self._commands += 1
        if self._unsent_s is not None:
            self._superseded += 1
        self._unsent_s = now
        return now

    def _make_safe(self) -> None:
        self._enabled = False
        self._unsent_s = None
        for i, output in enumerate(self.config.outputs):
            if output.safe is not None:
                self._targets[i] = output.safe
        for i, line in enumerate(self.config.lines):
            if line.safe is not None:
                self._on[i] = line.safe

    # -- in the threads

    def _on_failure(self, name: str, error: BaseException) -> None:
        self._problems.report_failure(name, error, self.clock.now_s())
        self.disable()

    def _on_block(self, stamps: Array, volts: Array) -> None:
        config = self.config
        n = len(config.inputs)
        values = self._watch.values(volts[:n])
        duration_s = stamps.size / config.sample_rate_hz
        for name, code, text in self._watch.look(volts[:n], duration_s):
            self._trouble(name, code, text, outside=code != 'limit')
        wrench = None
        overload = None
        with self._lock:
            if self._force is not None:
                wrench = self._force.wrench(volts[n:])
                overload = self._force.overload(volts[n:], wrench)
                self._wrench = wrench.mean(axis=1)
            self._values = values.mean(axis=1)
            self._stamp_s = float(stamps[-1])
            if len(self._unread) == self._unread.maxlen:
                self._dropped += 1
            self._unread.append(SampleBlock(stamps, values, wrench))
            self._samples += stamps.size
            self._blocks += 1
            self._used = self._used or not (config.outputs or config.lines)
        self._problems.end_passing(INPUTS)
        self._read_age.add(self.clock.now_s() - float(stamps[-1]))
        if overload is not None:
            self._trouble(WRENCH, 'overload', overload)
        self.on_samples()

    def _levels(self) -> Levels:
        config = self.config
        now = self.clock.now_s()
        with self._lock:
            stale = self._enabled and now - self._command_s > config.command_timeout_s
        if stale:
            limit_ms = 1e3 * config.command_timeout_s
            self._trouble(COMMAND, 'stale', f'no command for {limit_ms:.0f} ms')
        with self._lock:
            volts = (self._targets - self._zero) / self._scale
            self._pending_s, self._unsent_s = self._unsent_s, None
            return Levels(
                np.minimum(np.maximum(volts, self._min_V), self._max_V), self._on ^ self._inverted
            )

    def _on_written(self, levels: Levels) -> None:
        with self._lock:
            self._written = self._scale * levels.volts + self._zero
            self._written_on = levels.high ^ self._inverted
            pending, self._pending_s = self._pending_s, None
        self._problems.end_passing(OUTPUTS)
        if pending is not None:
            self._command_latency.add(self.clock.now_s() - pending)

    def _on_fault(self, source: str, error: DaqFaultError) -> None:
        if error.code == OVERRUN:
            with self._lock:
                self._overruns += 1
        with self._lock:
            passing = not self._used
        self._trouble(source, error.code, error.text, passing=passing, outside=error.gone)

    def _trouble(
        self, source: str, code: str, text: str, *, passing: bool = False, outside: bool = False
    ) -> None:
        """Report a problem and set the outputs to their safe values."""
        now = self.clock.now_s()
        self._problems.report(source, code, text, now, passing=passing, outside=outside)
        with self._lock:
            if not self._enabled:
                return
            self._make_safe()
        self._writing.wake()


def _index(what: str, name: str, names: list[str]) -> int:
    if name not in names:
        raise ValueError(f'no {what} {name!r}; there are {", ".join(names) or "none"}')
    return names.index(name)
