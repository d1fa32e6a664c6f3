"""Each line of a run's output gets a time stamp. The size of the output is limited in memory and in the database."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.consumer.child_logging import LEVEL_MARK
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.output_lines import LINE_LIMIT
from scheduling.consumer.output_tail import NOTE_SEQUENCE
from scheduling.models.output import CUT

AT = 1_765_540_800.0
LINE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ([A-Z]+) (.*)$")


def lines(text: str) -> list[tuple[str, str]]:
    found = [LINE.match(line) for line in text.split("\n")[:-1]]
    assert all(found), text[:500]
    return [match.groups() for match in found if match]  # type: ignore[misc]


class Stored:
    """The output of one attempt as the database stores it: the first half, and the rows of the tail by number."""

    def __init__(self, limit: int) -> None:
        self.buffer, self.head, self.rows, self.written = OutputBuffer(limit), "", dict[int, str](), 0

    def feed(self, data: bytes) -> None:
        self.buffer.feed(data, AT)

    def flush(self, *, final: bool = False) -> None:
        """Store what waits, as the consumer does each half second and at the end."""
        self.head += self.buffer.finish(AT) if final else self.buffer.take()
        tail = self.buffer.tail
        if tail is None:
            return
        tail.flush()
        for number, text in tail.unstored(AT):
            assert number == NOTE_SEQUENCE or number not in self.rows, "a chunk never changes"
            self.rows[number] = text
            self.written += len(text)
        self.rows = {
            number: text for number, text in self.rows.items() if number == NOTE_SEQUENCE or number >= tail.first
        }
        tail.mark_stored()

    @property
    def text(self) -> str:
        return self.head + "".join(self.rows[number] for number in sorted(self.rows))


def stored(limit: int, *pieces: bytes) -> str:
    """What is stored of these pieces. After each piece, what waits is stored."""
    output = Stored(limit)
    for piece in pieces:
        output.feed(piece)
        output.flush()
    output.flush(final=True)
    return output.text


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
    text = stored(10_000, *[f"line {number:06d}\n".encode() for number in range(5_000)])
    found = lines(text)
    assert found[0] == ("OUT", "line 000000")
    assert found[-1] == ("OUT", "line 004999")
    (notice,) = [line for level, line in found if level == "NOTE"]
    assert CUT in notice
    size, dropped = map(int, re.search(r"(\d+) bytes \((\d+) lines\)", notice).groups())  # type: ignore[union-attr]
    assert len(found) - 1 + dropped == 5_000
    assert size == dropped * len("line 000000\n")
    assert 9_000 < len(text) <= 10_000


@pytest.mark.parametrize("size", [500, 7_000, 30_000, 1_000_000])
def test_what_is_dropped_before_it_is_stored_is_counted_too(size: int) -> None:
    """The sizes of the pieces are smaller than the limit of the end, nearly as large, and larger."""
    printed = b"".join(b"line %06d\n" % number for number in range(30_000))
    output = Stored(20_000)
    for start in range(0, len(printed), size):
        output.feed(printed[start : start + size])
    output.flush(final=True)
    found = lines(output.text)
    (notice,) = [line for level, line in found if level == "NOTE"]
    dropped, count = map(int, re.search(r"(\d+) bytes \((\d+) lines\)", notice).groups())  # type: ignore[union-attr]
    kept = [text for level, text in found if level == "OUT"]
    assert kept[-1] == "line 029999"
    assert count + len(kept) == 30_000
    assert dropped + sum(len(text) + 1 for text in kept) == len(printed)


PIECES = [b"\n", b"x\n", b"y" * 400, b"\xff\n", b"\r\n", b"\x1eINFO\x1e\n"]


@given(
    limit=st.integers(1_000, 5_000),
    pieces=st.lists(
        st.tuples(st.sampled_from(PIECES), st.integers(1, 300)),
        max_size=30,
    ),
)
def test_the_limit_counts_what_is_stored(limit: int, pieces: list[tuple[bytes, int]]) -> None:
    assert len(stored(limit, *[piece * times for piece, times in pieces])) <= limit


def test_empty_lines_count_with_their_stamps() -> None:
    assert 960_000 < len(stored(1_000_000, b"\n" * 2_400_000)) <= 1_000_000


@given(st.data())
def test_after_a_kill_only_what_was_printed_since_the_last_flush_is_missing(data: st.DataObject) -> None:
    """Of the end that is kept, each whole line up to the last flush is in the rows, at any moment."""
    output, printed = Stored(20_000), 0
    for _flush in range(data.draw(st.integers(1, 12))):
        for _feed in range(data.draw(st.integers(1, 3))):
            count = data.draw(st.integers(1, 300))
            output.feed(b"".join(b"line %06d\n" % number for number in range(printed, printed + count)))
            printed += count
        output.flush()
        numbers = [int(text[5:]) for _level, text in lines(output.text) if text.startswith("line ")]
        assert numbers[-1] == printed - 1
        assert len(output.text) <= 20_000
        gaps = [(one, two) for one, two in itertools.pairwise(numbers) if two != one + 1]
        assert len(gaps) <= 1
        if gaps:
            kept = sum(1 for number in numbers if number >= gaps[0][1]) * len(lines_of_one())
            assert kept >= (10_000 - 400) // 2 - len(lines_of_one())


def lines_of_one() -> str:
    return "2025-12-12T12:00:00.000Z OUT line 000000\n"


def test_a_flood_writes_no_more_than_the_end_at_each_flush() -> None:
    output = Stored(1_000_000)
    for _flush in range(20):
        output.feed(b"x" * 99 + b"\n" + b"twelve chars\n" * 400_000)
        output.flush()
    assert output.written < 20 * 500_000


def test_a_small_piece_does_not_push_out_a_large_one() -> None:
    many = b"first\n" * 20_000 + b"".join(b"line %05d\n" % number for number in range(9_000))
    found = lines(stored(100_000, many, *[b"last %d\n" % number for number in range(5)]))
    assert [text for _level, text in found[-5:]] == [f"last {number}" for number in range(5)]
    assert found[-6] == ("OUT", "line 08999")
    assert len([text for _level, text in found if text.startswith("line ")]) > 1_000


def test_a_note_follows_the_first_part_at_once() -> None:
    output = Stored(1_000)
    output.feed(b"x" * 99 + b"\n")
    output.flush()
    assert "NOTE" not in output.text
    output.feed((b"x" * 99 + b"\n") * 4)
    output.flush()
    assert ("NOTE", "... from here on, only the end of the output is kept ...") in lines(
        output.text
    ) or CUT in output.text


def test_the_notes_of_the_supervisor_stand_at_the_end() -> None:
    output = Stored(2_000)
    output.feed(b"twelve chars\n" * 1_000 + b"unfinished")
    output.flush()
    output.buffer.note("killed", AT)
    output.flush(final=True)
    assert lines(output.text)[-2:] == [("OUT", "unfinished"), ("NOTE", "killed")]


def test_a_flood_without_a_newline_is_bounded_too() -> None:
    assert len(stored(100_000, *[b"x" * 65_536] * 1_000)) <= 100_000


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


def test_a_second_finish_repeats_nothing() -> None:
    """If the database refuses a settle, the consumer tries the settle again and calls `finish` again."""
    output = Stored(1_000)
    output.feed((b"x" * 99 + b"\n") * 100)
    output.flush(final=True)
    text = output.text
    assert CUT in text
    output.flush(final=True)
    assert output.text == text


def test_rows_that_are_not_stored_are_returned_again() -> None:
    """A transaction that was rolled back has stored nothing."""
    buffer = OutputBuffer(1_000)
    buffer.feed((b"x" * 99 + b"\n") * 9, AT)
    tail = buffer.tail
    assert tail is not None
    tail.flush()
    first = tail.unstored(AT)
    assert first == tail.unstored(AT)
    tail.mark_stored()
    assert tail.unstored(AT) == []
