"""Scalars as TensorBoard reads them: event records in the TFRecord framing, written without TensorFlow."""

from __future__ import annotations

import struct
import time
from pathlib import Path


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC = _table()


def checksum(data: bytes) -> int:
    """CRC-32C, masked as TFRecord files have it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _field(number: int, payload: bytes) -> bytes:
    """A length-delimited protocol buffer field."""
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


class Writer:
    """Appends events to a file of its own in a folder; a file that a kill cut short is read up to there."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"events.out.tfevents.{time.time_ns()}"
        self._append(struct.pack("<Bd", 1 << 3 | 1, time.time()) + _field(3, b"brain.Event:2"))

    def write(self, values: dict[str, float], step: int) -> None:
        """Scalars by name at an environment step."""
        summary = b"".join(
            _field(1, _field(1, name.encode()) + struct.pack("<Bf", 2 << 3 | 5, value))
            for name, value in values.items()
        )
        head = struct.pack("<Bd", 1 << 3 | 1, time.time()) + _varint(2 << 3) + _varint(step)
        self._append(head + _field(5, summary))

    def _append(self, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        with self._path.open("ab") as file:
            file.write(length + struct.pack("<I", checksum(length)) + event + struct.pack("<I", checksum(event)))
