# SPDX-License-Identifier: GPL-2.0-only
"""lint: a good stack passes every check, and each check fails on a stack with its defect."""

import os
import re
import shutil
import tempfile
import unittest
from pathlib import Path

from fixture import BASE, COVER, STACK, Lab

GOOD = BASE["mm/zswap.c"].replace("return 0", "return 42")


class Lint(Lab):
    def setUp(self) -> None:
        super().setUp()
        self.make_stack(exported=True)
        self.topic = self.top / "patches" / STACK / "01-answer"
        self.patch = self.topic / "0001-mm-zswap-give-the-answer.patch"

    def lint(self, *names: str, **env: str) -> tuple[int, list[str]]:
        done = self.script("lint", STACK, *names, **env)
        return done.returncode, [line for line in done.stdout.splitlines() if not line.startswith("lint: ")]

    def finds(self, name: str, words: str, **env: str) -> None:
        status, lines = self.lint(name, **env)
        log = (self.build / STACK / "lint" / f"{name}.log").read_text()
        self.assertEqual(status, 1, lines)
        self.assertTrue(lines[0].startswith(f"not ok {name} - "), lines)
        self.assertIn(words, lines[0] + log)
        self.assertNotIn("Traceback", log)
        self.assertEqual(lines[-1], "0 passed, 1 failed, 0 skipped")

    def passes(self, name: str, words: str = "") -> None:
        status, lines = self.lint(name)
        self.assertEqual(status, 0, lines)
        self.assertTrue(lines[0].startswith(f"ok {name} - "), lines)
        self.assertIn(words, lines[0])

    def edit(self, path: Path, old: str, new: str) -> None:
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new))

    def without(self, *tools: str) -> str:
        """A PATH on which the tools are missing."""
        place = self.build / "bin"
        place.mkdir()
        for directory in reversed(os.environ["PATH"].split(":")):
            for file in Path(directory).glob("*") if directory else []:
                link = place / file.name
                link.unlink(missing_ok=True)
                if file.name not in tools:
                    link.symlink_to(file)
        return str(place)


class Whole(Lint):
    def test_a_good_stack_passes(self) -> None:
        status, lines = self.lint()
        counts = re.fullmatch(r"([0-9]+) passed, 0 failed, [0-9]+ skipped", lines[-1])
        self.assertEqual(status, 0, "\n".join(lines))
        self.assertTrue(counts and int(counts[1]) >= 10, lines)
        checks = {line.split(" - ")[0].split()[-1] for line in lines[:-1]}
        self.assertEqual(checks, {path.name for path in (self.top / "scripts/lint.d").iterdir() if os.access(path, os.X_OK)})

    def test_nothing_to_check_is_no_pass(self) -> None:
        for name in ("patches", "kselftests", "kunit"):
            shutil.rmtree(self.top / name)
        self.run_ok("git", "reset", "-q", "--hard", f"refs/zfolio/base/{STACK}", cwd=self.linux)
        status, lines = self.lint("applies-git-am")
        self.assertEqual((status, lines[-1]), (1, "0 passed, 0 failed, 1 skipped"))

    def test_unknown_check(self) -> None:
        status, _ = self.lint("no-such-check")
        self.assertEqual(status, 1)

    def test_a_check_that_crashes_is_a_failure(self) -> None:
        self.put(self.top / "scripts/lint.d/crash", "#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0-only\necho oh; exit 137\n")
        (self.top / "scripts/lint.d/crash").chmod(0o755)
        self.finds("crash", "oh")


