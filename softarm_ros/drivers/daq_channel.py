"""The gRPC channel to a DAQ host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softarm_ros.drivers.daq_config import DaqHost

# Longest wait for a reconnect [ms]; by default gRPC waits up to two minutes.
_BACKOFF_MS = 200


def plain_channel(host: DaqHost) -> Any:
    """Return an unencrypted channel over the network."""
    import grpc

    return grpc.insecure_channel(
        f'{host.host}:{host.port}',
        options=(
            ('grpc.use_local_subchannel_pool', 1),
            ('grpc.initial_reconnect_backoff_ms', _BACKOFF_MS),
            ('grpc.max_reconnect_backoff_ms', _BACKOFF_MS),
            ('grpc.enable_retries', 0),
        ),
    )
