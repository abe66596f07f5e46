"""Latency and loss on the serial line of a board."""

from __future__ import annotations

from dataclasses import dataclass

from softarm_ros.drivers.counters import Latency, LatencyRecord
from softarm_ros.drivers.frames import ReceiveCounters
from softarm_ros.drivers.messages import Counters


@dataclass(frozen=True)
class SerialCounts:
    """
    Counts and latencies of a line since the driver started.

    Attributes
    ----------
    connections, reboots :
        Handshakes; detected restarts of the board.
    sent, skipped :
        Frames written to the port; frames dropped because older ones waited for the line.
    received :
        Frames of the board that were valid, and those lost, malformed or corrupt.
    unknown :
        Valid frames whose content is not part of this protocol.
    unanswered :
        Requests that were repeated or given up.
    board :
        The board's own counters since its start, as last read; None before.
    round_trip :
        Round-trip time of pings.
    command_latency :
        Time from sending a control frame to the arrival of a state that confirms it. It includes
        up to one period of the states, 10 or 20 ms.
    cycle_delay :
        Delay of the starts of cycles.

    """

    connections: int
    reboots: int
    sent: int
    skipped: int
    received: ReceiveCounters
    unknown: int
    unanswered: int
    board: Counters | None
    round_trip: Latency
    command_latency: Latency
    cycle_delay: Latency


class SerialCounter:
    """Counter of a line; the thread that serves it writes, any thread may read."""

    def __init__(self) -> None:
        self.connections = 0
        self.reboots = 0
        self.sent = 0
        self.skipped = 0
        self.received = ReceiveCounters()
        self.unknown = 0
        self.unanswered = 0
        self.board: Counters | None = None
        self.round_trip = LatencyRecord()
        self.command_latency = LatencyRecord()
        self.cycle_delay = LatencyRecord()

    def summary(self) -> SerialCounts:
        """Return the counts now."""
        got = self.received
        return SerialCounts(
            self.connections,
            self.reboots,
            self.sent,
            self.skipped,
            ReceiveCounters(got.frames, got.lost, got.malformed, got.corrupt),
            self.unknown,
            self.unanswered,
            self.board,
            self.round_trip.summary(),
            self.command_latency.summary(),
            self.cycle_delay.summary(),
        )

    def values(self) -> dict[str, str]:
        """Return the counts as text for diagnostics."""
        counts = self.summary()
        values = {
            'connections': str(counts.connections),
            'reboots': str(counts.reboots),
            'frames_sent': str(counts.sent),
            'frames_skipped': str(counts.skipped),
            'states_lost': str(counts.received.lost),
            'frames_corrupt': str(counts.received.corrupt + counts.received.malformed),
            'unanswered': str(counts.unanswered),
            'round_trip_ms': counts.round_trip.text,
            'command_latency_ms': counts.command_latency.text,
            'cycle_delay_ms': counts.cycle_delay.text,
        }
        if counts.board is not None:
            values['board_frames_lost'] = str(counts.board.lost)
            values['board_frames_corrupt'] = str(counts.board.corrupt + counts.board.malformed)
            values['board_refused'] = str(counts.board.refused)
            values['board_states_skipped'] = str(counts.board.skipped_states)
            values['board_write_errors'] = str(counts.board.write_errors)
        return values
