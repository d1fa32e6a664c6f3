"""A consumer and its child exchange JSON messages. The reader accepts messages in pieces and refuses other data."""

from __future__ import annotations

import pickle
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.consumer.framing import FrameReader, WireError, pack


@given(st.lists(st.dictionaries(st.text(max_size=5), st.integers(-(2**40), 2**40)), max_size=5), st.integers(1, 20))
def test_messages_are_read_from_pieces_of_any_size(messages: list[dict[str, int]], size: int) -> None:
    data = b"".join(pack(message) for message in messages)
    reader, found = FrameReader(), []
    for start in range(0, len(data), size):
        found += reader.feed(data[start : start + size])
    assert found == messages


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("!I", 2**31),
        struct.pack("!I", 2) + b"[]",
        struct.pack("!I", 3) + b"{{{",
        struct.pack("!I", len(pickle.dumps({}))) + pickle.dumps({}),
    ],
)
def test_other_data_is_refused_and_never_unpickled(data: bytes) -> None:
    with pytest.raises(WireError):
        FrameReader().feed(data)
