# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# Shared by every script: paths, messages, the pin of a stack, git without the user's configuration.

set -euo pipefail
umask 022
export LC_ALL=C

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# The name that messages start with: the script that was called.
PROG=${0##*/}

# A caller's git environment (a hook, a rebase) must not reach the kernel trees.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_COMMON_DIR GIT_NAMESPACE

say() { printf '%s: %s\n' "$PROG" "$*" >&2; }
die() { printf '%s: error: %s\n' "$PROG" "$*" >&2; exit 1; }

# A command line as one would type it.
command_line() {
	local w
	for w in "$@"; do
		case $w in
		'' | *[!A-Za-z0-9_./:=,@%+~^-]*) printf " '%s'" "${w//\'/\'\\\'\'}" ;;
		*) printf ' %s' "$w" ;;
		esac
	done | cut -c2-
}
# Print a command so that it can be run by hand, then run it.
run() {
	printf '+ %s\n' "$(command_line "$@")" >&2
	"$@"
}

need() { # COMMAND PACKAGE
	command -v "$1" >/dev/null || die "$1 not found: install package $2 (scripts/install-deps does)"
}

CACHE=${ZFOLIO_CACHE:-~/.cache/zfolio}
TREE=${TREE:-}
BUILD=$TOP/build
if [ -n "$TREE" ]; then
	# The user's own tree gets its own build directory, so that both can be used in turn.
	TREE=$(cd "$TREE" 2>/dev/null && pwd -P) || die "TREE: no such directory"
	BUILD=$TOP/build/tree-$(printf '%s' "$TREE" | sha256sum | cut -c1-8)
fi
export TREE ZFOLIO_BUILD=$BUILD ZFOLIO_CACHE=$CACHE
JOBS=${JOBS:-$(nproc)}

# Git for the kernel trees: same result whatever the user configured (autocrlf, gpgsign, hooks).
kgit() {
	GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null \
		git -c core.hooksPath=/dev/null -c core.autocrlf=false -c gc.auto=0 \
		-c advice.detachedHead=false "$@"
}

# The repository whose objects the kernel worktrees use.
kernel_repo() { if [ -n "$TREE" ]; then printf '%s\n' "$TREE"; else printf '%s\n' "$BUILD/linux.git"; fi; }
kernel_git() { kgit -C "$(kernel_repo)" "$@"; }
run_git() { # DIR ARG...: say the git command as one would type it
	printf '+ %s\n' "$(command_line git -C "$@")" >&2
	kgit -C "$@"
}
# The identity of commits that the harness makes: fixed, so that ids are the same everywhere.
fixed_identity() {
	export GIT_AUTHOR_NAME=zfolio GIT_AUTHOR_EMAIL=zfolio@localhost GIT_AUTHOR_DATE='1735689600 +0000'
	fixed_committer
}
fixed_committer() {
	export GIT_COMMITTER_NAME=zfolio GIT_COMMITTER_EMAIL=zfolio@localhost GIT_COMMITTER_DATE='1735689600 +0000'
}
base_ref() { printf 'refs/zfolio/base/%s\n' "$1"; }

stack_list() { # every stack that series/ knows
	local f
	for f in "$TOP"/series/*; do [ -f "$f" ] && printf '%s\n' "${f##*/}"; done
	return 0
}
stack_check() {
	case $1 in '' | */* | .*) die "no stack named '$1'" ;; esac
	[ -f "$TOP/series/$1" ] || die "no series/$1: known stacks are: $(stack_list | tr '\n' ' ')"
}
pin() { # STACK KEY: the values of `# KEY: value` lines, in order
	sed -n "s/^# $2: *//p" "$TOP/series/$1"
}
pin_one() {
	local v
	v=$(pin "$1" "$2")
	[ -n "$v" ] || die "series/$1: no '# $2:' line"
	printf '%s\n' "${v%%$'\n'*}"
}
series_patches() { # STACK: paths below patches/, in order
	sed -e 's/[[:space:]]*#.*//' -e '/^[[:space:]]*$/d' "$TOP/series/$1"
}
# What the patches of a stack are, as one hash: the order and the content, cover letters too.
series_hash() {
	local p letters=()
	for p in "$TOP/patches/$1"/*/0000-cover-letter; do [ ! -f "$p" ] || letters+=("$p"); done
	{
		series_patches "$1" | while IFS= read -r p; do
			printf '%s\n' "$p"
			cat "$TOP/patches/$p" || exit 1
		done
		[ ${#letters[@]} -eq 0 ] || cat "${letters[@]}"
	} | sha256sum | cut -c1-64
}

# One build at a time for a build directory; a script called by the holder does not wait for itself.
lock_build() {
	[ -z "${ZFOLIO_LOCKED:-}" ] || return 0
	mkdir -p "$BUILD"
	exec 9>"$BUILD/.lock"
	if ! flock -n 9; then
		say "waiting for another zfolio command that is building"
		flock 9
	fi
	export ZFOLIO_LOCKED=1
}

# Write stdin to a file in one step: a reader sees the old or the new content.
put() { # FILE
	local t=$1.tmp.$$
	cat >"$t"
	mv -f "$t" "$1"
}
