package schedulers

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build"
)

// effectFiles are the sources of the program effect.
//
//go:embed testdata/effect/*.go
var effectFiles embed.FS

// Effect is the effect of a configuration on a scheduler.
type Effect struct {
	// Text is JSON that is the same for the same effect: each setting in the release's internal
	// form, which is independent of the config API, and the plugins that its framework runs at each
	// extension point.
	Text string
	// Twice names the plugins that would run twice at one extension point, each as "profile, point:
	// plugin". Up to 1.29.0 the framework does that to two default plugins that are enabled in
	// multiPoint and also at one point (expandMultiPointPlugins deletes from the list that it iterates
	// over); their weight then counts twice, and where it is not 1 no pod is scheduled at all.
	Twice []string
}

// Outcome is the effect of a configuration, or the error with which the scheduler refused it.
type Outcome struct {
	Effect Effect
	Err    error
}

// Effects returns the effects of configurations on the scheduler. --write-config-to does not show
// them: it writes multiPoint as multiPoint and a set as a set. So a small program, linked from the
// same source as the scheduler, asks the framework itself.
func (s *Scheduler) Effects(ctx context.Context, configs ...[]byte) ([]Outcome, error) {
	s.effect.once.Do(func() { s.effect.program, s.effect.err = s.effectProgram(ctx) })
	if s.effect.err != nil {
		return nil, s.effect.err
	}
	part := (len(configs) + runtime.NumCPU() - 1) / runtime.NumCPU()
	if s.Rules.InsecurePort {
		part = 1 // the program listens on the configured ports while it runs
	}
	outcomes := make([]Outcome, len(configs))
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for from := 0; from < len(configs); from += part {
		to := min(from+part, len(configs))
		group.Go(func() error { return s.effects(ctx, configs[from:to], outcomes[from:to]) })
	}
	return outcomes, group.Wait()
}

// effects runs the program once.
func (s *Scheduler) effects(ctx context.Context, configs [][]byte, outcomes []Outcome) error {
	var paths []string
	for _, config := range configs {
		dir, path, err := s.place(config)
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		paths = append(paths, path)
	}
	out, err := s.run(ctx, s.effect.program, paths...)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(configs) {
		return fmt.Errorf("effect printed %d lines for %d configurations", len(lines), len(configs))
	}
	for i, line := range lines {
		outcomes[i].Effect, outcomes[i].Err = s.canonical(line)
	}
	return nil
}

// effectProgram returns the program effect of the release. It is compiled in the module that the
// scheduler was compiled in, with the same flags, so that only linking is left to do; and kept next
// to pmk-sched's own binaries.
func (s *Scheduler) effectProgram(ctx context.Context) (string, error) {
	files, err := s.effectSources()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, name := range []string{"main.go", "options.go"} {
		sum.Write(files[name])
	}
	sum.Write([]byte(s.Info.Inputs))
	program := filepath.Join(s.cache, "test", "effect-"+s.Release.String()+"-"+hex.EncodeToString(sum.Sum(nil))[:16])
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return "", err
	}
	return program, s.compileEffect(ctx, files, program)
}

func (s *Scheduler) effectSources() (map[string][]byte, error) {
	options := "options.go"
	if s.Release.Minor < 23 {
		options = "options22.go"
	}
	files := map[string][]byte{}
	for name, source := range map[string]string{"main.go": "main.go", "options.go": options} {
		text, err := effectFiles.ReadFile("testdata/effect/" + source)
		if err != nil {
			return nil, err
		}
		files[name] = text
	}
	return files, nil
}

func (s *Scheduler) compileEffect(ctx context.Context, files map[string][]byte, program string) (err error) {
	result, err := build.Run(ctx, build.Options{
		Environment: build.Environment{CacheDir: s.cache, Env: os.Environ()}, Release: s.Release, Keep: true,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(result.Dir)) }()
	dir := filepath.Join(result.Dir, "cmd", "effect")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	part := fmt.Sprintf("%s.%d", program, os.Getpid())
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", s.tags(), "-ldflags", "-s -w", "-o", part,
		"./cmd/effect")
	cmd.Dir = result.Dir
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=go"+result.Info.Go, "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile effect for %s: %w\n%s", s.Release, err, tail(string(out)))
	}
	return os.Rename(part, program)
}

// tags are the scheduler's own, so that its compiled packages serve again.
func (s *Scheduler) tags() string { return strings.Join(s.Rules.BuildTags, ",") }
