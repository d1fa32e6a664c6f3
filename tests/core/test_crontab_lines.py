"""The lines of a crontab, and the management commands in them."""

from __future__ import annotations

import pytest

from scheduling.core.crontab_lines import CrontabLine, Unreadable, Variable, read_crontab
from scheduling.core.shell_commands import Found, NoCommand, management_command

TEXT = """
# a comment
MAILTO="ops@example.org"
PATH = /usr/bin:/bin
-*/5 * * * *  manage.py one
CRON_TZ=Europe/Madrid
@Daily\tmanage.py two --at 50\\%
0 8 * * 1 mail -s report % Hello%World
5 4 * *
@daily
"""


def test_times_commands_and_what_was_set_before_them() -> None:
    lines = list(read_crontab(TEXT, system=False))
    assert [type(line) for line in lines] == [
        Variable, Variable, CrontabLine, Variable, CrontabLine, CrontabLine, Unreadable, Unreadable,
    ]  # fmt: skip
    mail, _path, one, _zone, two, three, _short, _word = lines
    assert isinstance(mail, Variable)
    assert (mail.number, mail.name, mail.value) == (3, "MAILTO", "ops@example.org")
    assert isinstance(one, CrontabLine)
    assert (one.times, one.command, one.zone) == ("*/5 * * * *", "manage.py one", "")
    assert one.environment == {"MAILTO": "ops@example.org", "PATH": "/usr/bin:/bin"}
    assert isinstance(two, CrontabLine)
    assert (two.times, two.command, two.zone) == ("@daily", "manage.py two --at 50%", "Europe/Madrid")
    assert isinstance(three, CrontabLine)
    assert (three.command, three.standard_input) == ("mail -s report", " Hello%World")


def test_a_system_crontab_names_a_user() -> None:
    lines = list(read_crontab("17 * * * *\troot\tcd / && run\n@hourly www manage.py x\n0 0 * * * root", system=True))
    assert [(line.user, line.command) for line in lines if isinstance(line, CrontabLine)] == [
        ("root", "cd / && run"),
        ("www", "manage.py x"),
    ]
    assert isinstance(lines[2], Unreadable)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("python manage.py clearsessions", Found("clearsessions", ())),
        ("/venv/bin/python3.12 -u /srv/a/manage.py x --days 3", Found("x", ("--days", "3"), "/srv/a")),
        ("cd /srv/a && ./manage.py x 'a b' \"c>d\"", Found("x", ("a b", "c>d"), "/srv/a")),
        ("cd '/srv/a b' ; python manage.py x", Found("x", (), "/srv/a b")),
        ("django-admin x", Found("x", ())),
        ("DJANGO_SETTINGS_MODULE=a.b python -m django x", Found("x", (), None, "a.b")),
        ("python manage.py x >> /var/log/x.log 2>&1", Found("x", (), has_redirection=True)),
        ("python manage.py x a2>/dev/null", Found("x", ("a2",), has_redirection=True)),
        ("python manage.py x '*.csv' '$HOME'", Found("x", ("*.csv", "$HOME"))),
    ],
)
def test_a_management_command_is_found(line: str, found: Found) -> None:
    assert management_command(line) == found


def test_a_folder_counts_from_that_in_which_the_shell_begins() -> None:
    assert management_command("python manage.py x", "/srv/home").folder == "/srv/home"
    assert management_command("cd site && python manage.py x", "/srv/home").folder == "/srv/home/site"
    assert management_command("cd /srv/a && python manage.py x", "/srv/home").folder == "/srv/a"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("echo hi", "It runs “echo”, which is no management command"),
        ("python report.py", "It runs “python”"),
        ("python manage.py x | mail root", "It has “|”"),
        ("python manage.py x && touch y", "It has “&&”"),
        ("python manage.py x < in", "It has “<”"),
        ("python manage.py x; rm y", "It has “;”"),
        ("(python manage.py x)", "It has “(”"),
        ("python manage.py x &", "It has “&”"),
        ("python manage.py x $HOME", "The shell replaces “$”"),
        ('python manage.py x "`date`"', "The shell replaces “$”"),
        ("python manage.py x *.csv", "such as “*”"),
        ("python manage.py x ~/a", "such as “*”"),
        ("flock -n /tmp/l python manage.py x", "overlap: skip"),
        ("/usr/bin/timeout 60 python manage.py x", "a time limit"),
        ("LANG=de python manage.py x", "It sets LANG"),
        ("python manage.py 'x", "Its quotes are not closed"),
        ("python manage.py", "There is no management command"),
        ("python manage.py --version", "There is no management command"),
        ("", "There is no command"),
        ("cd $DIR && python manage.py x", "It has “&&”"),
    ],
)
def test_what_needs_a_shell_or_is_another_program_is_refused(line: str, said: str) -> None:
    with pytest.raises(NoCommand) as refused:
        management_command(line)
    assert said in str(refused.value)
