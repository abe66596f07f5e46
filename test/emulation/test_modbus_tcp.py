"""Frames of Modbus TCP: examples of the specification, and invalid frames."""

import asyncio
import socket

import pytest

from softarm_ros.emulation.modbus_tcp import ModbusServer, Refusal, answer


class Memory:
    """Registers at all addresses of unit 1; records the requests."""

    def __init__(self, words=()):
        self.words = dict(words)
        self.asked = []

    def __call__(self, unit, table, address, count, words):
        self.asked.append((unit, table, address, count))
        if unit == 9:
            return None
        if unit != 1:
            return Refusal.ILLEGAL_ADDRESS
        addresses = range(address, address + count)
        self.words.update(zip(addresses, words or ()))
        return [self.words.get(k, 0) for k in addresses]


def said(request, registers=None, unit=1):
    found = answer(unit, bytes.fromhex(request), registers or Memory())
    return None if found is None else found.hex(' ')


def test_examples_of_the_specification_are_answered():
    """Sections 6.3, 6.4, 6.6 and 6.12."""
    holding = Memory({0x6B: 0x022B, 0x6D: 0x0064})
    assert said('03 006B 0003', holding) == '03 06 02 2b 00 00 00 64'
    assert said('04 0008 0001', Memory({8: 10})) == '04 02 00 0a'
    written = Memory()
    assert said('06 0001 0003', written) == '06 00 01 00 03'
    assert said('10 0001 0002 04 000A 0102', written) == '10 00 01 00 02'
    assert written.words == {1: 10, 2: 0x0102}
    assert [table for _, table, _, _ in written.asked] == ['holding', 'holding']


@pytest.mark.parametrize('function', [1, 2, 5, 7, 15, 22, 23, 43])
def test_unsupported_functions_are_refused(function):
    assert said(f'{function:02x} 0000 0001') == f'{function | 0x80:02x} 01'


@pytest.mark.parametrize(
    'request_',
    [
        '03 0000 0000',
        '03 0000 007E',  # 126 registers
        '04 0000',
        '06 0000 0001 00',
        '10 0000 0001',
        '10 0000 0000 00',
        '10 0000 007C F8' + 248 * '00',  # 124 registers
        '10 0000 0002 02 0001',  # two announced, one sent
        '10 0000 0002 04 0001',
        '10 0000 0001 02 0001 0002',
    ],
)
def test_wrong_counts_are_refused_without_register_access(request_):
    memory = Memory()
    assert said(request_, memory) == f'{int(request_[:2], 16) | 0x80:02x} 03'
    assert memory.asked == []


def test_unknown_units_refuse_or_do_not_answer():
    assert said('03 0000 0001', unit=2) == '83 02'
    assert said('03 0000 0001', unit=9) is None
    assert len(answer(1, bytes.fromhex('03 0000 007D'), Memory())) == 252


class Served:
    """A server in an event loop, and one client that sends raw bytes."""

    def __init__(self):
        self.server = ModbusServer(Memory({5: 0xABCD}), lambda write, frame: write(frame))

    async def exchange(self, pieces, answers):
        port = await self.server.start(0)
        reader, writer = await asyncio.open_connection('127.0.0.1', port)
        writer.get_extra_info('socket').setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.005)  # pieces arrive apart; the answers do not depend on it
        try:
            found = await asyncio.wait_for(reader.readexactly(answers), 5.0)
        except (asyncio.IncompleteReadError, ConnectionError):
            found = None
        await asyncio.sleep(0)  # the end of a connection is handled in another turn of the loop
        connections = len(self.server.connections)
        writer.close()
        await self.server.stop()
        return found, connections


READ = bytes.fromhex('0007 0000 0006 01 03 0005 0001')
WORD = bytes.fromhex('0007 0000 0005 01 03 02 abcd')


@pytest.mark.parametrize(
    'pieces',
    [[READ, READ], [READ + READ], [READ[:3], READ[3:9], READ[9:] + READ[:7], READ[7:]]],
)
def test_frames_are_answered_for_any_splitting_of_the_stream(pieces):
    found, connections = asyncio.run(Served().exchange(pieces, 2 * len(WORD)))
    assert found == 2 * WORD
    assert connections == 1


@pytest.mark.parametrize(
    'wrong',
    [
        '0007 0001 0006 01 03 0005 0001',  # another protocol
        '0007 0000 0001 01 03 0005 0001',  # no function
        '0007 0000 00FF 01 03 0005 0001',  # longer than any frame
    ],
)
def test_invalid_frame_ends_the_connection(wrong):
    found, connections = asyncio.run(Served().exchange([READ, bytes.fromhex(wrong)], 100))
    assert found is None
    assert connections == 0
