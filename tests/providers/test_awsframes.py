"""AWS event-stream frames: both checksums, any division of the bytes, botocore as the oracle."""

import struct
from binascii import crc32
from itertools import pairwise

import pytest
from botocore.eventstream import EventStreamBuffer
from frames import encode_frame
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swink.errors import NetworkError
from swink.providers.bedrock.frames import Frame, FrameParser


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(edges)]


lean = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
words = st.text("abc-:é😀\n", max_size=20)
header_values = st.one_of(words, st.binary(max_size=40), st.booleans(), st.integers(-(2**63), 2**63 - 1))
frames = st.tuples(
    st.dictionaries(st.text("abc-:", min_size=1, max_size=20), header_values, max_size=4),
    st.binary(max_size=200),
)


@lean
@given(st.lists(frames, max_size=5), st.lists(st.integers(0, 5000), max_size=12))
def test_any_division_of_the_bytes_gives_the_frames_botocore_reads(wanted, cuts):
    data = b"".join(encode_frame(headers, payload) for headers, payload in wanted)
    parser, got = FrameParser(), []
    for piece in pieces(data, cuts):
        got.extend(parser.feed(piece))
    oracle = EventStreamBuffer()
    oracle.add_data(data)
    assert got == [Frame(message.headers, message.payload) for message in oracle]
    assert got == [Frame(dict(headers), payload) for headers, payload in wanted]
    assert not parser.pending


@lean
@given(frames, st.data())
def test_a_changed_bit_anywhere_is_noticed(frame, data):
    encoded = bytearray(encode_frame(*frame))
    position = data.draw(st.integers(0, len(encoded) - 1))
    encoded[position] ^= 1 << data.draw(st.integers(0, 7))
    parser = FrameParser()
    with pytest.raises(NetworkError, match="event stream"):
        assert list(parser.feed(bytes(encoded))) == []


def test_frames_before_a_bad_one_count():
    good = encode_frame({":event-type": "a"}, b"{}")
    bad = bytearray(good)
    bad[-1] ^= 1
    got = []
    with pytest.raises(NetworkError, match="checksum"):
        for frame in FrameParser().feed(good + bytes(bad)):
            got.append(frame)
    assert got == [Frame({":event-type": "a"}, b"{}")]


def test_a_cut_frame_is_pending():
    data = encode_frame({":event-type": "messageStop"}, b"{}")
    for cut in range(1, len(data)):
        parser = FrameParser()
        assert list(parser.feed(data[:cut])) == []
        assert parser.pending


@pytest.mark.parametrize(
    ("total", "headers_length"),
    [(15, 0), (0, 0), (20, 8), (30 * 2**20, 0), (200 * 1024, 129 * 1024)],
    ids=lambda value: str(value),
)
def test_lengths_that_cannot_be_are_refused_at_once(total, headers_length):
    prelude = struct.pack(">II", total, headers_length)
    prelude += struct.pack(">I", crc32(prelude))
    with pytest.raises(NetworkError, match="announces"):
        list(FrameParser().feed(prelude))


@pytest.mark.parametrize(
    "headers",
    [
        b"\x01a\x0a",
        b"\x01a\x07\x00\xffshort",
        b"\x05ab",
        b"\x01a\x07\x00\x01\xff",
        b"\x01a\x00\x01a\x00",
        b"\x01a\x05\x00",
    ],
)
def test_headers_that_lie_are_refused(headers):
    prelude = struct.pack(">II", 16 + len(headers), len(headers))
    prelude += struct.pack(">I", crc32(prelude))
    body = prelude + headers
    with pytest.raises(NetworkError, match="event stream"):
        list(FrameParser().feed(body + struct.pack(">I", crc32(body))))


def test_a_large_frame_in_small_pieces_takes_linear_time():
    data = encode_frame({":event-type": "x"}, b"a" * 4_000_000)
    parser, got = FrameParser(), []
    for start in range(0, len(data), 64):
        got.extend(parser.feed(data[start : start + 64]))
    assert [len(frame.payload) for frame in got] == [4_000_000]
