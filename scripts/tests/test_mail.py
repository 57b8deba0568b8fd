# SPDX-License-Identifier: GPL-2.0-only
"""mail: what it refuses, and that nothing is ever sent; with a b4 that notes how it is called."""

import email
import os
import re
import shutil
import subprocess
from email.message import Message
from pathlib import Path

from fixture import BASE, SCRIPTS, STACK, Lab

TOPIC = "01-answer"
SENDER = "Signed-off-by: A. Uthor <author@example.org>"
# Stands for b4: notes its arguments, makes branch and mails as b4 does. Fails where it would send.
FAKE_B4 = r"""#!/bin/bash
printf '%s\n' "$*" >>"$B4_LOG"
case "$1 $2" in
"prep -n") git checkout -q -b "b4/$3" "$5" && git commit -q --allow-empty -F - <<'END' ;;
EDITME: cover title

--- b4-submit-tracking ---
# used by b4
{ "series": { "revision": 1, "change-id": "20260101-v1-0-answer-0123", "prefixes": [] } }
END
"send -o") git format-patch -q -o "$3" --suffix=.eml --subject-prefix=PATCH "$(git log -1 --format=%H --grep=b4-submit)..HEAD"
	sed -i 1d "$3"/*.eml
	git log -1 --format=%B "$(git log -1 --format=%H --grep=b4-submit)" >"$3/0000-cover.eml" ;;
"prep --help") echo ;;
*) exit 1 ;;
esac
"""


