"""One emulated NI DAQ device, without a network: terminals, converters, clock and tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.geometry.arrays import Array

# DAQmx error codes, named as in nidaqmx.error_codes.
SAMPLES_NOT_YET_AVAILABLE = -200284
SAMPLES_NO_LONGER_AVAILABLE = -200279
INVALID_ATTRIBUTE_VALUE = -200077
INVALID_DEVICE_ID = -200220
PHYSICAL_CHAN_DOES_NOT_EXIST = -200170
RESOURCE_RESERVED = -50103
INVALID_TASK = -200088
DUPLICATE_TASK = -200089
INVALID_AO_DATA_WRITE = -200561
DEVICE_CANNOT_BE_ACCESSED = -201003

ERROR_TEXTS = {
    SAMPLES_NOT_YET_AVAILABLE: 'Some or all of the samples requested have not yet been acquired.',
    SAMPLES_NO_LONGER_AVAILABLE: 'The application is not able to keep up with the hardware '
    'acquisition.',
    INVALID_ATTRIBUTE_VALUE: 'Requested value is not a supported value for this property.',
    INVALID_DEVICE_ID: 'Device identifier is invalid.',
    PHYSICAL_CHAN_DOES_NOT_EXIST: 'Physical channel specified does not exist on this device.',
    RESOURCE_RESERVED: 'The specified resource is reserved.',
    INVALID_TASK: 'Task specified is invalid or does not exist.',
    DUPLICATE_TASK: 'Task name conflicts with an existing task name.',
    INVALID_AO_DATA_WRITE: 'Attempted writing analog data that is too large or too small.',
    DEVICE_CANNOT_BE_ACCESSED: 'Device cannot be accessed. Possible causes: device is no longer '
    'present in the system, is not powered, or is powered but was temporarily without power.',
}

_RANGES_V = (0.2, 1.0, 5.0, 10.0)  # converter ranges of the USB-6341
_BITS = 16
_NOISE_V = 3e-4
_LEAST_WAIT_S = 1e-3  # of a reader, while the sample clock is stalled
_LATER = 1e-3  # share of a sample, so that rounding does not exclude the last one


class DaqmxError(Exception):
    """A DAQmx error; `code` is negative."""

    def __init__(self, code: int) -> None:
        super().__init__(ERROR_TEXTS.get(code, 'Unknown error.'))
        self.code = code


@dataclass
class DaqFaults:
    """
    Faults of the device; may be set at any time.

    Attributes
    ----------
    open_V :
        These physical channels are disconnected and drift to this voltage.
    stuck :
        These physical channels repeat their present voltage, without noise.
    stall :
        The sample clock stops: reads time out.
    gone :
        The device is unplugged: every call returns -201003.

    """

    open_V: dict[str, float] = field(default_factory=dict)
    stuck: set[str] = field(default_factory=set)
    stall: bool = False
    gone: bool = False


@dataclass
class Channel:
    """One virtual channel of a task."""

    physical: str
    min_V: float
    max_V: float

    @property
    def range_V(self) -> float:
        """The smallest range of the converter that includes min and max."""
        needed = max(abs(self.min_V), abs(self.max_V))
        return next((r for r in _RANGES_V if r >= needed), _RANGES_V[-1])


class DaqTask:
    """A DAQmx task: channels of one kind, with a clock and a buffer for inputs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind = ''
        self.channels: list[Channel] = []
        self.rate_hz = 0.0
        self.capacity = 0
        self.running = False
        self.began_s = 0.0
        self.produced = 0
        self.read = 0
        self.buffer = np.empty((0, 0))
        self.sources = np.empty(0, dtype=int)  # index of each channel in the device's inputs
        self.step_V = np.empty((0, 1))  # of the converter
        self.low_V = np.empty((0, 1))  # its ends
        self.high_V = np.empty((0, 1))
        self.overrun = False

    @property
    def channel_names(self) -> str:
        """Names of the channels as DAQmx lists them."""
        return ', '.join(channel.physical for channel in self.channels)


