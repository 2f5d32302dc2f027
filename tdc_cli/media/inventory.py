"""What a PNG, JPEG, WebP or BMP file holds beside the pixels, part by part: kept, or named where it is left out.

`metadata` reads what these formats have in common: colour profile, resolution, EXIF, XMP, texts. Here is the rest, so
that nothing is left out without a word: what `of_file` neither keeps nor knows to be written anew is named.

References
----------
W3C: PNG specification, third edition, 2025; ISO/IEC 10918-1 and -5 (JPEG, JFIF); CIPA DC-007-2021 (multi-picture
format); Google: WebP container specification; Adobe Photoshop File Formats, image resources.
"""

import struct
import zlib

from .metadata import png_chunks

# Chunks of a PNG that say how its numbers are meant as colours, where there is no profile.
COLOUR_CHUNKS = (b"gAMA", b"cHRM", b"sRGB", b"cICP", b"sBIT", b"mDCV", b"cLLI")
_READ_CHUNKS = {
    b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"iCCP", b"pHYs", b"eXIf", b"tEXt", b"zTXt", b"iTXt", *COLOUR_CHUNKS,
}  # fmt: skip
_KEPT_CHUNKS = (b"sCAL", b"pCAL", b"sTER", b"sPLT", b"oFFs", b"bKGD")  # as true of the completed picture
_CHUNK_WORDS = {
    b"hIST": "histogram",
    b"tIME": "time of the last change",
    b"caBX": "content credentials",
    b"bKGD": "background colour",
}
_HEADER_END = 33  # 8 bytes of signature, then the header
_SAFE_TO_COPY = 0x20  # bit of the last letter of a chunk's name

_SOS, _EOI, _COM = 0xDA, 0xD9, 0xFE
_BARE = {0x01, *range(0xD0, 0xD8)}  # markers without a length
_PHOTOSHOP = b"Photoshop 3.0\0"
# Marker and start of the segments of a JPEG that `metadata` reads or that are written anew.
_READ_SEGMENTS = (
    (0xE0, b"JFIF\0"),
    (0xE1, b"Exif\0"),
    (0xE1, b"http://ns.adobe.com/xap/1.0/\0"),
    (0xE2, b"ICC_PROFILE\0"),
    (0xEE, b"Adobe"),
)
_SEGMENT_WORDS = {
    (0xE0, b"JFXX\0"): "thumbnail",
    (0xE1, b"http://ns.adobe.com/xmp/extension/\0"): "extended XMP",
    (0xEB, b"JP"): "content credentials",
    (0xE2, b"FPXR\0"): "FlashPix data",
}
_MULTI_PICTURE = (0xE2, b"MPF\0")
_LONGEST_SEGMENT = 65_533 - len(_PHOTOSHOP)  # bytes of resources
_THUMBNAILS = (1033, 1036)  # resources of Photoshop
_IPTC = 1028

_READ_RIFF = {b"VP8X", b"VP8 ", b"VP8L", b"ALPH", b"ICCP", b"EXIF", b"XMP "}
_BMP_PROFILES = (b"DEBM", b"KNIL")  # embedded, linked


def of_file(name, content):
    """Further metadata of a file, a dict as in `Media`, and words for what is left out, a list.

    Parameters
    ----------
    name : str
        Of a format in `FORMATS`.
    content : bytes
        A file that has been decoded without an error.
    """
    found, left = {"PNG": _of_png, "JPEG": _of_jpeg, "WebP": _of_webp, "BMP": _of_bmp}.get(
        name, lambda content: ({}, [])
    )(content)
    return {key: value for key, value in found.items() if value}, list(dict.fromkeys(left))


def _of_png(content):
    kept, left, colours = [], [], {}
    same_kind = content[24] >= 8 and content[25] != 3  # else the numbers of a colour mean another one afterwards
    for name, chunk in png_chunks(content):
        if name in COLOUR_CHUNKS:
            colours[name] = chunk[8:-4]
        if name in _READ_CHUNKS:
            continue
        safe = name[3] & _SAFE_TO_COPY or name in _KEPT_CHUNKS
        if safe and (name != b"bKGD" or same_kind):
            kept.append((name, chunk[8:-4]))
        else:
            left.append(_CHUNK_WORDS.get(name, f"chunk {name.decode('latin-1')}"))
    return {"colour_chunks": colours, "chunks": tuple(kept)}, left


def with_chunks(content, chunks):
    """A PNG file with further chunks, each a name and its content, behind the header."""
    more = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return content[:_HEADER_END] + more + content[_HEADER_END:]


