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

// isRemote reports whether a source is a repository's address, not a directory.
func isRemote(given string) bool {
	return strings.Contains(given, "://") || scpLike.MatchString(given)
}

// fromGit builds from a clone of a repository at the release's tag, or from an existing working
// tree.
func (k *releaseBuild) fromGit(ctx context.Context, given string) (*Result, error) {
	k.programs = slices.Clone(k.programs)
	for i, p := range k.programs {
		if p.Package == SchedulerPackage {
			k.programs[i].Package = kubernetes + "/cmd/" + KubeScheduler
		}
	}
	if isRemote(given) {
		return k.fromClone(ctx, given)
	}
	t, err := k.git.readTree(ctx, given)
	if err != nil {
		return nil, err
	}
	return k.buildTree(ctx, "git:"+given, t, func(context.Context) (string, error) { return t.dir, nil })
}

// fromClone builds from a repository. It clones nothing if the tag's commit was built before.
func (k *releaseBuild) fromClone(ctx context.Context, address string) (*Result, error) {
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
	cache := k.goTool.cache
	if found, err := readJSON(cache.fact("commits", commit), &t); err != nil || !found || t.Commit != commit {
		dir, err := clone(ctx)
		if err != nil {
			return nil, err
		}
		if t, err = k.git.readTree(ctx, dir); err != nil {
			return nil, err
		}
		if err := writeJSON(cache.fact("commits", t.Commit), t); err != nil {
			return nil, storage(ctx, "remember commit "+t.Commit, err)
		}
	}
	return k.buildTree(ctx, "git:"+withoutUser(address), t, clone)
}

// buildTree builds from a tree. checkOut returns its directory.
func (k *releaseBuild) buildTree(
	ctx context.Context, from string, t tree, checkOut func(context.Context) (string, error),
) (*Result, error) {
	named, warnings := k.goVersion(t.Go)
	k.warnings = append(slices.Clone(k.warnings), warnings...)
	if err := k.toolchains.choose(ctx, k.options.Go, t.GoDirective); err != nil {
		return nil, err
	}
	k.warnings = append(k.warnings, k.toolchains.chosenWarnings(t.source)...)
	if len(t.Tags) > 0 && !slices.Contains(t.Tags, k.release.String()) ||
		len(t.Tags) == 0 && !isRemote(strings.TrimPrefix(from, "git:")) {
		k.warnings = append(k.warnings,
			fmt.Sprintf("the tree is at commit %.12s, which is not tagged %s; the binaries print %s as their version",
				t.Commit, k.release, k.release))
	}
	return k.compiler.build(ctx, k.toolchains, named, func(used toolchain) (*recipe, error) {
		return k.treeRecipe(from, t, used, checkOut)
	})
}

func (k *releaseBuild) treeRecipe(
	from string, t tree, used toolchain, checkOut func(context.Context) (string, error),
) (*recipe, error) {
	state := "clean"
	if t.changed != "" {
		state = "dirty"
	}
	r := &recipe{
		info: Info{
			Release: k.release.String(), Go: used.Used, GoNamed: used.Named, GoChosen: used.chosen, GoDirective: t.GoDirective,
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
	r.prepare = func(ctx context.Context) (*prepared, error) {
		dir, err := checkOut(ctx)
		if err != nil {
			return nil, err
		}
		workspace, err := k.git.goWork(ctx, dir, t)
		return &prepared{dir: dir, workspace: workspace, temporary: isRemote(strings.TrimPrefix(from, "git:"))}, err
	}
	return r, r.setTargets(k.programs, k.options.Platforms)
}

// remoteTag returns the commit that the release's tag points to in a repository.
func (k *releaseBuild) remoteTag(ctx context.Context, address string) (commit string, err error) {
	tag := "refs/tags/" + k.release.String()
	step := fmt.Sprintf("find %s in %s", k.release, withoutUser(address))
	err = k.git.step(step, func() error {
		out, err := k.git.output(ctx, step, "", "ls-remote", "--", address, tag, tag+"^{}")
		if err != nil {
			return err
		}
		// The second line, if there is one, is the commit that an annotated tag points to.
		for line := range strings.Lines(out) {
			commit, _, _ = strings.Cut(strings.TrimSpace(line), "\t")
		}
		if commit == "" {
			return &Error{
				Step: step, Cause: CauseBranchUnknown, Message: fmt.Sprintf("the repository has no tag %s", k.release),
				Try: "specify a release that exists, such as " + newestTested(k.release),
			}
		}
		return nil
	})
	return commit, err
}

// clone clones the release's tag, without history.
func (k *releaseBuild) clone(ctx context.Context, address string) (string, error) {
	space, err := k.git.work.get(ctx)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(space.module, "kubernetes")
	step := fmt.Sprintf("clone %s of %s", k.release, withoutUser(address))
	return dir, k.git.step(step, func() error {
		_, err := k.git.output(ctx, step, "", "-c", "advice.detachedHead=false", "clone", "--quiet", "--depth", "1",
			"--branch", k.release.String(), "--", address, dir)
		return err
	})
}

type gitTool struct {
	*runner
	work *workDir
	env  []string
}

// output runs git and returns its output. git never prompts for a password, and never writes to a
// tree that is only read.
func (g *gitTool) output(ctx context.Context, step, dir string, args ...string) (string, error) {
	path, err := lookPath(g.env, "git")
	if err != nil {
		return "", &Error{Step: step, Cause: CauseGitMissing, Message: "no git command on PATH", Err: err,
			Try: "install git, or remove --source to build from the Go modules"}
	}
	if dir == "" {
		space, err := g.work.get(ctx)
		if err != nil {
			return "", err
		}
		dir = space.tmp
	}
	// A hook or a script may have set these for another repository.
	env := slices.DeleteFunc(slices.Clone(g.env), func(v string) bool {
		return strings.HasPrefix(v, "GIT_DIR=") || strings.HasPrefix(v, "GIT_WORK_TREE=") ||
			strings.HasPrefix(v, "GIT_INDEX_FILE=")
	})
	env = append(env, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	out, err := g.run(ctx, command{path: path, args: args, dir: dir, env: env})
	if err == nil {
		return string(out.stdout), nil
	}
	failed := failure(ctx, step, out.tail, err)
	var known *Error
	if errors.As(failed, &known) &&
		(known.Cause == CauseUnknown || known.Cause == CauseCompile || known.Cause == CauseModuleMissing) {
		known.Cause, known.Message = CauseGit, "git failed"
		known.Try = "check the address or directory, and that git can read it without a password prompt"
		if strings.Contains(known.Output, "dubious ownership") {
			known.Try = "the directory belongs to another user: add it to git's safe.directory, or run as that user"
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
