# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# The part of scripts/mail that works in git and with b4: worktree, commits, branch. Sourced by it, shares its variables.
# shellcheck disable=SC2154,SC2034 # set there: stack topic version base patches archive scratch …; used there: tree start head

# What git and b4 must not take from anyone's configuration, the tree's own included: what changes the bytes of a mail or
# a commit, runs a hook or signs. Even a b4 that forgot its -o could not send: the mail program is /bin/false.
settle_config() {
	local pair n=0
	for pair in "user.name=$name" "user.email=$email" "sendemail.from=$name <$email>" sendemail.smtpserver=/bin/false \
		sendemail.identity= b4.sendemail-identity= b4.send-endpoint-web= b4.prep-cover-strategy=commit \
		core.hooksPath=/dev/null core.autocrlf=false core.abbrev=12 commit.gpgsign=false tag.gpgsign=false gc.auto=0 \
		color.ui=false diff.noprefix=false diff.mnemonicPrefix=false diff.srcPrefix=a/ diff.dstPrefix=b/ diff.algorithm=myers \
		diff.context=3 diff.interHunkContext=0 diff.renames=true diff.orderFile=/dev/null format.signature= \
		am.messageId=false am.keepcr=false apply.whitespace=nowarn log.showSignature=false advice.detachedHead=false; do
		export "GIT_CONFIG_KEY_$n=${pair%%=*}" "GIT_CONFIG_VALUE_$n=${pair#*=}"
		n=$((n + 1))
	done
	export GIT_CONFIG_COUNT=$n
}

# b4 in the worktree. Its caches stay here.
b4_here() {
	printf '+ cd %s && %s\n' "$dir" "$(command_line b4 "$@")" >&2
	(
		cd "$dir"
		XDG_CACHE_HOME=$scratch/xdg XDG_DATA_HOME=$scratch/xdg b4 "$@" </dev/null >"$scratch/b4.log" 2>&1
	) || {
		tail -n 12 "$scratch/b4.log" >&2
		die "b4 $1 failed, see above"
	}
}

