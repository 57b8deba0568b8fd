#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The texts of scripts/mail: cover letter with b4's tracking data, MAINTAINERS, authors, mailbox.

    mail_text.py changelog LETTER                    what 0000-cover-letter has below its line '---'; fails if nothing
    mail_text.py author NAME EMAIL OUT PATCH...      copies of the patches, zfolio@localhost replaced by the sender
    mail_text.py maintainers MAINTAINERS SNIPPET     MAINTAINERS with what the snippet has and it has not
    mail_text.py cover LETTER VERSION BRANCH SHORT CHANGE-ID SCRATCH
                                                     message of the cover commit; SCRATCH has b4-cover (that of b4), kept
                                                     (that of an earlier branch), to, cc, range-diff.txt
    mail_text.py sent MESSAGE, change-id MESSAGE     what the tracking data of a cover commit says
    mail_text.py mbox MAIL...                        the patches among the mails as one mailbox
"""

from __future__ import annotations

import json
import re
import sys
from email.utils import formataddr, getaddresses
from pathlib import Path
from typing import Any

from cover_letter import FROM_LINE, CoverError, parse_mail

MARKER = "--- b4-submit-tracking ---"
HARNESS = "zfolio@localhost"


def tracking(message: str) -> dict[str, Any]:
    """b4's tracking data of a cover commit."""
    _, marker, rest = message.partition(MARKER)
    if not marker or "{" not in rest:
        raise CoverError("b4 prep made no cover commit that zfolio can read: is this b4 0.12 or newer?")
    data: dict[str, Any] = json.loads(rest[rest.index("{"):])
    return data


def changelog(letter: Path) -> str:
    text = parse_mail(letter.read_text(encoding="utf-8")).text
    log = ("\n" + text).partition("\n---\n")[2].strip("\n")
    if not log:
        raise CoverError("nothing below a line '---'")
    return log


def author(name: str, email: str, out: Path, patches: list[Path]) -> None:
    """Replaces the harness as author. Another author stays, and is named: his sign-off cannot be added here."""
    for patch in patches:
        head, _, body = patch.read_text(encoding="utf-8", errors="surrogateescape").partition("\n\n")
        lines = re.sub(r"\n[ \t]+", " ", head).split("\n")
        found = next((line for line in lines if line.startswith("From: ")), "")
        if f"<{HARNESS}>" in found:
            lines[lines.index(found)] = f"From: {formataddr((name, email), 'utf-8')}"
        elif f"<{email}>" not in found:
            print(f"mail: note: {patch.name} is by {found[6:]}: it needs their Signed-off-by as well", file=sys.stderr)
        text = "\n".join(lines) + "\n\n" + body
        (out / patch.name).write_text(text, encoding="utf-8", errors="surrogateescape")


def sections(text: str) -> dict[str, list[str]]:
    """The entries of a snippet: title, then its lines."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines():
        if re.match(r"[A-Z]:\s", line):
            found.setdefault(title, []).append(line)
        elif line.strip() and not line.startswith("#"):
            title = line.rstrip()
    return {title: lines for title, lines in found.items() if title}


def maintainers(text: str, snippet: str) -> str:
    """text with each entry of the snippet; an entry that is there already gets the lines that it lacks."""
    lines = text.rstrip("\n").split("\n")
    for title, wanted in sections(snippet).items():
        if title not in lines:
            lines += ["", title]
            start = len(lines)
        else:
            start = lines.index(title) + 1
        end = next((n for n in range(start, len(lines)) if not lines[n].strip()), len(lines))
        lines[end:end] = [line for line in wanted if line not in lines[start:end]]
    return "\n".join(lines) + "\n"


def cover(letter: Path, version: int, branch: str, short: str, change_id: str, scratch: Path) -> str:
    """The cover commit's message: the letter, To and Cc above its '---', changelog and range-diff below, tracking data."""
    mail = parse_mail(letter.read_text(encoding="utf-8"))
    text, _, log = ("\n" + mail.text).partition("\n---\n")
    if bad := next((line for line in mail.text.split("\n") if line.startswith("#") or "EDITME" in line or MARKER in line), ""):
        raise CoverError(f"b4 would drop or refuse the line '{bad}' of the cover letter: indent or reword it, then make refresh")
    seen: set[str] = set()
    people = []
    for field in ("To", "Cc"):
        for name, email in getaddresses((scratch / field.lower()).read_text(encoding="utf-8").splitlines()):
            if "@" in email and email.lower() not in seen:
                seen.add(email.lower())
                quoted = f'"{name}"' if re.search(r"[()<>@,;:\\\".\[\]]", name) else name
                people.append(f"{field}: {quoted} <{email}>" if name else f"{field}: {email}")
    out = f"{mail.subject}\n\n{text.strip(chr(10))}\n\n" + "\n".join(people) + "\n"
    below = [log.strip("\n")] if log.strip() else []
    if diff := (scratch / "range-diff.txt").read_text(encoding="utf-8").rstrip():
        below.append(f"Range-diff against v{version - 1}:\n{diff}")
    if below:
        out += "\n---\n" + "\n\n".join(below) + "\n"
    # What an earlier branch has been through stays: b4 finds the versions of a series by its change-id.
    fresh = tracking((scratch / "b4-cover").read_text(encoding="utf-8"))
    kept = (scratch / "kept").read_text(encoding="utf-8")
    series = fresh["series"]
    series.pop("base-branch", None)
    series["revision"] = version
    series["change-id"] = change_id or series["change-id"].replace(branch.removeprefix("b4/"), short)
    if kept:
        series.update({key: value for key, value in tracking(kept)["series"].items() if key in ("change-id", "history")})
    return (f"{out}\n{MARKER}\n# This section is used internally by b4 prep for tracking purposes.\n"
            f"{json.dumps(fresh, indent=2)}\n")


def mbox(mails: list[Path]) -> bytes:
    """One mailbox of the patches: git am does not take a cover letter, b4 0.12 am no folded From or Subject."""
    out = b""
    for head, _, body in (mail.read_bytes().partition(b"\n\n") for mail in mails):
        if re.search(rb"^diff --git ", body, re.MULTILINE):
            head = re.sub(rb"^(?:From|Subject):.*(?:\n[ \t].*)+", lambda m: re.sub(rb"\n[ \t]+", b" ", m[0]), head, flags=re.M)
            out += FROM_LINE.encode() + b"\n" + head + b"\n\n" + body.rstrip(b"\n") + b"\n\n"
    return out


def main(args: list[str]) -> int:
    out = ""
    try:
        match args:
            case ["changelog", letter]:
                out = changelog(Path(letter)) + "\n"
            case ["author", name, email, place, *patches]:
                author(name, email, Path(place), [Path(patch) for patch in patches])
            case ["maintainers", text, snippet]:
                out = maintainers(Path(text).read_text(encoding="utf-8"), Path(snippet).read_text(encoding="utf-8"))
            case ["cover", letter, version, branch, short, change_id, scratch]:
                out = cover(Path(letter), int(version), branch, short, change_id, Path(scratch))
            case ["sent", message]:
                history = tracking(Path(message).read_text(encoding="utf-8"))["series"].get("history", {})
                out = " " + "".join(f"{version} " for version in history)
            case ["change-id", message]:
                out = tracking(Path(message).read_text(encoding="utf-8"))["series"]["change-id"] + "\n"
            case ["mbox", *mails] if mails:
                sys.stdout.buffer.write(mbox([Path(mail) for mail in mails]))
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except (OSError, UnicodeError, KeyError, ValueError, CoverError) as error:
        print(f"mail: {error}", file=sys.stderr)
        return 1
    sys.stdout.write(out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
