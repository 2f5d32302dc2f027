"""Whether a stream of broadcasting, of a disc or of a tape is whole: what its own packets tell, which FFmpeg does not.

References
----------
ISO/IEC 13818-1 (MPEG-TS and -PS); Microsoft: Advanced Systems Format, 2004; SMPTE ST 377-1 (MXF), ST 336 (KLV).
"""

import os
import struct

import numpy as np

_SIZES = {188: 0, 192: 4, 204: 0}  # bytes of a packet of MPEG-TS -> where in it the mark stands
_MARK, _NOTHING = 0x47, 0x1FFF  # first byte of a packet, and the number of those that hold nothing
_TRIED = 5  # packets by whose marks the size is found
_AT_ONCE = 1 << 16  # packets
_FILE_PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
_LIVE = 1  # flag of ASF: sizes are not told
_PARTITION = bytes.fromhex("060e2b34020501010d01020101")
_CUT = "ends in the middle of a packet; what came behind is missing, and perhaps a frame or some sound before"
_GAP = "its parts do not follow one another; something between them is missing, and perhaps frames or sound with it"
_PACK, _PROGRAM_END = 0xBA, 0xB9


def notes(path, name):
    """What a file tells of being cut short or of gaps, a list of str.

    Parameters
    ----------
    path : path-like
    name : str
        Of a format in `clip_formats.CLIP_FORMATS`.
    """
    look = {"MPEG-TS": _of_transport, "MPEG-PS": _of_program, "WMV": _of_asf, "MXF": _of_mxf}.get(name)
    return [f"{path}: {words}" for words in look(path)] if look else []


def _of_transport(path):
    """Words on MPEG-TS: packets of each stream count from 0 to 15 and begin again."""
    content = np.memmap(path, np.uint8, "r")
    size, start = _packets(content)
    if size is None:
        return []
    whole = (len(content) - start) // size
    packets = content[start : start + whole * size].reshape(whole, size)
    last, gaps, first = {}, 0, None
    for at in range(0, whole, _AT_ONCE):
        found = _gaps(np.asarray(packets[at : at + _AT_ONCE, _SIZES[size] : _SIZES[size] + 6]), last)
        if first is None and len(found):
            first = (at + found[0]) / whole
        gaps += len(found)
    said = []
    if gaps:
        times = "one place" if gaps == 1 else f"{gaps} places"
        said.append(
            f"packets are missing or damaged in {times}, the first {first:.0%} into the file, as after bad reception; "
            "frames or sound may be missing there"
        )
    return said + [_CUT] * ((len(content) - start) % size > 0)


def _packets(content):
    """Bytes of a packet, and where the first one begins; None, 0 where there are none."""
    for start in range(min(1024, len(content))):
        for size, mark in _SIZES.items():
            marks = content[start + mark : start + mark + _TRIED * size : size]
            if len(marks) == _TRIED and np.all(marks == _MARK):
                return size, start
    return None, 0


def _gaps(heads, last):
    """Numbers of packets before which something is missing, or that are damaged, sorted.

    Parameters
    ----------
    heads : (n, 6) ndarray of uint8
    last : dict
        Number of a stream to the count of its last packet; brought up to date.
    """
    stream = (heads[:, 1].astype(int) & 0x1F) << 8 | heads[:, 2]
    count, filled = heads[:, 3] & 15, heads[:, 3] & 0x10 > 0
    jumps = (heads[:, 3] & 0x20 > 0) & (heads[:, 4] > 0) & (heads[:, 5] & 0x80 > 0)  # as the sender tells
    good = heads[:, 0] == _MARK
    found = [np.flatnonzero(~good | (heads[:, 1] & 0x80 > 0))]
    for number in np.unique(stream[good & filled]):
        if number == _NOTHING:
            continue
        at = np.flatnonzero((stream == number) & filled & good)
        counts = count[at].astype(int)
        before = np.concatenate([[last.get(number, counts[0])], counts[:-1]])
        found.append(at[((counts - before) % 16 > 1) & ~jumps[at]])
        last[number] = counts[-1]
    return np.unique(np.concatenate(found))


def _of_program(path):
    """Words on MPEG-PS: each packet tells its length."""
    size, at = os.path.getsize(path), 0
    with open(path, "rb") as file:
        while at < size:
            file.seek(at)
            head = file.read(14)
            if len(head) < 4 or head[:3] != b"\0\0\1":
                return [_CUT if len(head) < 4 else _GAP] if head.strip(b"\0") else []
            if head[3] == _PROGRAM_END:
                return []
            if head[3] == _PACK:
                at += 14 + (head[13] & 7) if len(head) == 14 and head[4] >> 6 == 1 else 12
            elif len(head) >= 6:
                at += 6 + int.from_bytes(head[4:6], "big")
            else:
                break
    return [_CUT] if at != size else []


def _of_asf(path):
    """Words on WMV: its header tells the size of the file."""
    with open(path, "rb") as file:
        head = file.read(1 << 16)
    at = head.find(_FILE_PROPERTIES)
    if at < 0 or len(head) < at + 92:
        return []
    (told,), (flags,) = struct.unpack("<Q", head[at + 40 : at + 48]), struct.unpack("<L", head[at + 88 : at + 92])
    there = os.path.getsize(path)
    if told <= there or flags & _LIVE:
        return []
    return [f"is {there} bytes long, though it tells {told}; the rest is missing"]


def _of_mxf(path):
    """Words on MXF: each piece tells its length, and the first where the last begins."""
    size, at, footer = os.path.getsize(path), 0, 0
    with open(path, "rb") as file:
        while at < size:
            file.seek(at)
            head = file.read(64)
            length, start = _length(head[16:])
            if length is None or not head.startswith(_PARTITION[:4]):
                return [_CUT if len(head) < 64 else _GAP]
            if at == 0 and head.startswith(_PARTITION) and len(head) >= start + 48:
                (footer,) = struct.unpack(">Q", head[start + 40 : start + 48])
            at += start + length
    return [_CUT] if at > size or footer >= size else []


def _length(content):
    """A length as KLV has it, and the bytes of a piece before its content; None, 0 where it is cut short."""
    if not content:
        return None, 0
    more = content[0] & 0x7F if content[0] & 0x80 else 0
    if len(content) < 1 + more:
        return None, 0
    return int.from_bytes(content[1 : 1 + more], "big") if more else content[0], 17 + more
