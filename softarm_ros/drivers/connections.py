"""Ports, network and clock through which devices are reached: the computer's, or a test's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.daq_channel import plain_channel
from softarm_ros.drivers.serial_port import SerialPort

if TYPE_CHECKING:
    from softarm_ros.drivers.daq_session import OpenChannel
    from softarm_ros.drivers.modbus_link import ClientMaker
    from softarm_ros.drivers.serial_board import OpenPort


@dataclass(frozen=True)
class Connections:
    """
    Functions that open links to devices, and the clock of all drivers that use them.

    Attributes
    ----------
    clock :
        Clock for deadlines, time-outs and periods.
    open_port :
        Opens a serial port at a speed.
    make_client :
        Makes a Modbus TCP client; None for that of pymodbus.
    open_channel :
        Opens a channel to a DAQ host.

    """

    clock: Clock = MONOTONIC
    open_port: OpenPort = SerialPort
    make_client: ClientMaker | None = None
    open_channel: OpenChannel = plain_channel


OF_THIS_COMPUTER = Connections()
