"""Each line of a run's output gets a time stamp. The size of the output is limited in memory and in the database."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from scheduling.consumer.child import LEVEL_MARK
from scheduling.consumer.output import LINE_LIMIT, OutputBuffer
from scheduling.models.output import CUT

AT = 1_765_540_800.0
LINE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ([A-Z]+) (.*)$")


def lines(text: str) -> list[tuple[str, str]]:
    found = [LINE.match(line) for line in text.split("\n")[:-1]]
    assert all(found), text[:500]
    return [match.groups() for match in found if match]  # type: ignore[misc]


def test_lines_are_stamped_and_levels_are_read() -> None:
    buffer = OutputBuffer(10_000)
    buffer.feed(b"plain\n" + f"{LEVEL_MARK}WARN{LEVEL_MARK}careful\nhalf".encode(), AT)
    assert buffer.take().startswith("2025-12-12T12:00:00.000Z OUT plain\n")
    assert lines(buffer.finish(AT)) == [("OUT", "half")]


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=30))
def test_the_sizes_of_the_portions_do_not_matter(portions: list[bytes]) -> None:
    whole, parts = OutputBuffer(1_000_000), OutputBuffer(1_000_000)
    whole.feed(b"".join(portions), AT)
    text = ""
    for portion in portions:
        parts.feed(portion, AT)
        text += parts.take()
    assert text + parts.finish(AT) == whole.finish(AT)


def test_a_long_output_keeps_both_ends_and_a_note_counts_the_rest() -> None:
    buffer = OutputBuffer(10_000)
    stored = ""
    for number in range(5_000):
        buffer.feed(f"line {number:06d}\n".encode(), AT)
        stored += buffer.take()
    stored += buffer.finish(AT)
    found = lines(stored)
    assert found[0] == ("OUT", "line 000000")
    assert found[-1] == ("OUT", "line 004999")
    full, notice = [text for level, text in found if level == "NOTE"]
    assert "stored when the attempt ends" in full
    assert CUT in notice
    dropped = int(re.search(r"\((\d+) lines\)", notice).group(1))  # type: ignore[union-attr]
    assert len(found) - 2 + dropped in (5_000, 5_001)  # a cut inside a line makes two lines out of one
    assert 9_000 < len(stored) <= 10_000


PIECES = [b"\n", b"x\n", b"y" * 400, b"\xff\n", b"\r\n", b"\x1eINFO\x1e\n"]


@given(
    limit=st.integers(1_000, 5_000),
    pieces=st.lists(
        st.tuples(st.sampled_from(PIECES), st.integers(1, 300)),
        max_size=30,
    ),
)
def test_the_limit_counts_what_is_stored(limit: int, pieces: list[tuple[bytes, int]]) -> None:
    buffer, stored = OutputBuffer(limit), ""
    for piece, times in pieces:
        buffer.feed(piece * times, AT)
        stored += buffer.take()
    stored += buffer.finish(AT)
    assert len(stored) <= limit


def test_empty_lines_count_with_their_stamps() -> None:
    buffer = OutputBuffer(1_000_000)
    buffer.feed(b"\n" * 2_400_000, AT)
    assert 990_000 < len(buffer.finish(AT)) <= 1_000_000


def test_a_small_piece_does_not_push_out_a_large_one() -> None:
    buffer = OutputBuffer(100_000)
    buffer.feed(b"first\n" * 20_000 + b"".join(b"line %05d\n" % number for number in range(9_000)), AT)
    for number in range(5):
        buffer.feed(b"last %d\n" % number, AT)
    found = lines(buffer.finish(AT))
    assert [text for _level, text in found[-5:]] == [f"last {number}" for number in range(5)]
    assert found[-6] == ("OUT", "line 08999")
    assert len([text for _level, text in found if text.startswith("line ")]) > 1_000


def test_a_note_follows_the_first_part_at_once() -> None:
    buffer = OutputBuffer(1_000)
    buffer.feed(b"x" * 99 + b"\n", AT)
    assert "NOTE" not in buffer.take()
    buffer.feed((b"x" * 99 + b"\n") * 9, AT)
    stored = buffer.take()
    assert lines(stored)[-1] == ("NOTE", "... what is printed from here on is stored when the attempt ends ...")
    buffer.feed((b"x" * 99 + b"\n") * 9, AT)
    assert buffer.take() == ""


def test_a_flood_without_a_newline_is_bounded_too() -> None:
    buffer = OutputBuffer(100_000)
    stored = 0
    for _ in range(1_000):
        buffer.feed(b"x" * 65_536, AT)
        stored += len(buffer.take())
    assert stored + len(buffer.finish(AT)) < 300_000


def test_one_long_line_becomes_two_lines() -> None:
    buffer = OutputBuffer(1_000_000)
    buffer.feed(b"x" * (LINE_LIMIT + 5) + b"\n", AT)
    assert [len(text) for _, text in lines(buffer.finish(AT))] == [LINE_LIMIT, 5]


def test_hostile_bytes_become_text() -> None:
    buffer = OutputBuffer(10_000)
    buffer.feed(b"\x00\xff\xfe\x1b[31m<b>\r\n", AT)
    text = buffer.finish(AT)
    assert "\x00" not in text
    text.encode("utf-8")


def test_lines_are_echoed_while_the_first_part_fills() -> None:
    heard: list[tuple[str, str]] = []
    buffer = OutputBuffer(1_000, lambda level, text: heard.append((level, text)))
    for _ in range(1_000):
        buffer.feed(b"twelve chars\n", AT)
    assert 0 < len(heard) < 30


def test_a_second_finish_does_not_repeat_the_note_about_output_left_out() -> None:
    """If the database refuses a settle, the consumer tries the settle again and calls `finish` again."""
    buffer = OutputBuffer(1_000)
    for _ in range(100):
        buffer.feed(b"x" * 99 + b"\n", AT)
    assert CUT in buffer.take() + buffer.finish(AT)
    assert buffer.finish(AT) == ""
