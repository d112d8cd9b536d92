package schedulers

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/build"
)

// effectFiles are the sources of the program effect.
//
//go:embed testdata/effect/*.go
var effectFiles embed.FS

// Effect returns what the scheduler makes of a configuration, as JSON: each setting in the release's internal form, which no config
// API shows through, and which plugins its framework runs at each extension point. --write-config-to does not tell the latter: it
// writes multiPoint as multiPoint and a set as a set. So a small program, linked from the same source as the scheduler, asks the
// framework itself.
func (s *Scheduler) Effect(ctx context.Context, config []byte) (string, error) {
	program, err := s.effectProgram(ctx)
	if err != nil {
		return "", err
	}
	dir, path, err := s.place(config)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	out, err := s.run(ctx, program, path)
	if err != nil {
		return "", err
	}
	return s.canonical(out)
}

// effect is what the program prints.
type effect struct {
	Configuration map[string]any                  `json:"configuration"`
	Running       map[string]map[string]pluginSet `json:"running"`
}

type pluginSet struct{ Enabled []plugin }

type plugin struct {
	Name   string
	Weight int
}

// canonical brings two descriptions of the same effect to the same text.
func (s *Scheduler) canonical(printed string) (string, error) {
	var e effect
	if err := json.Unmarshal([]byte(s.restore(printed)), &e); err != nil {
		return "", fmt.Errorf("read what effect printed: %w", err)
	}
	profiles, _ := e.Configuration["Profiles"].([]any)
	for _, p := range profiles {
		profile := p.(map[string]any)
		// The sets as they were written; what they come to is in running.
		delete(profile, "Plugins")
		name, _ := profile["SchedulerName"].(string)
		settleScoring(profile, e.Running[name])
		profile["Running"] = lines(e.Running[name])
	}
	if !s.Rules.InsecurePort {
		// Nothing listens there any more; v1beta2 still has the fields.
		delete(e.Configuration, "HealthzBindAddress")
		delete(e.Configuration, "MetricsBindAddress")
	}
	text, err := json.MarshalIndent(e.Configuration, "", "  ")
	return string(text), err
}

// lines returns the plugins of each extension point. Where every plugin is asked and the answers are put together, their order does
// not matter; it does where the first one that takes the pod ends it.
func lines(running map[string]pluginSet) map[string]any {
	points := map[string]any{}
	for point, set := range running {
		if len(set.Enabled) == 0 {
			continue
		}
		var names []string
		for _, p := range set.Enabled {
			name := p.Name
			if point == "Score" {
				name = fmt.Sprintf("%s %d", p.Name, p.Weight)
			}
			names = append(names, name)
		}
		if point != "Bind" && point != "PostFilter" {
			slices.Sort(names)
		}
		points[point] = names
	}
	return points
}

// effectProgram returns the program effect of the release. It is compiled in the module that the scheduler was compiled in, with the
// same flags, so that only linking is left to do; and kept beside pmk-sched's own binaries.
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
	work, err := os.MkdirTemp(s.dir, "effect-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	result, err := build.Run(ctx, build.Options{Release: s.Release, CacheDir: s.cache, WorkDir: work, Keep: true, Env: os.Environ()})
	if err != nil {
		return err
	}
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
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-trimpath", "-tags", s.tags(), "-o", part, "./cmd/effect")
	cmd.Dir = result.Dir
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=go"+result.Info.Go, "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile effect for %s: %w\n%s", s.Release, err, tail(string(out)))
	}
	return os.Rename(part, program)
}

// tags are the scheduler's own, so that its compiled packages serve again.
func (s *Scheduler) tags() string {
	tags := []string{"selinux", "notest"}
	if s.Release.Minor >= 34 {
		tags = append(tags, "grpcnotrace")
	}
	return strings.Join(tags, ",")
}
