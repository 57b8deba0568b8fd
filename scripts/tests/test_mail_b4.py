# SPDX-License-Identifier: GPL-2.0-only
"""mail with the real b4: what the mails hold, that they give the tree again, versions, the user's own tree."""

import re
import shutil
import unittest

from fixture import STACK
from test_mail import SENDER, TOPIC, MailLab


@unittest.skipUnless(shutil.which("b4"), "b4 is not installed")
class WithB4(MailLab):
    fake = False

    def test_round_trip_and_what_the_mails_hold(self) -> None:
        # A subject that is folded in a header.
        patch = self.top / "patches" / STACK / TOPIC / "0002-mm-zswap-test-the-answer.patch"
        patch.write_text(patch.read_text().replace("test the answer", "test the answer, and everything that led to it being asked at all"))
        out = self.mail_ok(TOPIC)
        base, mbox = self.git("rev-parse", f"refs/zfolio/base/{STACK}"), self.out / f"v1/{TOPIC}.mbox"
        self.assertEqual(out.splitlines()[-1], str(mbox))
        self.assertRegex(out, "is an import of Debian's source.*TREE=.*v1.0.7")
        self.assertIn("Documentation/process/submitting-patches.rst", out)
        self.assertRegex(out, "b4 send --reflect")
        # git am of the mailbox, and of what b4 am makes of it, on the base.
        want = self.git("rev-parse", f"zfolio/{STACK}~2^{{tree}}")
        self.git("worktree", "add", "-q", "--detach", str(self.tree), base)
        self.git("am", "-q", str(mbox), repo=self.tree)
        self.assertEqual(self.git("rev-parse", "HEAD^{tree}", repo=self.tree), want)
        # A newer b4 am looks for review trailers in the network.
        if self.run_ok("b4", "--version", **self.env).startswith("0.12"):
            self.git("checkout", "-q", "--detach", base, repo=self.tree)
            self.git("config", "user.email", "author@example.org", repo=self.tree)
            (self.top / "build/am").mkdir()
            self.run_ok("b4", "am", "-m", str(mbox), "-o", str(self.top / "build/am"), cwd=self.tree, **self.env)
            self.git("am", "-q", *map(str, (self.top / "build/am").glob("*.mbx")), repo=self.tree)
            self.assertEqual(self.git("rev-parse", "HEAD^{tree}", repo=self.tree), want)

        cover, *patches = self.mails()
        self.assertEqual(cover["Subject"], "[PATCH 0/2] mm: answer questions")
        text = self.body(cover)
        self.assertTrue(text.startswith("The kernel has no answer. Give it one.\n\n---\nv2: a better answer\n\n---\nA. Uthor (2):\n"), text)
        self.assertIn(f"\nbase-commit: {base}\n", text)
        self.assertNotIn("Best regards", text)
        # The keeper of the snippet's file and of the tree's: one entry, once.
        for mail in (cover, *patches):
            self.assertEqual((mail["To"], mail["Cc"]), ('"Z. Keeper" <keeper@example.org>', "zswap@example.org, \"A. Uthor\" <author@example.org>"))
        self.assertEqual([self.body(mail).count(SENDER) for mail in patches], [1, 1])
        self.assertEqual({mail["From"] for mail in patches}, {'"A. Uthor" <author@example.org>'})

    def test_harness_as_author_becomes_the_sender(self) -> None:
        for patch in (self.top / "patches" / STACK / TOPIC).iterdir():
            patch.write_text(re.sub("^From: .*$", "From: zfolio <zfolio@localhost>", patch.read_text(), count=1, flags=re.M))
        self.mail_ok(TOPIC)
        self.assertNotIn("zfolio", (self.out / f"v1/{TOPIC}.mbox").read_text())

    def test_second_topic_stands_on_the_first(self) -> None:
        out = self.mail_ok("header")
        self.assertRegex(out, "base-commit .* is the head of 01-answer, not an upstream commit")
        head = "b4/v1-0-header"
        self.assertEqual(self.git("rev-parse", f"{head}^{{tree}}"), self.git("rev-parse", f"zfolio/{STACK}^{{tree}}"))
        self.assertEqual(self.git("rev-parse", f"{head}~2^{{tree}}"), self.git("rev-parse", f"zfolio/{STACK}~2^{{tree}}"))
        self.assertNotIn(SENDER, self.git("log", "--format=%B", f"{head}~2"))

    def test_second_version(self) -> None:
        self.mail_ok(TOPIC)
        self.change_topic()
        first = self.files(f"build/mail/{STACK}/{TOPIC}/v1")
        self.mail_ok(TOPIC, "2")
        self.assertEqual(self.files(f"build/mail/{STACK}/{TOPIC}/v1"), first, "the archive stays")
        # One patch: its cover letter is in the mail, below the ---.
        text = self.body(self.mails(2)[0])
        self.assertEqual(self.mails(2)[0]["Subject"], "[PATCH v2] mm: zswap: give the answer")
        self.assertIn("v2: a better answer\n", text)
        self.assertRegex(text, r"Range-diff against v1:\n1:  [0-9a-f]+ [!=] 1:  [0-9a-f]+ mm: zswap: give the answer\n")
        ids = [re.search("^change-id (.*)$", (self.out / f"v{n}/info").read_text(), re.M) for n in (1, 2)]
        self.assertEqual(ids[0] and ids[0][1], ids[1] and ids[1][1])
        self.assertRegex(self.mail(TOPIC, "1").stdout, "the archive holds v2")

    def test_second_version_without_changelog(self) -> None:
        self.mail_ok(TOPIC)
        letter = self.top / "patches" / STACK / TOPIC / "0000-cover-letter"
        letter.write_text(letter.read_text().replace("---\nv2: a better answer\n", ""))
        done = self.mail(TOPIC, "2")
        self.assertEqual(done.stdout.count("\n"), 1, done.stdout)
        self.assertRegex(done.stdout, "has no changelog")

    def test_again_and_a_branch_with_changes_is_kept(self) -> None:
        self.mail_ok(TOPIC)
        mail = self.build / STACK / "mail"
        self.assertNotIn("kept as", self.mail_ok(TOPIC))
        self.git("commit", "-q", "--allow-empty", "-m", "by hand", repo=mail)
        mine = self.git("rev-parse", "HEAD", repo=mail)
        out = self.mail_ok(TOPIC)
        self.assertIn(f"kept as b4/v1-0-answer.{mine[:12]}", out)
        self.assertEqual(self.git("rev-parse", f"b4/v1-0-answer.{mine[:12]}"), mine)

    def test_what_git_is_configured_to_do_does_not_matter(self) -> None:
        self.put(self.top / "build/gitconfig", "[diff]\n\tnoprefix = true\n\tmnemonicPrefix = true\n[color]\n\tui = always\n[commit]\n"
                 "\tgpgsign = true\n[core]\n\thooksPath = /bin\n[format]\n\tsignOff = true\n[sendemail]\n\tfrom = x@example.org\n")
        self.mail_ok(TOPIC, GIT_CONFIG_GLOBAL=str(self.top / "build/gitconfig"))
        self.assertEqual(self.body(self.mails()[1]).count("Signed-off-by"), 1)

    def test_tree_of_the_user_stays(self) -> None:
        self.user_tree()
        state = [("symbolic-ref", "HEAD"), ("rev-parse", "HEAD"), ("status", "--porcelain"), ("config", "--local", "--get-regexp", "^core"),
                 ("rev-parse", f"refs/remotes/origin/zfolio/{STACK}")]
        before = [self.git(*args, repo=self.tree) for args in state]
        out = self.mail_ok(TOPIC, TREE=str(self.tree))
        self.assertEqual([self.git(*args, repo=self.tree) for args in state], before)
        self.assertNotIn("is an import", out)
        self.assertEqual(self.git("rev-parse", "b4/v1-0-answer^{tree}", repo=self.tree), self.git("rev-parse", f"zfolio/{STACK}~2^{{tree}}"))
        # The next version is made elsewhere: the archive has what its range-diff needs.
        self.change_topic()
        self.mail_ok(TOPIC, "2")
        self.assertIn("give the answer", (self.out / "v2/range-diff.txt").read_text())
