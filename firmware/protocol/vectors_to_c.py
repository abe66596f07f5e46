"""Write golden_vectors.json as a C header: python3 vectors_to_c.py OUTPUT."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def array(name: str, data: bytes) -> str:
    """Return the definition of a C array; an empty array gets one unused byte."""
    return f'static const uint8_t {name}[] = {{{", ".join(str(b) for b in data or b"0")}}};'


def main() -> None:
    """Write the arrays and the tables that refer to them."""
    vectors = json.loads(Path(__file__).with_name('golden_vectors.json').read_text('utf-8'))
    lines = ['/* Written by vectors_to_c.py. */', '#include <stdint.h>', '#include "golden.h"']
    lines.append(f'#define GOLDEN_BOOT_ID {vectors["boot_id"]}u')
    rows: dict[str, list[str]] = {'crc': [], 'frames': [], 'invalid': []}
    for i, v in enumerate(vectors['crc']):
        data = bytes.fromhex(v['data'])
        lines.append(array(f'CRC_{i}', data))
        rows['crc'].append(f'{{CRC_{i}, {len(data)}, {v["ccitt_false"]}, {v["modbus"]}}}')
    for i, v in enumerate(vectors['frames']):
        payload, encoded = bytes.fromhex(v['payload']), bytes.fromhex(v['encoded'])
        lines += [array(f'PAYLOAD_{i}', payload), array(f'ENCODED_{i}', encoded)]
        rows['frames'].append(
            f'{{"{v["name"]}", {v["type"]}, {v["sequence"]}, {v["key"]}u, '
            f'PAYLOAD_{i}, {len(payload)}, ENCODED_{i}, {len(encoded)}}}'
        )
    for i, v in enumerate(vectors['invalid']):
        data = bytes.fromhex(v['encoded'])
        lines.append(array(f'INVALID_{i}', data))
        verdict = {'corrupt': 'SA_RX_CORRUPT', 'malformed': 'SA_RX_MALFORMED'}[v['verdict']]
        rows['invalid'].append(f'{{"{v["name"]}", INVALID_{i}, {len(data)}, {verdict}}}')
    for kind, table in rows.items():
        body = ',\n  '.join(table)
        lines.append(f'static const golden_{kind}_t GOLDEN_{kind.upper()}[] = {{\n  {body}\n}};')
    Path(sys.argv[1]).write_text('\n'.join(lines) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