class Applies(Lint):
    def test_git_am_names_the_patch(self) -> None:
        self.edit(self.patch, "-\treturn 0;", "-\treturn 7;")
        self.finds("applies-git-am", f"git am fails at patches/{STACK}/01-answer/0001-mm-zswap-give-the-answer.patch")

    def test_git_am_gives_another_tree(self) -> None:
        self.commit("mm: zswap: say more", {"mm/zswap.c": GOOD.replace("42", "43")})
        self.finds("applies-git-am", "another tree than branch")

    def test_branch_still_at_the_base(self) -> None:
        self.run_ok("git", "reset", "-q", "--hard", f"refs/zfolio/base/{STACK}", cwd=self.linux)
        self.passes("applies-git-am")
        self.passes("export-drift", "exports are what the patches give")

    def test_quilt_names_the_patch(self) -> None:
        self.edit(self.patch, "-\treturn 0;", "-\treturn 7;")
        self.finds("applies-quilt", f"quilt push fails at {STACK}/01-answer/0001-mm-zswap-give-the-answer.patch")

    def test_quilt_takes_what_git_does_not(self) -> None:
        self.edit(self.patch, " /* BAD-DOC of the base's own */", " /* fuzz */")
        self.finds("applies-quilt", f"patches/{STACK}/01-answer/{self.patch.name} does not apply")

    def test_quilt_missing_is_said(self) -> None:
        self.finds("applies-quilt", "could not run: quilt is not installed", PATH=self.without("quilt"))


class Drift(Lint):
    def test_exports_as_they_are(self) -> None:
        self.passes("export-drift", "and what the branch gives")

    def test_patch_edited_by_hand(self) -> None:
        self.edit(self.patch, "Nobody knew it so far.", "Everybody knew it.")
        self.finds("export-drift", "0001-mm-zswap-give-the-answer.patch differs (against branch")

    def test_patch_context_edited_by_hand(self) -> None:
        self.edit(self.patch, "@@ int answer(void)" if "@@ int answer(void)" in self.patch.read_text() else " @@", " @@ edited")
        self.finds("export-drift", "0001-mm-zswap-give-the-answer.patch differs (against the applied patches)")

    def test_selftest_edited(self) -> None:
        self.edit(self.top / "kselftests/mm/answer.sh", "1..0", "1..1")
        self.finds("export-drift", "kselftests/mm/answer.sh differs")

    def test_suite_missing_and_stray(self) -> None:
        (self.top / "kunit/mm/tests/zswap_kunit.c").rename(self.top / "kunit/mm/tests/old_kunit.c")
        self.finds("export-drift", "kunit/mm/tests/zswap_kunit.c is missing")
        self.finds("export-drift", "kunit/mm/tests/old_kunit.c comes from no commit")

    def test_mode_changed(self) -> None:
        (self.top / "kselftests/mm/answer.sh").chmod(0o644)
        self.finds("export-drift", "kselftests/mm/answer.sh differs")

    def test_series_edited(self) -> None:
        self.edit(self.top / "series" / STACK, "# topic: 02-header\n", "")
        self.finds("export-drift", f"series/{STACK} differs")

    def test_cover_edited(self) -> None:
        self.edit(self.topic / "0000-cover-letter", "Give it one.", "Give it two.")
        self.finds("export-drift", "0000-cover-letter differs (against branch")

    def test_commit_not_exported(self) -> None:
        self.commit("mm: zswap: say more", {"mm/zswap.c": GOOD.replace("42", "43")})
        self.finds("export-drift", "0002-mm-zswap-say-more.patch is missing (against branch")


