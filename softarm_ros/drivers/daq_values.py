"""Values of a DAQ for diagnostics."""

from __future__ import annotations

from softarm_ros.drivers.counters import Latency
from softarm_ros.drivers.daq import DaqDriver


def daq_values(daq: DaqDriver) -> dict[str, str]:
    """Return connection, ages, latencies, losses and state as text for people."""
    state, counts = daq.state(), daq.counts()
    host = daq.config.host
    return {
        'device': 'this computer' if host is None else f'{host.host}:{host.port}',
        'connected': str(state.reading or state.writing).lower(),
        'outputs_enabled': str(state.enabled).lower(),
        'age_ms': f'{1e3 * state.age_s:.1f}',
        'command_latency_ms': _percentiles(counts.command_latency),
        'read_age_ms': _percentiles(counts.read_age),
        'samples': str(counts.samples),
        'overruns': str(counts.overruns),
        'dropped_blocks': str(counts.dropped_blocks),
        'acquisitions': str(counts.starts),
        'commands_written': str(counts.commands - counts.superseded),
        'superseded': str(counts.superseded),
    }


def _percentiles(latency: Latency) -> str:
    return f'p50 {1e3 * latency.p50_s:.2f} p99 {1e3 * latency.p99_s:.2f}'
