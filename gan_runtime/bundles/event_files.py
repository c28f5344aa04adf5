"""TensorBoard's event files: records of a length, a message and two checksums, without TensorFlow.

record   uint64 length · uint32 masked CRC-32C of the length · message · uint32 masked CRC-32C of it
message  tensorflow.Event: 1 wall_time (s since 1970), 2 step, 3 file_version, 5 summary, 7 session
summary  1 value, repeated: 1 tag, 2 simple_value, 4 image, 8 tensor, 9 metadata (1 plugin)

Sources: tensorflow/core/lib/io/record_writer.h; event.proto, summary.proto and tensor.proto there;
the wire format, protobuf.dev/programming-guides/encoding. The tests read what is written here with
TensorBoard's own reader.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import BinaryIO

MAX_MESSAGE_BYTES = 64_000_000  # per event
VERSION = b"brain.Event:2"
SESSION_START = 1  # value of session.status: a writer restarts at a step
SCALARS, IMAGES, TEXT = "scalars", "images", "text"  # plugins
_MASK = 0xA282EAD8
_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5  # wire types
# TensorProto: number of the field and struct code of values of a type, by DataType.
_NUMBERS = {1: (5, "f"), 2: (6, "d"), 19: (0, "e")}
_INTEGERS = {3: (7, "i"), 9: (10, "q")}
_STRING = 7

Value = int | float | bytes


class EventFileError(ValueError):
    """A file is no event file, or damaged; the message is the end of a sentence."""


@dataclass(frozen=True)
class EventImage:
    """PNG or JPEG. `width`, `height`: pixels."""

    content: bytes
    width: int = 0
    height: int = 0


@dataclass
class StepEvent:
    """`wall_time`: seconds since 1970. Values by tag; `others`: tags of other kinds."""

    wall_time: float
    step: int = 0
    scalars: dict[str, float] = field(default_factory=dict)
    images: dict[str, Sequence[EventImage]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    is_restart: bool = False


# ---- writing -------------------------------------------------------------------------------------


def write(file: BinaryIO, events: Iterable[StepEvent]) -> None:
    """A whole event file: its version, then the events in their order."""
    begin = next(iter(events := iter(events)), None)
    if begin is None:
        return
    _write_record(file, _time(begin.wall_time) + _field(3, VERSION))
    _write_record(file, _encoded(begin))
    for event in events:
        _write_record(file, _encoded(event))


def _write_record(file: BinaryIO, message: bytes) -> None:
    length = struct.pack("<Q", len(message))
    file.write(length + _checksum(length) + message + _checksum(message))


def _encoded(event: StepEvent) -> bytes:
    values = [
        *(
            _field(1, tag.encode()) + struct.pack("<Bf", 2 << 3 | _FLOAT, _single(value))
            for tag, value in event.scalars.items()
        ),
        *(
            _field(1, tag.encode()) + _field(4, _image(image))
            for tag, images in event.images.items()
            for image in images
        ),
        *(_text(tag, text) for tag, text in event.texts.items()),
    ]
    summary = b"".join(_field(1, value) for value in values)
    session = _field(7, _number(1, SESSION_START)) if event.is_restart else b""
    return _time(event.wall_time) + _number(2, event.step) + _field(5, summary) + session


def _single(value: float) -> float:
    """Beyond single precision it is infinite, where `struct` would refuse."""
    limit = 3.4028235e38
    return value if not abs(value) > limit else float("inf") if value > 0 else float("-inf")


def _image(image: EventImage) -> bytes:
    size = _number(1, image.height) + _number(2, image.width)
    return size + _number(3, 3) + _field(4, image.content)


def _text(tag: str, text: str) -> bytes:
    """A tensor with one string, for TensorBoard's tab Text."""
    tensor = _number(1, _STRING) + _field(2, _field(2, _number(1, 1))) + _field(8, text.encode())
    metadata = _field(1, _field(1, TEXT.encode())) + _number(4, 2)
    return _field(1, tag.encode()) + _field(8, tensor) + _field(9, metadata)


def _time(seconds: float) -> bytes:
    return struct.pack("<Bd", 1 << 3 | _DOUBLE, seconds)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit of a byte says that more follow."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


@cache
def _table() -> list[int]:
    """CRC-32C by byte: the remainder of Castagnoli's polynomial, reflected 0x82F63B78."""
    table = []
    for byte in range(256):
        remainder = byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
        table.append(remainder)
    return table


def _checksum(content: bytes) -> bytes:
    """Masked: rotated by 15 bits plus a constant, since a CRC of a CRC is weak."""
    table, crc = _table(), 0xFFFFFFFF
    for byte in content:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF)


# ---- reading -------------------------------------------------------------------------------------