def _of_jpeg(content):
    segments, end = _segments(content)
    resources, left, pictures, comments = b"", [], False, 0
    for marker, data in segments:
        comments += marker == _COM
        if not 0xE0 <= marker <= 0xEF or any(marker == m and data.startswith(start) for m, start in _READ_SEGMENTS):
            continue
        words = next(
            (words for (m, start), words in _SEGMENT_WORDS.items() if marker == m and data.startswith(start)), None
        )
        if marker == 0xED and data.startswith(_PHOTOSHOP):
            resources += data[len(_PHOTOSHOP) :]
        elif marker == _MULTI_PICTURE[0] and data.startswith(_MULTI_PICTURE[1]):
            pictures = True
        else:
            left.append(words or f"segment APP{marker - 0xE0}")
    if comments > 1:
        left.append("further comments")
    if content[end:].strip(b"\0"):
        gain = b"hdrgm" in content or b"urn:iso:std:iso:ts:21496" in content
        left.append("gain map" if gain else "further pictures" if pictures else "data behind the picture")
    mended = without_thumbnails(resources)
    if mended is None:
        left.append("Photoshop resources")
    return {"photoshop": mended}, left


def _segments(content):
    """Segments of a JPEG, marker and data, and where its picture ends."""
    found, at = [], 2
    while at + 4 <= len(content):
        if content[at] != 0xFF:  # data of a scan, or padding
            at = content.find(b"\xff", at)
            if at < 0:
                break
            continue
        marker = content[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker == _EOI:
            return found, at + 2
        elif marker == 0 or marker in _BARE:
            at += 2
        else:
            (length,) = struct.unpack(">H", content[at + 2 : at + 4])
            found.append((marker, content[at + 4 : at + 2 + length]))
            at += 2 + length
    return found, len(content)


def with_resources(content, resources, iptc):
    """A JPEG file with resources of Photoshop, and IPTC as one of them where they do not have it."""
    if iptc and not any(number == _IPTC for number, _ in _blocks(resources) or ()):
        resources += b"8BIM" + struct.pack(">HHL", _IPTC, 0, len(iptc)) + iptc + bytes(len(iptc) % 2)
    at = 2
    while content[at] == 0xFF and 0xE0 <= content[at + 1] <= 0xEF:
        at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    pieces = (resources[start : start + _LONGEST_SEGMENT] for start in range(0, len(resources), _LONGEST_SEGMENT))
    more = b"".join(
        struct.pack(">BBH", 0xFF, 0xED, 2 + len(_PHOTOSHOP) + len(piece)) + _PHOTOSHOP + piece for piece in pieces
    )
    return content[:at] + more + content[at:]


def without_thumbnails(resources):
    """Resources of Photoshop without small copies of the picture; None where they cannot be told apart."""
    blocks = _blocks(resources)
    return None if blocks is None else b"".join(block for number, block in blocks if number not in _THUMBNAILS)


def iptc_of(resources):
    """IPTC within resources of Photoshop, for formats that have a place of their own for it; empty without any."""
    block = next((block for number, block in _blocks(resources) or () if number == _IPTC), b"")
    start = 6 + (block[6] // 2 + 1) * 2 if block else 0
    return block[start + 4 : start + 4 + int.from_bytes(block[start : start + 4], "big")]


def _blocks(resources):
    """Number and bytes of each resource of Photoshop, a list; None where they are damaged."""
    found, start = [], 0
    while resources[start:].strip(b"\0"):
        if resources[start : start + 4] != b"8BIM" or start + 12 > len(resources):
            return None
        number, length = struct.unpack(">HB", resources[start + 4 : start + 7])
        data = start + 6 + (length // 2 + 1) * 2  # the name and its length are padded to an even number
        end = data + 4 + int.from_bytes(resources[data : data + 4], "big")
        if end > len(resources):
            return None
        end += (end - start) % 2
        found.append((number, resources[start:end].ljust(end - start, b"\0")))
        start = end
    return found


def _of_webp(content):
    left, start = [], 12
    while start + 8 <= len(content):
        kind, size = content[start : start + 4], int.from_bytes(content[start + 4 : start + 8], "little")
        if kind not in _READ_RIFF:
            left.append(f"chunk {kind.decode('latin-1').strip()}")
        start += 8 + size + size % 2
    return {}, left


def _of_bmp(content):
    return {}, ["colour profile"] if content[70:74] in _BMP_PROFILES and content[14] >= 124 else []
