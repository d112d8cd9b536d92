package build

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// scpLike is git's short form of an SSH address: user@host:path.
var scpLike = regexp.MustCompile(`^[^/\\\s]+@[^/\\\s]+:`)

// isRemote tells a repository's address from a folder.
func isRemote(given string) bool {
	return strings.Contains(given, "://") || scpLike.MatchString(given)
}

// fromGit builds from a clone of a repository at the release's tag, or from a
// working tree that is there already.
func (k kubernetesBuild) fromGit(ctx context.Context, given string) (*Result, error) {
	k.programs = slices.Clone(k.programs)
	for i, p := range k.programs {
		if p.Package == mainPackage {
			k.programs[i].Package = kubernetes + "/cmd/" + KubeScheduler
		}
	}
	if isRemote(given) {
		return k.fromClone(ctx, given)
	}
	t, err := k.readTree(ctx, given)
	if err != nil {
		return nil, err
	}
	return k.buildTree(ctx, "git:"+given, t, func(context.Context) (string, error) { return t.dir, nil })
}

// fromClone builds from a repository. If the tag's commit has been built before,
// nothing is cloned.
func (k kubernetesBuild) fromClone(ctx context.Context, address string) (*Result, error) {
	commit, err := k.remoteTag(ctx, address)
	if err != nil {
		return nil, err
	}
	var t tree
	cloned := ""
	clone := func(ctx context.Context) (string, error) {
		if cloned != "" {
			return cloned, nil
		}
		cloned, err = k.clone(ctx, address)
		return cloned, err
	}
	place := k.cache.fact("commits", commit)
	if found, err := readJSON(place, &t); err != nil || !found || t.Commit != commit {
		dir, err := clone(ctx)
		if err != nil {
			return nil, err
		}
		if t, err = k.readTree(ctx, dir); err != nil {
			return nil, err
		}
		if err := writeJSON(k.cache.fact("commits", t.Commit), t); err != nil {
			return nil, storage(ctx, "remember commit "+t.Commit, err)
		}
	}
	return k.buildTree(ctx, "git:"+withoutUser(address), t, clone)
}

// buildTree builds from a tree whose facts are known; folder brings the tree itself.
func (k kubernetesBuild) buildTree(ctx context.Context, from string, t tree, folder func(context.Context) (string, error)) (*Result, error) {
	named, warnings := k.goNamed(t.Go)
	k.warnings = append(slices.Clone(k.warnings), warnings...)
	if len(t.Tags) > 0 && !slices.Contains(t.Tags, k.release.String()) || len(t.Tags) == 0 && !isRemote(strings.TrimPrefix(from, "git:")) {
		k.warnings = append(k.warnings, fmt.Sprintf("the tree is at commit %.12s, which is not tagged %s; the binaries call themselves %s", t.Commit, k.release, k.release))
	}
	r, targets, err := k.treeRecipe(from, t, k.knownToolchain(named), folder)
	if err != nil {
		return nil, err
	}
	if result, found := k.recall(r, targets); found {
		return result, k.keepModule(ctx, r, result, nil)
	}
	var used toolchain
	err = k.step("fetch Go "+named, func() (err error) { used, err = k.findToolchain(ctx, named); return err })
	if err != nil {
		return nil, err
	}
	if r, targets, err = k.treeRecipe(from, t, used, folder); err != nil {
		return nil, err
	}
	return k.make(ctx, r, targets)
}

