"""
The device's side of Modbus TCP: reading and writing registers, frames, client connections.

Follows the Modbus Application Protocol Specification V1.1b3 and the Messaging on TCP/IP
Implementation Guide V1.0b: transaction, 0, length (two bytes each), unit, then function and data.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Protocol

READ_HOLDING, READ_INPUT, WRITE_ONE, WRITE_MANY = 3, 4, 6, 16
_TABLES = {READ_HOLDING: 'holding', READ_INPUT: 'input'}
_MOST_READ, _MOST_WRITTEN = 125, 123  # registers in one request
_HEADER = struct.Struct('>HHHB')
_PLACE = struct.Struct('>HH')
_LEAST, _MOST = 2, 254  # value of length: number of bytes in unit, function and data
_REFUSED = 0x80  # added to the function


class Refusal(IntEnum):
    """Exception codes."""

    ILLEGAL_FUNCTION = 1
    ILLEGAL_ADDRESS = 2
    ILLEGAL_VALUE = 3
    DEVICE_FAILURE = 4


class Registers(Protocol):
    """The registers of all units, for reading and writing."""

    def __call__(
        self, unit: int, table: str, address: int, count: int, words: Sequence[int] | None
    ) -> Sequence[int] | int | None:
        """
        Return `count` words of a table (`holding` or `input`) from an address on.

        If `words` are given, write them there first. Returns an exception code instead to refuse
        the request, or None if no unit answers.
        """


def answer(unit: int, request: bytes, registers: Registers) -> bytes | None:
    """Return a unit's answer to function and data of a request; None if it does not answer."""
    function, found = request[0], _carried_out(unit, request, registers)
    if found is None:
        return None
    if isinstance(found, int):
        return bytes((function | _REFUSED, found))
    if function in _TABLES:
        return struct.pack(f'>BB{len(found)}H', function, 2 * len(found), *found)
    return request[:5]  # function, address, and the word written or the number of words


def _carried_out(unit: int, request: bytes, registers: Registers) -> Sequence[int] | int | None:
    function = request[0]
    if function not in (*_TABLES, WRITE_ONE, WRITE_MANY):
        return Refusal.ILLEGAL_FUNCTION
    if len(request) < 5 or (function != WRITE_MANY and len(request) > 5):
        return Refusal.ILLEGAL_VALUE
    address, count = _PLACE.unpack_from(request, 1)
    if function in _TABLES:
        if not 1 <= count <= _MOST_READ:
            return Refusal.ILLEGAL_VALUE
        return registers(unit, _TABLES[function], address, count, None)
    if function == WRITE_ONE:
        return registers(unit, 'holding', address, 1, (count,))
    size = 2 * count
    if not (1 <= count <= _MOST_WRITTEN and len(request) == 6 + size and request[5] == size):
        return Refusal.ILLEGAL_VALUE
    return registers(unit, 'holding', address, count, struct.unpack_from(f'>{count}H', request, 6))


class ModbusServer:
    """
    Answers any number of clients on a port of 127.0.0.1, in the event loop that starts it.

    Parameters
    ----------
    registers
        The registers to serve.
    send
        Receives the write function and every answer, to send it at once, later, or never.

    """

    def __init__(
        self,
        registers: Registers,
        send: Callable[[Callable[[bytes], None], bytes], None],
    ) -> None:
        self.registers, self.send = registers, send
        self.connections: set[asyncio.Transport] = set()
        self.listening = True
        self._server: asyncio.Server | None = None

    async def start(self, port: int) -> int:
        """Listen on a port (0: any free one); return its number."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), '127.0.0.1', port)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Reset every connection and stop listening."""
        self.listening = False
        assert self._server is not None
        # asyncio loses a connection that is being accepted while its server is closed.
        for listening in self._server.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())
        await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.abort()
        self._server.close()
        await asyncio.sleep(0.01)  # lets the sockets close


class _Connection(asyncio.Protocol):
    """The connection of one client."""

    def __init__(self, server: ModbusServer) -> None:
        self._server = server
        self._received = b''
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections.add(transport)
        if not self._server.listening:  # accepted just before the server was stopped
            transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._server.connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= _HEADER.size:
            transaction, protocol, length, unit = _HEADER.unpack_from(self._received)
            if protocol != 0 or not _LEAST <= length <= _MOST:
                self._transport.abort()  # the start of the next frame is unknown
                return
            end = _HEADER.size - 1 + length
            if len(self._received) < end:
                return
            request, self._received = self._received[_HEADER.size : end], self._received[end:]
            found = answer(unit, request, self._server.registers)
            if found is not None:
                header = _HEADER.pack(transaction, 0, 1 + len(found), unit)
                self._server.send(self._write, header + found)

    def _write(self, frame: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(frame)
