package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// modulePath is the module of the packages.
const modulePath = "github.com/pmk-sched/pmk-sched/"

// pkg is the part of the output of `go list -json` that is needed.
type pkg struct {
	ImportPath, Dir                             string
	GoFiles, Imports, TestGoFiles, XTestGoFiles []string
}

func (p *pkg) path() string   { return strings.TrimPrefix(p.ImportPath, modulePath) }
func (p *pkg) hasTests() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// packages are the packages whose code is changed, and the importers of each.
type packages struct {
	chosen    []*pkg
	importers map[string][]string // import paths of packages with unit tests, by import path
}

func readPackages(ctx context.Context, patterns []string) (*packages, error) {
	all, err := list(ctx, "./...")
	if err != nil {
		return nil, err
	}
	p := &packages{importers: map[string][]string{}}
	for _, one := range all {
		// The tests below test/ need more than the code.
		if one.hasTests() && !strings.HasPrefix(one.path(), "test/") {
			for _, imported := range one.Imports {
				p.importers[imported] = append(p.importers[imported], one.ImportPath)
			}
		}
	}
	if p.chosen, err = list(ctx, patterns...); err != nil {
		return nil, err
	}
	p.chosen = slices.DeleteFunc(p.chosen, func(one *pkg) bool {
		return !one.hasTests() && len(p.importers[one.ImportPath]) == 0
	})
	if len(p.chosen) == 0 {
		return nil, fmt.Errorf("no package of %s has unit tests", strings.Join(patterns, " "))
	}
	return p, nil
}

func list(ctx context.Context, patterns ...string) (all []*pkg, err error) {
	const fields = "-json=ImportPath,Dir,GoFiles,Imports,TestGoFiles,XTestGoFiles"
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", fields}, patterns...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages %s: %w: %s", strings.Join(patterns, " "), err, stderr.Bytes())
	}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		one := &pkg{}
		if err := decoder.Decode(one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the list of packages: %w", err)
		}
		all = append(all, one)
	}
}

// verdict is the result of the tests of a mutant.
type verdict int

const (
	survived verdict = iota
	killed
	notCompiled
)

// test runs the unit tests of the package of a mutant, and then those of its importers, until one
// fails. by are the packages that were tested.
func (p *packages) test(ctx context.Context, m mutant) (v verdict, by []string, err error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return 0, nil, err
	}
	defer os.RemoveAll(dir)
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{m.file: changed}})
	if err == nil {
		err = errors.Join(os.WriteFile(changed, m.source(), 0o600), os.WriteFile(overlay, text, 0o600))
	}
	if err != nil {
		return 0, nil, err
	}
	compiled, err := passes(ctx, "build", "-o", os.DevNull, "-overlay", overlay, m.pkg.ImportPath)
	if err != nil || !compiled {
		return notCompiled, nil, err
	}
	var tested []string
	if m.pkg.hasTests() {
		tested = append(tested, m.pkg.ImportPath)
	}
	for _, path := range append(tested, p.importers[m.pkg.ImportPath]...) {
		ok, err := passes(ctx, "test", "-vet=off", "-ldflags=-w", "-timeout", "3m", "-failfast", "-overlay", overlay, path)
		if err != nil {
			return 0, nil, err
		}
		by = append(by, strings.TrimPrefix(path, modulePath))
		if !ok {
			return killed, by, nil
		}
	}
	return survived, by, nil
}

// passes reports whether a go command succeeds.
func passes(ctx context.Context, args ...string) (bool, error) {
	err := exec.CommandContext(ctx, "go", args...).Run()
	if errors.As(err, new(*exec.ExitError)) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}
