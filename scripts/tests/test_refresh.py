# SPDX-License-Identifier: GPL-2.0-only
"""refresh-series: what it writes, that it is the inverse of applying, and what it refuses."""

import re

from fixture import BASE, COVER, STACK, Lab

EXPORTS = ("patches", "series", "kselftests", "kunit")


class Writes(Lab):
    def test_every_export(self) -> None:
        self.make_stack()
        self.refresh()
        files = self.files(*EXPORTS)
        self.assertEqual(sorted(files), [
            "kselftests/mm/answer.sh", "kunit/mm/tests/zswap_kunit.c",
            f"patches/{STACK}/01-answer/0000-cover-letter",
            f"patches/{STACK}/01-answer/0001-mm-zswap-give-the-answer.patch",
            f"patches/{STACK}/01-answer/0002-mm-zswap-test-the-answer.patch",
            f"patches/{STACK}/02-header/0000-cover-letter",
            f"patches/{STACK}/02-header/0001-mm-zswap-declare-the-last-word.patch", f"series/{STACK}"])
        self.assertTrue(files["kselftests/mm/answer.sh"][1], "the selftest stays executable")
        cover = files[f"patches/{STACK}/01-answer/0000-cover-letter"][0].decode()
        self.assertIn("Subject: [PATCH 0/2] mm: answer questions\n", cover)
        self.assertIn("A. Uthor (2):\n  mm: zswap: give the answer\n  mm: zswap: test the answer\n", cover)
        self.assertIn(" create mode 100755 tools/testing/selftests/mm/answer.sh\n", cover)
        patch = files[f"patches/{STACK}/01-answer/0001-mm-zswap-give-the-answer.patch"][0].decode()
        self.assertTrue(patch.startswith("From " + "0" * 40 + " Mon Sep 17 00:00:00 2001\nFrom: \"A. Uthor\" <"))
        self.assertIn("Subject: [PATCH 1/2] mm: zswap: give the answer\n", patch)
        self.assertRegex(patch, r"\nindex [0-9a-f]{40}\.\.[0-9a-f]{40} 100644\n")
        series = files[f"series/{STACK}"][0].decode()
        self.assertIn("# base-tag: v1.0.7\n", series)
        self.assertEqual(series.count("# topic: "), 2)
        self.assertTrue(series.endswith(f"# topic: 02-header\n{STACK}/02-header/0001-mm-zswap-declare-the-last-word.patch\n"))

    def test_again_changes_nothing_and_a_dropped_patch_goes(self) -> None:
        self.make_stack(exported=True)
        before = self.files(*EXPORTS)
        self.refresh()
        self.assertEqual(self.files(*EXPORTS), before)
        self.run_ok("git", "reset", "-q", "--hard", "HEAD~3", cwd=self.linux)
        self.run_ok("git", "add", "kselftests", "kunit")
        self.refresh()
        self.assertEqual(sorted(self.files(*EXPORTS)), [
            f"patches/{STACK}/01-answer/0000-cover-letter",
            f"patches/{STACK}/01-answer/0001-mm-zswap-give-the-answer.patch", f"series/{STACK}"])

    def test_same_bytes_whatever_git_is_configured_to_do(self) -> None:
        self.make_stack(exported=True)
        before = self.files(*EXPORTS)
        config = self.top / "build" / "gitconfig"
        self.put(config, "[diff]\n\tnoprefix = true\n\tcontext = 9\n\talgorithm = patience\n[core]\n\tabbrev = 7\n"
                         "[format]\n\tsignature = me\n\tsubjectPrefix = RFC\n\tsignOff = true\n\tthread = true\n")
        self.run_ok("git", "config", "diff.noprefix", "true", cwd=self.linux)
        self.run_ok("git", "config", "format.subjectPrefix", "RFC", cwd=self.linux)
        done = self.script("refresh-series", STACK, GIT_CONFIG_GLOBAL=str(config))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.files(*EXPORTS), before)

    def test_other_stacks_exports_stay(self) -> None:
        self.make_stack()
        other = self.top / "patches/v2.0/01-other/0001-x.patch"
        self.put(other, "diff --git a/mm/tests/other_kunit.c b/mm/tests/other_kunit.c\nnew file mode 100644\n")
        self.put(self.top / "kunit/mm/tests/other_kunit.c", "int other;\n")
        self.put(self.top / "kunit/mm/tests/stale_kunit.c", "int stale;\n")
        self.run_ok("git", "add", "kunit")
        self.refresh()
        self.assertEqual(sorted(self.files("kunit")), ["kunit/mm/tests/other_kunit.c", "kunit/mm/tests/zswap_kunit.c"])
        self.assertTrue(other.is_file())

    def test_a_file_that_git_does_not_know_is_not_removed(self) -> None:
        self.make_stack()
        self.put(self.top / "kselftests/mm/draft.c", "int draft;\n")
        done = self.script("refresh-series", STACK)
        self.assertEqual(done.returncode, 2)
        self.assertIn("kselftests/mm/draft.c comes from no commit", done.stdout.splitlines()[-1])
        self.assertEqual(sorted(self.files(*EXPORTS)), ["kselftests/mm/draft.c", f"series/{STACK}"])

    def test_check_names_differences_and_writes_nothing(self) -> None:
        self.make_stack()
        done = self.script("refresh-series", STACK, "--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("kselftests/mm/answer.sh is missing", done.stdout)
        self.assertEqual(sorted(self.files(*EXPORTS)), [f"series/{STACK}"])


class Inverse(Lab):
    """refresh, apply to the base, refresh again: the same bytes."""

    def reapply(self) -> None:
        self.run_ok("git", "reset", "-q", "--hard", f"refs/zfolio/base/{STACK}", cwd=self.linux)
        for topic in sorted((self.top / "patches" / STACK).iterdir()):
            done = self.script("cover-letter", "commit", str(self.linux), str(topic / "0000-cover-letter"))
            self.assertEqual(done.returncode, 0, done.stdout)
            self.run_ok("git", "am", "-q", "--3way", *map(str, sorted(topic.glob("*.patch"))), cwd=self.linux)

    def test_plain(self) -> None:
        self.make_stack(exported=True)
        before, log = self.files(*EXPORTS), self.run_ok("git", "log", "--format=%an%ae%ad%B%T", cwd=self.linux)
        self.reapply()
        self.assertEqual(self.run_ok("git", "log", "--format=%an%ae%ad%B%T", cwd=self.linux), log)
        self.refresh()
        self.assertEqual(self.files(*EXPORTS), before)

    def test_names_dates_and_text_that_are_not_plain(self) -> None:
        self.make_kernel()
        cover = ("mm: zswap: größer — and a subject that is long enough to be folded into two header lines\n\n"
                 "Zahlen:\n\n  Someone (2):\n    not: a shortlog\n\n mm/zswap.c | 2 +-\n\n# not a comment\n\n---\nSeit v1: ß\n")
        self.run_ok("git", "commit", "-q", "--allow-empty", "--cleanup=verbatim", "--date=2020-02-03T04:05:06 -0330",
                    "--author=Jürgen Groß <j@example.org>", "-m", f"topic: 01-a\n\n{cover}", cwd=self.linux)
        self.commit("mm: zswap: give the answer", {"mm/zswap.c": BASE["mm/zswap.c"].replace("return 0", "return 42")},
                    author="Zoë <z@example.org>")
        self.commit("mm: zswap: give a larger answer", {"mm/zswap.c": BASE["mm/zswap.c"].replace("return 0", "return 43")})
        self.refresh()
        before = self.files(*EXPORTS)
        self.assertIn("Date: Mon, 03 Feb 2020 04:05:06 -0330".encode(), before[f"patches/{STACK}/01-a/0000-cover-letter"][0])
        self.reapply()
        self.refresh()
        self.assertEqual(self.files(*EXPORTS), before)

    def test_plain_git_am_without_markers_gives_the_same_tree(self) -> None:
        self.make_stack(exported=True)
        tree = self.run_ok("git", "rev-parse", "HEAD^{tree}", cwd=self.linux)
        self.run_ok("git", "reset", "-q", "--hard", f"refs/zfolio/base/{STACK}", cwd=self.linux)
        self.run_ok("bash", "-c", f"git am -q '{self.top}'/patches/{STACK}/*/*.patch", cwd=self.linux)
        self.assertEqual(self.run_ok("git", "rev-parse", "HEAD^{tree}", cwd=self.linux), tree)

    def test_message_is_what_the_marker_said(self) -> None:
        self.make_stack(exported=True)
        done = self.script("cover-letter", "message", f"patches/{STACK}/02-header/0000-cover-letter")
        self.assertEqual(done.stdout, f"topic: 02-header\n\n{COVER}")


class Refuses(Lab):
    def refused(self, *words: str) -> None:
        before = self.files(*EXPORTS)
        done = self.script("refresh-series", STACK)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        last = done.stdout.strip().splitlines()[-1]
        self.assertTrue(re.match(r"refresh-series: error: ", last), done.stdout)
        for word in words:
            self.assertIn(word, last)
        self.assertEqual(self.files(*EXPORTS), before, "nothing may be written")

    def change(self, number: int) -> dict[str, str]:
        return {"mm/zswap.c": BASE["mm/zswap.c"].replace("return 0", f"return {number}")}

    def test_commit_before_the_first_marker(self) -> None:
        self.make_kernel()
        self.commit("mm: zswap: too early", self.change(2))
        self.refused("too early", "before the first")

    def test_fixup(self) -> None:
        self.make_stack()
        self.commit("fixup! mm: zswap: give the answer", self.change(2))
        self.refused("fixup!", "squash it first")

    def test_sign_off(self) -> None:
        self.make_stack()
        self.commit("mm: zswap: sign", self.change(2), body="Text.\n\nSigned-off-by: A. Uthor <author@example.org>")
        self.refused("sign", "Signed-off-by")

    def test_empty_patch_and_full_marker(self) -> None:
        self.make_stack()
        self.commit("mm: zswap: do nothing", {})
        self.refused("do nothing", "changes no file")
        self.run_ok("git", "reset", "-q", "--hard", "HEAD~1", cwd=self.linux)
        self.commit("topic: 03-full", self.change(3), body=COVER)
        self.refused("03-full", "must not")

    def test_topics_out_of_order_or_badly_named(self) -> None:
        self.make_stack()
        self.marker("01-again")
        self.refused("01-again", "order")
        self.run_ok("git", "reset", "-q", "--hard", "HEAD~1", cwd=self.linux)
        self.marker("Third")
        self.refused("Third", "NN-")

    def test_marker_without_text(self) -> None:
        self.make_kernel()
        self.marker("01-bare", "only a subject")
        self.commit("mm: zswap: answer", self.change(2))
        self.refused("01-bare", "needs a body")

    def test_sixteen_patches_and_none(self) -> None:
        self.make_kernel()
        self.marker("01-long")
        self.refused("01-long", "0 patches")
        for number in range(1, 17):
            self.commit(f"mm: zswap: answer {number}", self.change(number))
        self.refused("01-long", "16 patches")

    def test_merge(self) -> None:
        self.make_stack()
        self.run_ok("git", "checkout", "-q", "-b", "side", "HEAD~1", cwd=self.linux)
        self.commit("mm: zswap: side", self.change(9))
        self.run_ok("git", "checkout", "-q", f"zfolio/{STACK}", cwd=self.linux)
        self.run_ok("git", "merge", "-q", "--no-edit", "side", cwd=self.linux)
        self.refused("straight line")

    def test_subject_that_git_am_would_cut(self) -> None:
        self.make_stack()
        self.commit("[RFC] mm: zswap: ask", self.change(2))
        self.refused("[RFC]")

    def test_edits_that_are_not_committed(self) -> None:
        self.make_stack()
        self.put(self.linux / "mm/zswap.c", "int edited;\n")
        self.refused("not committed")

    def test_rebase_under_way(self) -> None:
        self.make_stack()
        self.run_cmd("git", "rebase", "-q", "-x", "false", "HEAD~1", cwd=self.linux)
        self.refused("under way")

    def test_unknown_stack(self) -> None:
        done = self.script("refresh-series", "v9.9")
        self.assertEqual((done.returncode, done.stdout.count("\n")), (1, 1))
        self.assertIn("v9.9", done.stdout)
