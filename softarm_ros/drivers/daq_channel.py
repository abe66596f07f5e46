"""The channel of gRPC to a DAQ host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softarm_ros.drivers.daq_config import DaqHost

# A host that comes back is found within this [ms]; gRPC waits up to two minutes by itself.
_BACKOFF_MS = 200


def plain_channel(host: DaqHost) -> Any:
    """Return a channel over the network, not encrypted."""
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