func (k kubernetesBuild) treeRecipe(from string, t tree, used toolchain, folder func(context.Context) (string, error)) (*recipe, []target, error) {
	state := "clean"
	if t.changed != "" {
		state = "dirty"
	}
	r := &recipe{
		info: Info{
			Release: k.release.String(), Go: used.Used, GoNamed: used.Named, GoDirective: t.GoDirective,
			Module: kubernetes, Source: from, Commit: t.Commit, Date: t.Date,
			Warnings: k.allWarnings(used, staged{}),
		},
		tree: t.Commit + " " + t.changed, mod: "readonly", tags: buildTags(k.rules),
		ldflags: linkFlags(k.release, k.rules, stamp{commit: t.Commit, treeState: state, date: t.Date}),
	}
	switch {
	case t.Vendored:
		r.mod = "vendor"
	case t.Workspace:
		r.mod = ""
	}
	r.prepare = func(ctx context.Context) (string, string, error) {
		dir, err := folder(ctx)
		if err != nil {
			return "", "", err
		}
		workspace, err := k.goWork(ctx, dir, t)
		return dir, workspace, err
	}
	targets, err := r.targets(k.programs, k.platforms)
	return r, targets, err
}

// remoteTag returns the commit that the release's tag points to in a repository.
func (k kubernetesBuild) remoteTag(ctx context.Context, address string) (commit string, err error) {
	tag := "refs/tags/" + k.release.String()
	step := fmt.Sprintf("look for %s in %s", k.release, withoutUser(address))
	err = k.step(step, func() error {
		out, err := k.git(ctx, step, "", "ls-remote", "--", address, tag, tag+"^{}")
		if err != nil {
			return err
		}
		// The second line, if there is one, is the commit that an annotated
		// tag points to.
		for line := range strings.Lines(out) {
			commit, _, _ = strings.Cut(strings.TrimSpace(line), "\t")
		}
		if commit == "" {
			return &Error{
				Step: step, Cause: CauseBranchUnknown, Message: fmt.Sprintf("the repository has no tag %s", k.release),
				Try: "name a release that exists, such as " + newestTested(k.release),
			}
		}
		return nil
	})
	return commit, err
}

// clone fetches the release's tag, without history.
func (k kubernetesBuild) clone(ctx context.Context, address string) (string, error) {
	space, err := k.workspace(ctx)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(space.module, "kubernetes")
	step := fmt.Sprintf("clone %s of %s", k.release, withoutUser(address))
	return dir, k.step(step, func() error {
		_, err := k.git(ctx, step, "", "-c", "advice.detachedHead=false", "clone", "--quiet", "--depth", "1", "--branch", k.release.String(), "--", address, dir)
		return err
	})
}

// git runs git and returns what it prints. It never asks for a password, and
// never writes into a tree that it only reads.
func (j *job) git(ctx context.Context, step, dir string, args ...string) (string, error) {
	path, err := lookPath(j.env, "git")
	if err != nil {
		return "", &Error{Step: step, Cause: CauseGitMissing, Message: "there is no git command on PATH", Err: err, Try: "install git, or leave the source out to build from the Go modules"}
	}
	if dir == "" {
		space, err := j.workspace(ctx)
		if err != nil {
			return "", err
		}
		dir = space.tmp
	}
	// A person's hook or script may have set these for another repository.
	env := slices.DeleteFunc(slices.Clone(j.env), func(v string) bool {
		return strings.HasPrefix(v, "GIT_DIR=") || strings.HasPrefix(v, "GIT_WORK_TREE=") || strings.HasPrefix(v, "GIT_INDEX_FILE=")
	})
	env = append(env, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	out, err := j.run(ctx, command{path: path, args: args, dir: dir, env: env})
	if err == nil {
		return string(out.stdout), nil
	}
	failed := failure(ctx, step, out.tail, err)
	var known *Error
	if errors.As(failed, &known) && (known.Cause == CauseUnknown || known.Cause == CauseCompile || known.Cause == CauseModuleMissing) {
		known.Cause, known.Message = CauseGit, "git failed"
		known.Try = "see that the address or folder is right and that git itself can read it, without asking for a password"
		if strings.Contains(known.Output, "dubious ownership") {
			known.Try = "the folder belongs to another user: name it in git's safe.directory, or run as that user"
		}
	}
	return "", failed
}

// withoutUser removes user name and password from an address.
func withoutUser(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.User == nil {
		return redact(address)
	}
	parsed.User = nil
	return parsed.String()
}