class Text(Lint):
    def message(self, subject: str, body: str = "Text.") -> None:
        self.commit(subject, {"mm/zswap.c": GOOD.replace("42", str(len(subject)))}, body=body)
        self.refresh()

    def test_checkpatch(self) -> None:
        self.passes("checkpatch", "3 excused")
        self.commit("mm: zswap: blank", {"mm/zswap.c": GOOD.replace("return 42;", "return 43; ")})
        self.refresh()
        self.finds("checkpatch", "0002-mm-zswap-blank.patch: WARNING:TRAILING_SPACE")

    def test_checkpatch_ignores_only_what_is_listed(self) -> None:
        ignore = self.top / "scripts/lint.d/checkpatch.ignore"
        self.edit(ignore, "MISSING_SIGN_OFF   *", f"MISSING_SIGN_OFF   {STACK}/01-*")
        self.finds("checkpatch", "02-header/0001-mm-zswap-declare-the-last-word.patch: ERROR:MISSING_SIGN_OFF")
        self.put(ignore, "MISSING_SIGN_OFF *\n")
        self.finds("checkpatch", "lacks a pattern or a reason")

    def test_checkpatch_that_does_not_run(self) -> None:
        self.finds("checkpatch", "could not run: perl is not installed", PATH=self.without("perl"))

    def test_kernel_doc(self) -> None:
        self.passes("kernel-doc", "1 warnings of the base's own")
        self.commit("mm: zswap: document", {"mm/zswap.c": GOOD.replace("/* pad */", "/* BAD-DOC */", 1)})
        self.refresh()
        self.finds("kernel-doc", "bad kernel-doc")

    def sparse_lab(self) -> str:
        """A build directory with one .cmd file, and a program that stands for sparse."""
        out = self.build / STACK / "out/base-test"
        source = self.build / STACK / "src"
        self.put(out / "mm/.zswap.o.cmd", f"savedcmd_mm/zswap.o := gcc -nostdinc -I{source}/include -I./include -include "
                 f"{source}/include/linux/zswap.h -DKBUILD_MODNAME='\"zswap\"' -O2 -c -o mm/zswap.o {source}/mm/zswap.c ; objtool\n")
        tool = self.build / "bin/sparse"
        self.put(tool, "#!/bin/bash\n[[ $* == *-DKBUILD_MODNAME=\\\"zswap\\\"* && $* != *-O2* ]] || echo 'bad flags'\n"
                 "for last; do :; done\ngrep -Hn 'BAD' \"$last\" | sed -E 's/^([^:]*:[0-9]+):.*/\\1:1: warning: bad/'\n")
        tool.chmod(0o755)
        return f"{tool.parent}:{os.environ['PATH']}"

    def test_sparse(self) -> None:
        path = self.sparse_lab()
        status, lines = self.lint("sparse", PATH=path)
        self.assertEqual((status, lines[0]), (0, "ok sparse - 1 of 2 touched files were built (base-test), "
                                              "1 complaints about the base, none new"))
        self.commit("mm: zswap: cast", {"mm/zswap.c": GOOD.replace("/* pad */", "/* BAD */", 1)})
        self.refresh()
        self.finds("sparse", "mm/zswap.c:7:1: warning: bad", PATH=path)

    def test_sparse_without_a_build(self) -> None:
        path = self.sparse_lab()
        shutil.rmtree(self.build / STACK / "out")
        status, lines = self.lint("sparse", PATH=path)
        self.assertEqual((status, lines[-1]), (1, "0 passed, 0 failed, 1 skipped"))

    def test_good_messages(self) -> None:
        self.message("mm: zswap: pass the question", "Text.\n\n    " + "quoted " * 20 + "\n\nLink: https://example.org/" + "x" * 80)
        self.passes("messages")

    def test_subject_without_prefix_or_not_imperative(self) -> None:
        self.message("say more")
        self.finds("messages", "is not '[PATCH n/m] subsystem: what to do'")
        self.message("mm: zswap: Added an answer")
        self.finds("messages", "'added': use the imperative")

    def test_long_line_and_no_body(self) -> None:
        self.message("mm: zswap: say more", "word " * 16)
        self.finds("messages", "columns, at most 75")
        self.message("mm: zswap: say nothing", "")
        self.finds("messages", "has no body")

    def test_sign_off(self) -> None:
        self.edit(self.patch, "Nobody knew it so far.", "Text.\n\nSigned-off-by: A. Uthor <author@example.org>")
        self.finds("messages", "a Signed-off-by")

    def test_fixes_tag(self) -> None:
        self.message("mm: zswap: say more", 'Text.\n\nFixes: 1234 ("mm: old")')
        self.finds("messages", "not of the form 'Fixes:")

    def test_cover_letter_line(self) -> None:
        self.marker("03-long", COVER + "word " * 16)
        self.commit("mm: zswap: say more", {"mm/zswap.c": GOOD.replace("42", "43")})
        self.refresh()
        self.finds("messages", "03-long/0000-cover-letter")


