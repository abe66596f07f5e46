"""
Corrupts packets of a protocol: flips bits; removes, inserts, repeats bytes; replaces numbers.

As a program it does long runs: `python test/perception/fuzz_packets.py natnet --count 1000000`.
"""

from __future__ import annotations

import argparse
import struct
import time
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

# Extreme floats and integers: nan, infinity, huge counts, minus one.
EDGES = [
    struct.pack('<f', value) for value in (np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-40, 0.0)
] + [struct.pack('<I', value) for value in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000, 65_536)]


def garbled(random: np.random.Generator, data: bytes) -> bytes:
    """Return a packet with one to four corruptions."""
    bits = bytearray(data)
    for _ in range(random.integers(1, 5)):
        if not bits:
            break
        at = int(random.integers(len(bits)))
        what = random.integers(6)
        if what == 0:
            bits[at] ^= 1 << int(random.integers(8))
        elif what == 1:
            bits[at] = int(random.integers(256))
        elif what == 2:
            del bits[at : at + int(random.integers(1, 64))]
        elif what == 3:
            bits[at:at] = random.bytes(int(random.integers(1, 64)))
        elif what == 4:
            edge = EDGES[int(random.integers(len(EDGES)))]
            bits[at : at + 4] = edge
        else:
            bits[at:at] = bits[at : at + int(random.integers(1, 128))]
    return bytes(bits)


def fuzz(
    packets: Sequence[bytes],
    read: Callable[[bytes], str],
    count: int,
    seed: int,
    slow_s: float = 1.0,
) -> Counter[str]:
    """Count the results of `read` on garbled packets; AssertionError if one is slow."""
    random = np.random.default_rng(seed)
    made: Counter[str] = Counter()
    for _ in range(count):
        data = garbled(random, packets[int(random.integers(len(packets)))])
        began = time.process_time()
        made[read(data)] += 1
        took = time.process_time() - began
        assert took < slow_s, f'{took:.1f} s for {data.hex()}'
    return made


if __name__ == '__main__':
    from fuzz_cases import CASES

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('protocol', nargs='*', default=list(CASES), metavar='PROTOCOL')
    parser.add_argument('--count', type=int, default=1_000_000)
    options = parser.parse_args()
    unknown = [name for name in options.protocol if name not in CASES]
    if unknown:
        parser.error(f'{unknown[0]} is no PROTOCOL: expected {", ".join(CASES)}')
    for name in options.protocol:
        packets, read = CASES[name]()
        print(name, dict(fuzz(packets, read, options.count, 0)), flush=True)