class EmulatedDaqDevice:
    """
    The terminals of one device and its tasks; thread-safe.

    `source` returns the voltage at each input (in the order of the rig's `input_channels`) and is
    called at each tick of `advance`; `sink` receives the volts of all outputs and the levels of
    all lines when they change. Outputs keep their last value, even if the host ends.
    """

    def __init__(
        self,
        config: DaqConfig,
        source: Callable[[], Array],
        sink: Callable[[Array, NDArray[np.bool_]], None],
        seed: int,
        clock: Clock = MONOTONIC,
    ) -> None:
        self._clock = clock
        self.faults = DaqFaults()
        self.inputs = list(config.input_channels)
        self.outputs = [output.channel for output in config.outputs]
        self.lines = [line.line for line in config.lines]
        self.output_V = np.zeros(len(self.outputs))
        self.line_levels = np.zeros(len(self.lines), dtype=bool)
        self.changed = clock.condition()
        self.tasks: dict[int, DaqTask] = {}
        self._source, self._sink = source, sink
        self._rng = np.random.default_rng(seed)
        self._next_id = 1
        self._last_V = np.zeros(len(self.inputs))

    # -- tasks

    def create(self, name: str) -> int:
        """Return the id of a new task."""
        with self.changed:
            if name and any(task.name == name for task in self.tasks.values()):
                raise DaqmxError(DUPLICATE_TASK)
            number, self._next_id = self._next_id, self._next_id + 1
            self.tasks[number] = DaqTask(name or f'_unnamedTask<{number}>')
            return number

    def find(self, name: str) -> int | None:
        """Return the id of the task with this name, or None."""
        with self.changed:
            return next((i for i, task in self.tasks.items() if task.name == name), None)

    def task(self, number: int) -> DaqTask:
        """
        Return a task; raises DaqmxError without it, or without the device of its channels.

        The host creates and describes a task without channels even if the device is gone.
        """
        found = self.tasks.get(number)
        if self.faults.gone and (found is None or found.channels):
            raise DaqmxError(DEVICE_CANNOT_BE_ACCESSED)
        if found is None:
            raise DaqmxError(INVALID_TASK)
        return found

    def clear(self, number: int) -> None:
        """Delete a task."""
        with self.changed:
            if self.tasks.pop(number, None) is None:
                raise DaqmxError(INVALID_TASK)
            self.changed.notify_all()

    def clear_all(self) -> None:
        """Delete all tasks, as when the process that owns them dies."""
        with self.changed:
            self.tasks.clear()
            self.changed.notify_all()

    def add(self, number: int, kind: str, physical: str, min_V: float, max_V: float) -> None:
        """Add one channel to a task; kind is 'ai', 'ao' or 'do'."""
        task = self.task(number)
        if self.faults.gone:
            raise DaqmxError(DEVICE_CANNOT_BE_ACCESSED)
        known = {'ai': self.inputs, 'ao': self.outputs, 'do': self.lines}[kind]
        if physical not in known:
            devices = {c.split('/')[0] for c in self.inputs + self.outputs + self.lines}
            present = physical.split('/')[0] in devices
            raise DaqmxError(PHYSICAL_CHAN_DOES_NOT_EXIST if present else INVALID_DEVICE_ID)
        if kind != 'do' and not -10.0 <= min_V < max_V <= 10.0:
            raise DaqmxError(INVALID_ATTRIBUTE_VALUE)
        with self.changed:
            task.kind = kind
            task.channels.append(Channel(physical, min_V, max_V))

    def clock(self, number: int, rate_hz: float, samples: int) -> None:
        """Set the sample clock and the buffer of an input task."""
        task = self.task(number)
        if not 0.0 < rate_hz <= 500e3:
            raise DaqmxError(INVALID_ATTRIBUTE_VALUE)
        with self.changed:
            task.rate_hz, task.capacity = rate_hz, samples

    def start(self, number: int) -> None:
        """Start a task; only one task of each kind may run."""
        task = self.task(number)
        with self.changed:
            if any(t.running and t.kind == task.kind for t in self.tasks.values() if t != task):
                raise DaqmxError(RESOURCE_RESERVED)
            task.running, task.overrun = True, False
            task.began_s, task.produced, task.read = self._clock.now_s(), 0, 0
            task.buffer = np.zeros((len(task.channels), max(task.capacity, 1)))
            if task.kind == 'ai':
                task.sources = np.array([self.inputs.index(c.physical) for c in task.channels])
                range_V = np.array([[c.range_V] for c in task.channels])
                task.step_V = 2.0 * range_V / 2**_BITS
                task.low_V, task.high_V = -range_V, range_V - task.step_V

    def stop(self, number: int) -> None:
        """Stop a task."""
        task = self.task(number)
        with self.changed:
            task.running = False
            self.changed.notify_all()

    # -- inputs

    def advance(self) -> None:
        """Acquire all samples that are due, at the present voltages: call before they change."""
        at_terminals = np.asarray(self._source(), dtype=float)
        if at_terminals.shape != (len(self.inputs),):
            raise ValueError(
                f'source gave shape {at_terminals.shape}, expected ({len(self.inputs)},)'
            )
        now = self._clock.now_s()
        with self.changed:
            if self.faults.stuck or self.faults.open_V:
                self._apply_faults(at_terminals)
            self._last_V = at_terminals
            overrun = False
            for task in self.tasks.values():
                if task.running and task.kind == 'ai':
                    self._sample(task, now, at_terminals)
                overrun = overrun or task.overrun
            if overrun:
                self.changed.notify_all()

    def _apply_faults(self, at_terminals: Array) -> None:
        for i, channel in enumerate(self.inputs):
            if channel in self.faults.stuck:
                at_terminals[i] = self._last_V[i]
            elif channel in self.faults.open_V:
                at_terminals[i] = self.faults.open_V[channel]

    def _sample(self, task: DaqTask, now: float, volts: Array) -> None:
        due = int((now - task.began_s) * task.rate_hz) + 1 - task.produced
        if self.faults.stall:
            task.began_s += max(due, 0) / task.rate_hz
            return
        if due <= 0:
            return
        if task.produced + due - task.read > task.capacity:
            task.overrun = True
        count = min(due, task.capacity)
        samples = self._rng.standard_normal((len(task.channels), count))
        samples *= _NOISE_V
        if self.faults.stuck:
            stuck = [channel.physical in self.faults.stuck for channel in task.channels]
            samples[stuck] = 0.0
        samples += volts.take(task.sources)[:, None]
        samples /= task.step_V
        np.rint(samples, out=samples)
        samples *= task.step_V
        np.maximum(samples, task.low_V, out=samples)
        np.minimum(samples, task.high_V, out=samples)
        first = (task.produced + due - count) % task.capacity
        before = min(count, task.capacity - first)  # the buffer's end
        task.buffer[:, first : first + before] = samples[:, :before]
        if before < count:
            task.buffer[:, : count - before] = samples[:, before:]
        task.produced += due

    def take(self, number: int, count: int, timeout_s: float) -> Array:
        """
        Return the next samples of a task (channels, count).

        Raises
        ------
        DaqmxError
            -200284 if they do not arrive in time, -200279 if unread samples were overwritten.

        """
        task = self.task(number)
        end = self._clock.now_s() + timeout_s
        with self.changed:
            if not task.running:
                raise DaqmxError(INVALID_TASK)
            while task.produced - task.read < count and not task.overrun:
                now = self._clock.now_s()
                if now >= end:
                    raise DaqmxError(SAMPLES_NOT_YET_AVAILABLE)
                # Wait until the last of them is due, not until each tick of the sample clock.
                due_s = task.began_s + (task.read + count - 1 + _LATER) / task.rate_hz
                self.changed.wait(min(max(due_s - now, _LEAST_WAIT_S), end - now))
                if self._clock.now_s() >= due_s:
                    self.advance()
                if number not in self.tasks or not task.running:
                    raise DaqmxError(INVALID_TASK)
                if self.faults.gone:
                    raise DaqmxError(DEVICE_CANNOT_BE_ACCESSED)
            if task.overrun:
                raise DaqmxError(SAMPLES_NO_LONGER_AVAILABLE)
            first = task.read % task.capacity
            task.read += count
            samples: Array = task.buffer[:, first : first + count].copy()
            missing = count - samples.shape[1]  # from the buffer's beginning
            if missing:
                samples = np.hstack([samples, task.buffer[:, :missing]])
            return samples

    def overrun(self) -> None:
        """Overwrite samples in every running acquisition."""
        with self.changed:
            for task in self.tasks.values():
                task.overrun = task.overrun or (task.running and task.kind == 'ai')
            self.changed.notify_all()

    # -- outputs

    def put_volts(self, number: int, volts: Array) -> None:
        """Write one sample to each channel of an output task."""
        task = self._output_task(number, 'ao', len(volts))
        for channel, value in zip(task.channels, volts):
            if not channel.min_V - 1e-9 <= value <= channel.max_V + 1e-9:
                raise DaqmxError(INVALID_AO_DATA_WRITE)
        with self.changed:
            for channel, value in zip(task.channels, volts):
                step = 2.0 * channel.range_V / 2**_BITS
                self.output_V[self.outputs.index(channel.physical)] = round(value / step) * step
        self._tell()

    def put_levels(self, number: int, levels: NDArray[np.bool_]) -> None:
        """Write one level to each line of an output task."""
        task = self._output_task(number, 'do', len(levels))
        with self.changed:
            for channel, level in zip(task.channels, levels):
                self.line_levels[self.lines.index(channel.physical)] = level
        self._tell()

    def _output_task(self, number: int, kind: str, count: int) -> DaqTask:
        task = self.task(number)
        if task.kind != kind or len(task.channels) != count:
            raise DaqmxError(INVALID_TASK)
        if not task.running:
            self.start(number)
        return task

    def _tell(self) -> None:
        with self.changed:
            volts, levels = self.output_V.copy(), self.line_levels.copy()
        self._sink(volts, levels)