class Files(Lint):
    def test_series_and_files(self) -> None:
        self.passes("series-files")
        series, patch = self.top / "series" / STACK, f"{STACK}/01-answer/{self.patch.name}"
        good = series.read_text()
        for text, words in ((good.replace(patch, ""), "is not in series"), (good + f"{STACK}/01-answer/0009-x.patch\n", "does not exist"),
                            (good + patch + "\n", "names one twice"), (good.replace("# base-tag", "# tag"), "base-tag"),
                            (good.replace("0" * 64, "0" * 63), "base-package"), (good.replace("# topic: 01-answer\n", ""), "heading")):
            series.write_text(text)
            self.finds("series-files", words)
        series.write_text(good)
        (self.topic / "0000-cover-letter").rename(self.topic / "notes.txt")
        self.finds("series-files", "01-answer/notes.txt does not belong there")
        self.finds("series-files", "01-answer: no 0000-cover-letter")

    def test_maintainers(self) -> None:
        snippet = self.top / "MAINTAINERS.snippet"
        self.passes("maintainers", "2 new files")
        self.edit(snippet, "F:\tmm/tests/\n", "")
        self.finds("maintainers", "no F: line for mm/tests/zswap_kunit.c")
        self.edit(snippet, "answer.sh", "question.sh")
        self.finds("maintainers", "F: tools/testing/selftests/mm/question.sh is no file that a stack adds")
        snippet.unlink()
        self.finds("maintainers", "could not run: MAINTAINERS.snippet does not exist")

    def test_shellcheck(self) -> None:
        self.put(self.top / "scripts/bad", "#!/bin/bash\n# SPDX-License-Identifier: GPL-2.0-only\nrm -rf $1/*\n")
        self.finds("shellcheck", "scripts/bad:3:")

    def test_python(self) -> None:
        self.put(self.top / "scripts/bad.py", "# SPDX-License-Identifier: GPL-2.0-only\nif True\n")
        self.finds("python-compile", "scripts/bad.py: ")
        self.put(self.top / "scripts/bad.py", "# SPDX-License-Identifier: GPL-2.0-only\nx = '\\d'\n")
        self.finds("python-compile", "invalid escape")

    def test_spdx(self) -> None:
        self.put(self.top / "bench/new.c", "int x;\n")
        self.finds("spdx", "bench/new.c: no SPDX")
        self.put(self.top / "bench/new.c", "// SPDX-License-Identifier: MIT\nint x;\n")
        self.finds("spdx", "bench/new.c: no SPDX")

    def test_machine_path(self) -> None:
        self.put(self.top / "notes.sh", f"# SPDX-License-Identifier: GPL-2.0-only\ncd {self.top.parent}/zfolio\n")
        self.finds("tracked-files", "notes.sh:2: names a path of this machine")

    def test_clone_in_a_common_directory(self) -> None:
        with tempfile.TemporaryDirectory(dir="/tmp") as place:
            self.top = Path(shutil.copytree(self.top, place, symlinks=True, dirs_exist_ok=True))
            self.put(self.top / "notes.sh", "# SPDX-License-Identifier: GPL-2.0-only\ncd /tmp/work\n")
            done = self.script("lint", STACK, "tracked-files")
            self.assertEqual(done.returncode, 0, done.stdout)
            self.put(self.top / "notes.sh", f"# SPDX-License-Identifier: GPL-2.0-only\ncd {place}\n")
            self.assertEqual(self.script("lint", STACK, "tracked-files").returncode, 1)

    def test_pipe_into_an_early_reader(self) -> None:
        for text in ("a | grep -q b", "a | sort |\n\tgrep -e x -q", "a | head -n 1", "a | awk '{ print; exit }'", "a | sed 5q"):
            with self.subTest(text=text):
                self.put(self.top / "notes.sh", f"# SPDX-License-Identifier: GPL-2.0-only\n{text}\n")
                self.finds("pipes", "notes.sh: a | ")
        self.put(self.top / "notes.sh", "# SPDX-License-Identifier: GPL-2.0-only\na | grep b || head -c 1 x\n")
        self.passes("pipes")

    def test_registry_host(self) -> None:
        tool = self.build / "bin" / "apt-get"
        self.put(tool, "#!/bin/sh\necho https://user:word@packages.example.net/debian/\n")
        tool.chmod(0o755)
        self.put(self.top / "notes.txt", "SPDX-License-Identifier: GPL-2.0-only\nfrom packages.example.net\n")
        self.finds("tracked-files", "notes.txt:2: names", PATH=f"{tool.parent}:{os.environ['PATH']}")

    def test_large_file(self) -> None:
        self.put(self.top / "large.txt", "x" * 1200000)
        self.finds("tracked-files", "large.txt: 1200000 bytes")


if __name__ == "__main__":
    unittest.main()