class MailLab(Lab):
    fake = True

    def setUp(self) -> None:
        super().setUp()
        self.make_stack(exported=True)
        self.bin, self.log = self.top / "build/bin", self.top / "build/b4.log"
        self.out = self.build / "mail" / STACK / TOPIC
        self.tree = self.top.parent / "linux"
        if self.fake:
            self.put(self.bin / "b4", FAKE_B4)
            (self.bin / "b4").chmod(0o755)
        self.env = {"PATH": f"{self.bin}:{os.environ['PATH']}", "B4_LOG": str(self.log), "HOME": str(self.top / "build")}

    def mail(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self.script("mail", STACK, *args, **self.env | env)

    def mail_ok(self, *args: str, **env: str) -> str:
        done = self.mail(*args, **env)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def refused(self, *args: str, says: str, **env: str) -> None:
        """One line, no archive, no branch."""
        done = self.mail(*args, **env)
        self.assertEqual((done.returncode, done.stdout.count("\n")), (1, 1), done.stdout)
        self.assertRegex(done.stdout, says)
        self.assertFalse(self.log.exists(), "b4 was called")

    def git(self, *args: str, repo: Path | None = None) -> str:
        return self.run_ok("git", *args, cwd=repo or self.build / "linux.git").strip()

    def mails(self, version: int = 1, topic: str = TOPIC) -> list[Message]:
        return [email.message_from_bytes(path.read_bytes()) for path in
                sorted((self.build / "mail" / STACK / topic / f"v{version}").glob("*.eml"))]

    def body(self, mail: Message) -> str:
        data = mail.get_payload(decode=True)
        assert isinstance(data, bytes)
        return data.decode()

    def change_topic(self) -> None:
        """Another answer, by way of the export: the patches of the archive and of the stack differ then."""
        self.run_ok("git", "reset", "-q", "--hard", f"refs/zfolio/base/{STACK}", cwd=self.linux)
        self.marker(TOPIC)
        self.commit("mm: zswap: give the answer", {"mm/zswap.c": BASE["mm/zswap.c"].replace("return 0", "return 43")})
        self.run_ok("git", "add", "kselftests", "kunit")
        self.refresh()

    def user_tree(self) -> None:
        """The user's own clone, with the tag of the base, a branch and an edit."""
        self.git("clone", "-q", str(self.build / "linux.git"), str(self.tree), "-b", f"zfolio/{STACK}")
        base = self.git("rev-parse", f"refs/zfolio/base/{STACK}")
        for args in (("checkout", "-q", "-b", "mine", base), ("tag", "v1.0.7", base)):
            self.git(*args, repo=self.tree)
        self.put(self.tree / "Makefile", "edited\n")
        self.put(self.tree / "new", "new\n")


class Refuses(MailLab):
    def test_unknown_topic_lists_the_known(self) -> None:
        self.refused("nothing", says=f"'nothing' is no topic of {STACK}; its topics: 01-answer 02-header$")
        self.refused("", says=f"TOPIC=name is missing; topics of {STACK}: 01-answer 02-header$")

    def test_no_identity(self) -> None:
        nobody = {f"GIT_{role}_{key}": "" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
        self.refused(TOPIC, says="no identity to sign off with: git config", **nobody)
        self.refused(TOPIC, says="no identity", GIT_COMMITTER_EMAIL="zfolio@localhost")
        self.assertFalse(self.out.exists())

    def test_identity_of_git_config(self) -> None:
        nobody = {f"GIT_{role}_{key}": "" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
        self.put(self.top / "build/gitconfig", "[user]\n\tname = J\u00fcrgen Gro\u00df\n\temail = j@example.org\n")
        self.mail_ok(TOPIC, GIT_CONFIG_GLOBAL=str(self.top / "build/gitconfig"), **nobody)
        for mail in self.mails()[1:]:
            self.assertIn("\nSigned-off-by: J\u00fcrgen Gro\u00df <j@example.org>\n", self.body(mail))

    def test_second_version_without_the_first(self) -> None:
        self.refused(TOPIC, "2", says="VERSION=2 needs the posting before it, build/mail/.*/v1")
        for bad in ("0", "v2", "2x"):
            self.refused(TOPIC, bad, says="is not a number")

    def test_more_than_fifteen_patches(self) -> None:
        series = self.top / "series" / STACK
        name = f"{STACK}/{TOPIC}/0002-mm-zswap-test-the-answer.patch"
        series.write_text(series.read_text().replace(name, "\n".join([name] * 15)))
        self.refused(TOPIC, says="16 patches, more than the 15")

    def test_no_b4(self) -> None:
        tools = self.top / "build/tools"
        for tool in ("bash", "git", "sed", "grep", "dirname", "mkdir", "nproc", "tr", "cut", "env"):
            tools.mkdir(exist_ok=True)
            (tools / tool).symlink_to(str(shutil.which(tool)))
        self.refused(TOPIC, says="b4 not found: install package b4", PATH=str(tools))


class Versions(MailLab):
    def test_what_was_sent_is_not_made_again(self) -> None:
        """b4 notes in the branch what it sent."""
        self.mail_ok(TOPIC)
        mail = self.build / STACK / "mail"
        sent = self.git("log", "-1", "--format=%B", "--grep=b4-submit", repo=mail).replace('"revision": 1', '"revision": 2')
        sent = sent.replace('"prefixes": []', '"prefixes": [], "history": {"v1": ["20260101-answer@example.org"]}')
        self.git("commit", "-q", "--allow-empty", "-m", sent, repo=mail)
        done = self.mail(TOPIC)
        self.assertRegex(done.stdout.splitlines()[-1], "v1 of 01-answer was sent already.*VERSION=2")
        self.mail_ok(TOPIC, "2")
        self.assertIn("20260101-answer@example.org", self.git("log", "-1", "--format=%B", "--grep=b4-submit", repo=mail))


class NeverSends(MailLab):
    def test_every_call_of_b4_writes_files(self) -> None:
        self.mail_ok(TOPIC)
        self.change_topic()
        self.mail_ok("answer", "2")
        calls = self.log.read_text().splitlines()
        sends = [call.split() for call in calls if call.split()[0] == "send"]
        self.assertEqual(len(sends), 2, calls)
        for call in sends:
            self.assertEqual((call[1], call[3:]), ("-o", ["--no-sign"]), calls)
        self.assertFalse([call for call in calls if call.split()[0] not in ("send", "prep")])

    def test_no_line_of_the_scripts_sends(self) -> None:
        text = "".join((SCRIPTS / name).read_text() for name in ("mail", "mail-branch.sh", "mail_text.py"))
        calls = re.findall(r"^(?!\s*(?:say|#)).*\b(?:b4_here|b4)[ \"',]+send\b.*$", text, re.MULTILINE)
        self.assertEqual(calls, ['b4_here send -o "$new" --no-sign'])
        self.assertFalse(re.search(r"send-email|smtplib", text))

    def test_a_failure_leaves_what_was_there(self) -> None:
        self.mail_ok(TOPIC)
        before = self.files("build/mail"), self.git("for-each-ref")
        self.change_topic()
        # This b4 loses a patch.
        self.put(self.bin / "b4", FAKE_B4 + 'rm -f "$3"/0001*.eml "$3"/0002*.eml\n')
        done = self.mail(TOPIC)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.files("build/mail"), before[0])
        refs = re.sub(r"\S+ commit\trefs/heads/zfolio/.*\n", "", before[1])
        self.assertEqual(re.sub(r"\S+ commit\trefs/heads/zfolio/.*\n", "", self.git("for-each-ref")), refs)