# build/STACK/mail, clean. What is noted of an earlier branch: its head, so that a failure gives it back.
prepare_worktree() {
	local slug=${stack//[^A-Za-z0-9]/-} at
	dir=$BUILD/$stack/mail
	short=${topic#[0-9][0-9]-}
	branch=b4/${slug,,}-$short
	kernel_git worktree prune
	if [ ! -e "$dir/.git" ]; then
		say "worktree $dir, for mailing"
		run_git "$(kernel_repo)" worktree add -q --detach "$dir" "$base" >&2 || die "git could not add the worktree $dir"
	fi
	[ -z "$(kgit -C "$dir" status --porcelain -uno)" ] ||
		die "$dir has edits that are not committed: commit them (git -C $dir commit) or drop them (git -C $dir checkout -f)"
	for at in rebase-apply rebase-merge CHERRY_PICK_HEAD; do
		[ ! -e "$(kgit -C "$dir" rev-parse --path-format=absolute --git-path "$at")" ] ||
			die "$dir has an unfinished am, rebase or cherry-pick: finish or abort it first"
	done
	at=$(kernel_git for-each-ref --format='%(worktreepath)' "refs/heads/$branch")
	[ -z "$at" ] || [ "$at" = "$dir" ] || die "branch $branch is checked out in $at: check something else out there"
	old=$(kernel_git rev-parse -q --verify "refs/heads/$branch^{commit}") || old=
	tracking
	case $sent in *" v$version "*) die "v$version of $topic was sent already (branch $branch): VERSION=$((version + 1)) makes the next" ;; esac
	started=1
}

# What b4 knows of this topic from an earlier run: tracking (its JSON), and which versions were sent, if any.
tracking() {
	sent=
	: >"$scratch/kept"
	if [ -n "$old" ]; then
		kernel_git log -1 --since=1.year -F --grep='--- b4-submit-tracking ---' --format=%B "$old" >"$scratch/kept"
		[ ! -s "$scratch/kept" ] || sent=$("$TOP/scripts/mail_text.py" sent "$scratch/kept")
	fi
	change_id=
	for t in "$archive/v$version" "$archive/v$((version - 1))"; do
		[ -n "$change_id" ] || [ ! -f "$t/info" ] || change_id=$(sed -n 's/^change-id //p' "$t/info")
	done
}

# Leaves things as they were: called at every exit, does something after a failure only. Each step is tried whatever
# became of the one before it, and the status is that of the failure.
restore() {
	local status=$?
	if [ -n "${started:-}" ]; then
		[ ! -e "$scratch/old" ] || [ -e "$out" ] || mv "$scratch/old" "$out"
		kgit -C "$dir" am --abort >/dev/null 2>&1 || true
		kgit -C "$dir" cherry-pick --abort >/dev/null 2>&1 || true
		kgit -C "$dir" checkout -q -f --detach "$base" || true
		kernel_git update-ref -d "refs/heads/$branch.base" || true
		if [ -n "$old" ]; then
			kernel_git update-ref "refs/heads/$branch" "$old" || true
			kgit -C "$dir" checkout -q "$branch" || true
		else
			kernel_git update-ref -d "refs/heads/$branch" || true
		fi
	fi
	[ -z "${scratch:-}" ] || rm -rf "$scratch"
	rmdir --ignore-fail-on-non-empty -p "$archive" 2>/dev/null || true
	exit "$status"
}

am() { # WHAT GIT-AM-ARGUMENT...
	local what=$1
	shift
	printf '+ git -C %s am %s\n' "$dir" "$what" >&2
	kgit -C "$dir" am --3way "$@" >"$scratch/log" 2>&1 && return
	tail -n 12 "$scratch/log" >&2
	die "$what does not apply to ${base:0:12}: make series STACK=$stack says more"
}

# Sets below (the head of the topics before this one) and applied (of this one, signed off, on top of it).
apply_commits() {
	local t below_patches=()
	kgit -C "$dir" checkout -q --detach "$base"
	for t in "${below_topics[@]}"; do
		mapfile -t below_patches < <(series_patches "$stack" | grep "^$stack/$t/" | sed "s|^|$TOP/patches/|")
		(fixed_committer && am "patches/$stack/$t/*.patch" -q --committer-date-is-author-date "${below_patches[@]}")
	done
	below=$(kgit -C "$dir" rev-parse HEAD)
	# The harness's own name stands for whoever mails.
	mkdir "$scratch/patches"
	"$TOP/scripts/mail_text.py" author "$name" "$email" "$scratch/patches" "${patches[@]}"
	am "--signoff patches/$stack/$topic/*.patch" -q --signoff "$scratch"/patches/*
	applied=$(kgit -C "$dir" rev-parse HEAD)
	tree=$(kgit -C "$dir" rev-parse 'HEAD^{tree}')
}

range_diff() { # against the archived version before this
	local was_base was_head
	was_base=$(sed -n 's/^start //p' "$previous/info")
	was_head=$(sed -n 's/^head //p' "$previous/info")
	if ! kernel_git cat-file -e "$was_head^{commit}" 2>/dev/null; then
		# Made in another kernel repository: its mails give the commits.
		kgit -C "$dir" checkout -q --detach "$below"
		am "${previous#"$TOP"/}/$topic.mbox" -q "$previous/$topic.mbox"
		was_base=$below was_head=$(kgit -C "$dir" rev-parse HEAD)
		kgit -C "$dir" checkout -q --detach "$applied"
	fi
	kgit -C "$dir" range-diff --no-color "$was_base..$was_head" "$below..$applied"
}

# To and Cc as b4 prep --auto-to-cc asks for them, with the entries of MAINTAINERS.snippet.
addresses() {
	local get=(scripts/get_maintainer.pl --mpath "$scratch/MAINTAINERS" --nogit --nogit-fallback --nogit-chief-penguins --norolestats)
	[ -f "$dir/${get[0]}" ] || die "$dir has no ${get[0]}: whom to mail to is not known"
	"$TOP/scripts/mail_text.py" maintainers "$dir/MAINTAINERS" "$TOP/MAINTAINERS.snippet" >"$scratch/MAINTAINERS"
	(
		cd "$dir"
		perl "${get[@]}" --nol "${patches[@]}" >"$scratch/to" && perl "${get[@]}" --nom "${patches[@]}" >"$scratch/cc"
	) 2>"$scratch/log" || { # a Fixes: commit that the tree has not is said there too, and is no failure
		tail -n 12 "$scratch/log" >&2
		die "get_maintainer.pl failed, see above"
	}
	[ -s "$scratch/to" ] || [ -s "$scratch/cc" ] || die "get_maintainer.pl names nobody for $topic: look at MAINTAINERS and MAINTAINERS.snippet"
}

# The branch as b4 prep makes it: a commit with the cover letter and b4's tracking data, then the patches.
make_branch() {
	local cover
	if [ -n "$old" ]; then
		if [ -z "$(kernel_git for-each-ref --points-at "$old" "refs/zfolio/mail/$stack/$topic/")" ]; then
			kernel_git update-ref "refs/heads/$branch.${old:0:12}" "$old"
			say "note: branch $branch has changes of its own; kept as $branch.${old:0:12}"
		fi
		kernel_git update-ref -d "refs/heads/$branch"
	fi
	kgit -C "$dir" checkout -q -B "$branch.base" "$below"
	b4_here prep -n "${branch#b4/}" -f "$below"
	kgit -C "$dir" update-ref -d "refs/heads/$branch.base"
	kgit -C "$dir" log -1 --format=%B >"$scratch/b4-cover"
	"$TOP/scripts/mail_text.py" cover "$letter" "$version" "$branch" "$short" "$change_id" "$scratch" >"$scratch/cover" ||
		die "the cover letter of $topic cannot be mailed, see above"
	cover=$(kgit -C "$dir" commit-tree -p "$below" -F "$scratch/cover" "$below^{tree}")
	kgit -C "$dir" reset -q --soft "$cover"
	start=$cover
	change_id=$("$TOP/scripts/mail_text.py" change-id "$scratch/cover")
	kgit -C "$dir" cherry-pick "$below..$applied" >"$scratch/log" 2>&1 || die "git cherry-pick failed: $(tail -n 1 "$scratch/log")"
	head=$(kgit -C "$dir" rev-parse HEAD)
	# b4's own template closes with a greeting in the sender's name. Untracked, and ignored as the kernel does with dot files.
	[ ! -e "$dir/.b4-config" ] || ! kgit -C "$dir" ls-files --error-unmatch .b4-config >/dev/null 2>&1 || return 0
	# shellcheck disable=SC2016 # b4's placeholders
	{
		printf '%s\n' '${cover}' '' --- '${shortlog}' '' '${diffstat}' --- 'base-commit: ${base_commit}' 'change-id: ${change_id}'
		case $(b4 prep --help 2>/dev/null) in *--edit-deps*) printf '%s\n' '${prerequisites}' ;; esac
		printf '%s\n' '' '-- ' '${signature}'
	} | put "$dir/.b4-cover-template"
	printf '# Written by zfolio (make mail).\n[b4]\n\tprep-cover-template = ./.b4-cover-template\n' | put "$dir/.b4-config"
}

remind() { # what the sender must know
	local doc docs
	docs=$(kernel_git ls-tree --name-only "$base" Documentation/process/ |
		grep -E '/(submitting-patches|submit-checklist|[a-z-]*coding-assistants?|[a-z-]*generated-content)\.rst$' || true)
	if [ -n "$docs" ]; then
		say "you sign these patches off and answer for them. What the kernel asks of a sender, on review and on naming tools:"
		for doc in $docs; do printf '    %s\n' "$dir/$doc" >&2; done
	fi
	grep -q 'assistant\|generated' <<<"$docs" ||
		say "this tree has no document on tools and generated content; newer kernels have, in Documentation/process: read that too"
	[ "$below" = "$base" ] || say "base-commit ${below:0:12} is the head of ${below_topics[-1]}, not an upstream commit: name the series that this one needs"
	[ -n "$TREE" ] || say "base commit ${base:0:12} is an import of Debian's source, which no receiver has: before you send, run this with TREE=/path/to/linux that has tag $(pin_one "$stack" base-tag)"
	[ "$configured" = "$email" ] || say "b4 takes the sender from git config: set user.name and user.email to '$name' and '$email' before you send"
	say "to send: cd $dir && b4 send --reflect (to yourself only), then b4 send (branch $branch)"
}
