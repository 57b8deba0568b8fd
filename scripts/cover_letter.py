# SPDX-License-Identifier: GPL-2.0-only
"""A topic's cover letter in its two forms, and the way from each to the other.

On the branch a topic starts with an empty commit, the marker:

    topic: 01-zswap-large-folio-store       <- subject
                                            <- blank
    mm: zswap: store large folios           <- subject of the cover letter
                                            <- blank
    The text of the cover letter ...

In patches/ it is the file 0000-cover-letter, a mail as git format-patch writes it: the text, then a
shortlog and a diffstat, which are generated and so are dropped on the way back.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from email.header import Header, decode_header
from email.utils import formatdate, mktime_tz, parsedate_tz

TOPIC = re.compile(r"[0-9]{2}-[a-z0-9][a-z0-9-]*")
MARKER = re.compile(r"topic: (\S+)")
FROM_LINE = "From " + "0" * 40 + " Mon Sep 17 00:00:00 2001"
# The generated end: shortlog blocks, diffstat with its summary lines, signature separator.
TAIL = re.compile(
    r"\n\n(?P<shortlog>(?:\S[^\n]* \([0-9]+\):\n(?:  [^\n]+\n)+\n)+)"
    r"(?P<stat>(?: [^\n]+\|[^\n]+\n)+ [0-9]+ files? changed[^\n]*\n(?: (?:create|delete|mode|rename)[^\n]*\n)*)"
    r"\n-- \n\Z")


class CoverError(Exception):
    """The marker or the file does not have the form described above."""


@dataclass(frozen=True)
class Cover:
    """What a marker commit carries. date is in git's raw form: '<seconds> <+hhmm>'."""

    author: str
    email: str
    date: str
    subject: str
    text: str

    def message(self, topic: str) -> str:
        """The marker's commit message."""
        return f"topic: {topic}\n\n{self.subject}\n\n{self.text}\n"

    def mail(self, shortlog: list[tuple[str, str]], stat: str) -> str:
        """The file 0000-cover-letter; shortlog holds (author, subject) in order, stat is git's diffstat."""
        count = len(shortlog)
        tag = f"[PATCH {0:0{len(str(count))}d}/{count}] "
        out = (f"{FROM_LINE}\nFrom: {_phrase(self.author)} <{self.email}>\nDate: {_mail_date(self.date)}\n"
               f"Subject: {_encode(tag + self.subject, 9)}\n")
        if not (self.text + "".join(a + s for a, s in shortlog)).isascii():
            out += ("MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n"
                    "Content-Transfer-Encoding: 8bit\n")
        out += f"\n{self.text}\n\n"
        for author in sorted({a for a, _ in shortlog}):
            subjects = [s for a, s in shortlog if a == author]
            out += f"{author} ({len(subjects)}):\n"
            for subject in subjects:
                out += textwrap.fill(subject, 76, initial_indent="  ", subsequent_indent="    ",
                                     break_long_words=False, break_on_hyphens=False) + "\n"
            out += "\n"
        out += stat.rstrip("\n") + "\n\n-- \n"
        if parse_mail(out) != self:
            raise CoverError(f"the cover letter '{self.subject}' does not survive the way to a file and back:"
                             " its text must not look like a shortlog with diffstat, nor end in blanks")
        return out


def marker_topic(subject: str) -> str | None:
    """The topic's name when a commit's subject is a marker's, else None."""
    match = MARKER.fullmatch(subject)
    if not match:
        return None
    if not TOPIC.fullmatch(match[1]):
        raise CoverError(f"topic name '{match[1]}' is not of the form NN-lower-case-words")
    return match[1]


def parse_message(message: str, author: str, email: str, date: str) -> tuple[str, Cover]:
    """(topic, cover) of a marker commit."""
    subject, _, rest = message.partition("\n")
    topic = marker_topic(subject)
    if topic is None:
        raise CoverError(f"'{subject}' is not a topic marker")
    head, _, text = rest.strip("\n").partition("\n")
    if not head or not text.strip() or not text.startswith("\n"):
        raise CoverError(f"marker 'topic: {topic}' needs a body: the cover letter's subject, a blank line, its text")
    return topic, Cover(author, email, date, head.strip(), text.strip("\n"))


def parse_mail(mail: str) -> Cover:
    """The cover of a 0000-cover-letter."""
    head, blank, body = mail.partition("\n\n")
    lines = re.sub(r"\n[ \t]+", " ", head).splitlines()
    if not blank or not lines or lines[0] != FROM_LINE:
        raise CoverError(f"not a cover letter: it does not start with '{FROM_LINE}'")
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
    sender = re.fullmatch(r"(.*?) *<([^<>]*)>", headers.get("from", ""))
    subject = re.fullmatch(r"\[PATCH 0+/[0-9]+\] (.+)", _decode(headers.get("subject", "")))
    parsed = parsedate_tz(headers.get("date", ""))
    tail = TAIL.search("\n\n" + body)
    if not sender or not subject or not parsed:
        raise CoverError("cover letter: From:, Date: or Subject: [PATCH 0/n] is missing or malformed")
    if not tail:
        raise CoverError("cover letter: the generated end (shortlog, diffstat, '-- ') is missing")
    text = ("\n\n" + body)[2:tail.start()]
    minutes = (parsed[9] or 0) // 60
    zone = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}{abs(minutes) % 60:02d}"
    author = re.sub(r'^"(.*)"$', lambda name: re.sub(r"\\(.)", r"\1", name[1]), sender[1])
    return Cover(_decode(author), sender[2], f"{mktime_tz(parsed)} {zone}", subject[1], text)


def _phrase(name: str) -> str:
    if name.isascii() and re.search(r'[()<>@,;:\\".\[\]]', name):
        return '"' + re.sub(r'(["\\])', r"\\\1", name) + '"'
    return _encode(name, 6)


def _encode(text: str, column: int) -> str:
    if text.isascii():
        return text
    return Header(text, "utf-8", header_name="x" * (column - 2)).encode(linesep="\n")


def _decode(value: str) -> str:
    return "".join(part.decode(charset or "ascii") if isinstance(part, bytes) else part
                   for part, charset in decode_header(value))


def _mail_date(raw: str) -> str:
    seconds, zone = raw.split()
    offset = (int(zone[1:3]) * 60 + int(zone[3:5])) * (-60 if zone[0] == "-" else 60)
    return formatdate(int(seconds) + offset, localtime=False)[:-5] + zone