def read(path: Path) -> Iterator[StepEvent]:
    """The events of a file; a last record that is not whole, of a writer at work, is left out.

    Raises EventFileError, after the events before the damage; OSError.
    """
    plugins: dict[str, str] = {}  # tag → plugin, which a writer can name in the first event only
    with path.open("rb") as file:
        while message := _next_message(file):
            yield _decoded(message, plugins)


def _next_message(file: BinaryIO) -> bytes:
    """Empty at the end."""
    place, head = file.tell(), file.read(12)
    if len(head) < 12:
        return b""
    (length,) = struct.unpack("<Q", head[:8])
    if _checksum(head[:8]) != head[8:]:
        raise EventFileError(f"no event begins at byte {place:,}")
    if length > MAX_MESSAGE_BYTES:
        raise EventFileError(
            f"the event at byte {place:,} has {length:,} bytes, more than {MAX_MESSAGE_BYTES:,}"
        )
    message = file.read(length + 4)
    if len(message) < length + 4:
        return b""
    if _checksum(message[:-4]) != message[-4:]:
        raise EventFileError(f"the event at byte {place:,} is damaged")
    return message[:-4]


def _decoded(message: bytes, plugins: dict[str, str]) -> StepEvent:
    try:
        event = StepEvent(0.0)
        for number, value in _fields(message):
            if number == 1 and isinstance(value, float):
                event.wall_time = value
            elif number == 2 and isinstance(value, int):
                event.step = value - 2**64 if value >= 2**63 else value
            elif number == 5 and isinstance(value, bytes):
                for _, part in _fields(value):
                    if isinstance(part, bytes):
                        _take(event, dict(_fields(part)), plugins)
            elif number == 7 and isinstance(value, bytes):
                event.is_restart = dict(_fields(value)).get(1) == SESSION_START
        return event
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise EventFileError(f"an event cannot be decoded ({error})") from None


def _take(event: StepEvent, value: Mapping[int, Value], plugins: dict[str, str]) -> None:
    """Adds one value of a summary to the event."""
    tag = _bytes(value.get(1)).decode()
    metadata = dict(_fields(_bytes(value.get(9))))
    if plugin := _bytes(dict(_fields(_bytes(metadata.get(1)))).get(1)).decode():
        plugins[tag] = plugin
    tensor = _bytes(value.get(8))
    if isinstance(simple := value.get(2), float):
        event.scalars[tag] = simple
    elif 4 in value:
        image = dict(_fields(_bytes(value[4])))
        event.images[tag] = (*event.images.get(tag, ()), EventImage(_bytes(image.get(4))))
    elif plugins.get(tag) == IMAGES:
        # width, height, and the images
        event.images[tag] = tuple(map(EventImage, _strings(tensor)[2:]))
    elif plugins.get(tag) == TEXT and (strings := _strings(tensor)):
        event.texts[tag] = strings[0].decode()
    elif (scalar := _scalar(tensor)) is not None and plugins.get(tag, SCALARS) == SCALARS:
        event.scalars[tag] = scalar
    else:
        event.others.add(tag)


def _bytes(value: Value | None) -> bytes:
    return value if isinstance(value, bytes) else b""


def _strings(tensor: bytes) -> list[bytes]:
    return [value for number, value in _fields(tensor) if number == 8 and isinstance(value, bytes)]


def _scalar(tensor: bytes) -> float | None:
    """The number in a tensor with one number; None for other tensors."""
    parts = dict(_fields(tensor))
    kind = parts.get(1)
    number, code = (_NUMBERS | _INTEGERS).get(kind if isinstance(kind, int) else 0, (0, ""))
    value = parts.get(number)
    if not code:
        return None
    if isinstance(content := parts.get(4), bytes) and len(content) == struct.calcsize(code):
        return float(struct.unpack(f"<{code}", content)[0])
    if isinstance(value, bytes) and kind in _NUMBERS and len(value) == struct.calcsize(code):
        return float(struct.unpack(f"<{code}", value)[0])  # packed
    return float(value) if isinstance(value, int | float) else None


def _fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Number and value of each field. Raises IndexError and struct.error for no message."""
    place = 0
    while place < len(message):
        key, place = _read_varint(message, place)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, place = _read_varint(message, place)
            yield number, value
        elif kind == _BYTES:
            length, place = _read_varint(message, place)
            if place + length > len(message):
                raise IndexError("a field is longer than its message")
            yield number, message[place : place + length]
            place += length
        elif kind in (_DOUBLE, _FLOAT):
            code = "<d" if kind == _DOUBLE else "<f"
            yield number, float(struct.unpack_from(code, message, place)[0])
            place += struct.calcsize(code)
        else:
            raise IndexError(f"a field has the unknown type {kind}")


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 2**64 - 1, place
        shift += 7
        if shift > 63:
            raise IndexError("a number has more than 64 bits")
