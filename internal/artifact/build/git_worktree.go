package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

type tree struct {
	source
	// Commit is the commit that is checked out, and Tags are its tags.
	Commit string   `json:"commit"`
	Tags   []string `json:"tags,omitempty"`
	// Vendored reports whether dependencies are in vendor/, and Workspace whether a go.work joins the
	// staging modules (since 1.30).
	Vendored  bool `json:"vendored"`
	Workspace bool `json:"workspace"`
	// changed is the hash of the differences from the commit. It is empty if there are none.
	changed string
	dir     string
}

// readTree describes a working tree: its module, its commit, and the changes since.
func (g *gitTool) readTree(ctx context.Context, dir string) (tree, error) {
	step := "read the tree " + dir
	dir, err := filepath.Abs(dir)
	if err != nil {
		return tree{}, storage(ctx, step, err)
	}
	t := tree{source: source{Path: kubernetes}, dir: dir}
	if err := checkTree(step, dir); err != nil {
		return tree{}, err
	}
	if err := t.readDir(dir); err != nil {
		return tree{}, storage(ctx, step, err)
	}
	t.GoSum = ""
	t.Vendored, t.Workspace = exists(filepath.Join(dir, "vendor", "modules.txt")), exists(filepath.Join(dir, "go.work"))
	out, err := g.output(ctx, step, dir, "show", "--no-patch", "--format=%H%n%ct", "HEAD")
	if err != nil {
		return tree{}, err
	}
	var seconds int64
	if _, err := fmt.Sscan(out, &t.Commit, &seconds); err != nil {
		return tree{}, storage(ctx, step, fmt.Errorf("read the commit from %q: %w", out, err))
	}
	t.Date = time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	if out, err = g.output(ctx, step, dir, "tag", "--points-at", "HEAD"); err != nil {
		return tree{}, err
	}
	t.Tags = strings.Fields(out)
	t.changed, err = g.changes(ctx, step, dir)
	return t, err
}

// checkTree refuses a directory that is not a tree of Kubernetes.
func checkTree(step, dir string) error {
	refuse := func(message string) error {
		return problem.Invalidf("use git: with the URL or the root directory of a clone of kubernetes/kubernetes",
			"%s: %s", step, message)
	}
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return refuse("the directory does not exist or has no go.mod")
	}
	if err != nil {
		return refuse(err.Error())
	}
	if module := modfile.ModulePath(data); module != kubernetes {
		return refuse(fmt.Sprintf("its go.mod is of module %q, not %s", module, kubernetes))
	}
	return nil
}

// changes returns a hash of a tree's differences from its commit: changed files, new files, and
// ignored Go files, which are often generated. It is empty without differences.
func (g *gitTool) changes(ctx context.Context, step, dir string) (string, error) {
	diff, err := g.output(ctx, step, dir, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv", "--no-color")
	if err != nil {
		return "", err
	}
	added, err := g.output(ctx, step, dir, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return "", err
	}
	ignored, err := g.output(ctx, step, dir, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--",
		"*.go", ":(exclude)_output")
	if err != nil {
		return "", err
	}
	parts := []string{diff}
	for _, name := range strings.FieldsFunc(added+ignored, func(r rune) bool { return r == 0 }) {
		_, sum, err := HashFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !isDir(filepath.Join(dir, name)) {
			return "", storage(ctx, step, err)
		}
		parts = append(parts, name+" "+sum)
	}
	if len(parts) == 1 && diff == "" {
		return "", nil
	}
	return hash([]byte(strings.Join(parts, "\n"))), nil
}

// goWork returns GOWORK for a tree. Go writes go.work.sum next to a go.work without a vendor
// directory, so it gets a copy outside of the tree.
func (g *gitTool) goWork(ctx context.Context, dir string, t tree) (string, error) {
	original := filepath.Join(dir, "go.work")
	if !t.Workspace {
		return "off", nil
	}
	if t.Vendored {
		return original, nil
	}
	step := "copy go.work of " + dir
	data, err := os.ReadFile(original)
	if err != nil {
		return "", storage(ctx, step, err)
	}
	file, err := modfile.ParseWork(original, data, nil)
	if err != nil {
		return "", storage(ctx, step, err)
	}
	for _, use := range slices.Clone(file.Use) {
		if filepath.IsAbs(use.Path) {
			continue
		}
		if err := errors.Join(file.DropUse(use.Path), file.AddUse(filepath.Join(dir, use.Path), "")); err != nil {
			return "", storage(ctx, step, err)
		}
	}
	file.Cleanup()
	space, err := g.work.get(ctx)
	if err != nil {
		return "", err
	}
	copied := filepath.Join(space.tmp, "go.work")
	if err := os.WriteFile(copied, modfile.Format(file.Syntax), 0o644); err != nil {
		return "", storage(ctx, step, err)
	}
	sums, err := os.ReadFile(original + ".sum")
	if errors.Is(err, fs.ErrNotExist) {
		return copied, nil
	}
	if err == nil {
		err = os.WriteFile(copied+".sum", sums, 0o644)
	}
	if err != nil {
		return "", storage(ctx, step, err)
	}
	return copied, nil
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
