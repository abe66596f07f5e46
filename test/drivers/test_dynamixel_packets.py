"""Packets of Dynamixel protocol 2.0, against the manufacturer's library and line errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softarm_ros.drivers.dynamixel.packets import (
    BROADCAST,
    Instruction,
    Packet,
    PacketReader,
    encode,
)

ids = st.integers(0, 0xFC) | st.just(BROADCAST)
# Rich in bytes of a header.
contents = st.lists(st.sampled_from([0xFF, 0xFF, 0xFD, 0x00, 0x55, 0x7E]), max_size=60).map(bytes)
packets = st.builds(Packet, ids, st.sampled_from([*Instruction]), contents)


@given(packets, st.binary(max_size=20).filter(lambda data: b'\xff' not in data))
def test_packets_are_read_between_noise(packet, noise):
    reader = PacketReader()
    found = []
    for byte in noise + encode(packet) + noise + encode(packet):
        found += reader.feed(bytes((byte,)))
    assert found == [packet, packet]
    assert reader.corrupt == 0 and reader.skipped == 2 * len(noise)


@given(packets)
def test_header_occurs_only_once_in_a_packet(packet):
    assert encode(packet).count(b'\xff\xff\xfd\x00') == 1


@given(packets, st.data())
def test_packet_with_a_wrong_bit_is_rejected(packet, data):
    garbled = bytearray(encode(packet))
    at = data.draw(st.integers(0, 8 * len(garbled) - 1))
    garbled[at // 8] ^= 1 << at % 8
    assert PacketReader().feed(bytes(garbled)) == []


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_reader_recovers_after_any_bytes(pieces):
    reader = PacketReader()
    for piece in pieces:
        reader.feed(piece)
    reader.clear()
    # Earlier bytes cost at most one packet.
    ping = Packet(1, Instruction.PING)
    assert reader.feed(encode(ping) * 2)[-1] == ping


class Port:
    """A port as the library expects it, which returns given data."""

    is_using = False

    def __init__(self, data):
        self._data = data

    def readPort(self, length):
        taken, self._data = self._data[:length], self._data[length:]
        return list(taken)

    def isPacketTimeout(self):
        return not self._data


def library():
    return pytest.importorskip('dynamixel_sdk').PacketHandler(2.0)


@given(st.integers(0, 0xFC), contents)
def test_encoded_packets_match_the_manufacturers_library(servo, content):
    handler = library()
    raw = [0xFF, 0xFF, 0xFD, 0x00, servo, len(content) + 3, 0, Instruction.WRITE, *content, 0, 0]
    # Not by its txPacket, which in 4.1.0 drops the stuffing that it has made.
    sent = handler.addStuffing(raw)[:-2]
    crc = handler.updateCRC(0, sent, len(sent))
    packet = encode(Packet(servo, Instruction.WRITE, content))
    assert packet == bytes((*sent, crc & 0xFF, crc >> 8))


@given(st.integers(0, 0xFC), contents)
def test_manufacturers_library_reads_our_status_packets(servo, content):
    data = encode(Packet(servo, Instruction.STATUS, b'\x00' + content))
    packet, result = library().rxPacket(Port(data), False)
    assert result == 0
    length = packet[5] + 256 * packet[6]
    assert bytes(packet[9 : 9 + length - 4]) == content
