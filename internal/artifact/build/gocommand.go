package build

import (
	"context"
	"encoding/json"
	"errors"
	goversion "go/version"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
)

// userSettings are the settings for where modules come from, how they are verified and where they
// are stored. The user chooses them (in the environment or with `go env -w`); they do not change
// the result.
var userSettings = []string{
	"GOPROXY", "GONOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOINSECURE", "GOVCS", "GOAUTH",
	"GOMODCACHE", "GOCACHE", "GOPATH",
}

// goCommand is the go command of a bundle or on the user's PATH, and its environment.
type goCommand struct {
	path string
	// version is its version, such as "1.26.8".
	version string
	// base is the environment for every run: the given one without Go's variables, and then the user's
	// settings.
	base []string
}

// goTool runs the go command in a controlled environment.
type goTool struct {
	*runner
	work  *workDir
	cache cache
	env   []string
	found *goCommand
}

// find finds the go command and reads the user's settings for it.
func (t *goTool) find(ctx context.Context) (*goCommand, error) {
	if t.found != nil {
		return t.found, nil
	}
	const step = "find the go command"
	path, err := t.cache.goProgram(t.env)
	if err != nil {
		return nil, goMissing(step, "no go command on PATH", err)
	}
	work, err := t.work.get(ctx)
	if err != nil {
		return nil, err
	}
	args := append([]string{"env", "-json", "GOVERSION", "GOFLAGS"}, userSettings...)
	env := append(t.userEnvironment(), "GOTOOLCHAIN=local", "GOWORK=off")
	out, err := t.run(ctx, command{path: path, args: args, dir: work.tmp, env: env})
	if err != nil {
		return nil, failure(ctx, step, out.tail, err)
	}
	settings := map[string]string{}
	if err := json.Unmarshal(out.stdout, &settings); err != nil {
		return nil, goMissing(step, "cannot parse the settings that "+path+" prints", err)
	}
	t.cache.useBundle(settings, work.tmp)
	version, _, _ := strings.Cut(strings.TrimPrefix(settings["GOVERSION"], "go"), " ")
	if goversion.Compare("go"+version, "go"+plugins.OldestGo) < 0 {
		return nil, goMissing(step, "Go "+version+" is too old to download the version of Go that a release names", nil)
	}
	t.found = &goCommand{path: path, version: version, base: t.baseEnvironment(work, settings)}
	return t.found, nil
}

// userEnvironment returns the environment in which the user's settings are read: without variables
// that make the go command refuse, such as an unknown GOOS.
func (t *goTool) userEnvironment() []string {
	return slices.DeleteFunc(slices.Clone(t.env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return isGoVariable(name) && !slices.Contains(userSettings, name) && name != "GOENV" && name != "GOFLAGS"
	})
}

func (t *goTool) baseEnvironment(work *workspace, settings map[string]string) []string {
	var base []string
	for _, variable := range t.env {
		name, _, _ := strings.Cut(variable, "=")
		if !isGoVariable(name) {
			base = append(base, variable)
		}
	}
	for _, name := range userSettings {
		value := settings[name]
		if value == "" || value == "off" && name == "GOCACHE" {
			value = t.fallback(name)
		}
		if value != "" {
			base = append(base, name+"="+value)
		}
	}
	return append(base,
		"GOENV=off", "GO111MODULE=on", "GOWORK=off", "GOFLAGS="+keptFlags(settings["GOFLAGS"]),
		"CGO_ENABLED=0", "GOTMPDIR="+work.tmp, "TMPDIR="+work.tmp)
}

// fallback returns the directory for a setting of Go if the home directory is unknown.
func (t *goTool) fallback(name string) string {
	switch name {
	case "GOCACHE":
		return filepath.Join(t.cache.dir, "go-build")
	case "GOPATH":
		return filepath.Join(t.cache.dir, "go")
	}
	return ""
}

// isGoVariable reports whether a variable configures the go command or the C compiler that it may
// run.
func isGoVariable(name string) bool {
	switch name {
	case "CC", "CXX", "AR", "FC", "PKG_CONFIG", "GCCGO", "TMPDIR":
		return true
	}
	return strings.HasPrefix(name, "GO") && name != "GOOGLE_APPLICATION_CREDENTIALS" || strings.HasPrefix(name, "CGO_")
}

// keptFlags returns the flags in the user's GOFLAGS that are about the machine and that every
// supported toolchain accepts: a writable module cache, and the number of parallel compilers.
func keptFlags(flags string) string {
	var kept []string
	for flag := range strings.FieldsSeq(flags) {
		name := "-" + strings.TrimLeft(flag, "-")
		if name == "-modcacherw" || strings.HasPrefix(name, "-modcacherw=") || strings.HasPrefix(name, "-p=") {
			kept = append(kept, name)
		}
	}
	return strings.Join(kept, " ")
}

// in returns a run of go in a directory. variables override the base environment.
func (g *goCommand) in(dir string, variables []string, args ...string) command {
	return command{path: g.path, args: args, dir: dir, env: append(slices.Clone(g.base), variables...)}
}

// query returns a run that looks up or downloads modules. It uses the user's own go command, which
// downloads a newer one only if it cannot read a module.
func (g *goCommand) query(dir string, args ...string) command {
	return g.in(dir, []string{"GOTOOLCHAIN=auto"}, args...)
}

func goMissing(step, message string, err error) *Error {
	return &Error{
		Step: step, Cause: CauseGoMissing, Message: message, Err: err,
		Try: "install Go " + plugins.OldestGo +
			" or later and add its bin directory to PATH; it downloads the version of Go that a release needs",
	}
}

// failure returns the error for a failed run: the error of ctx, or an *Error with the cause.
func failure(ctx context.Context, step, output string, err error) error {
	if ctx.Err() != nil {
		return stopped(ctx, step)
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	if errors.Is(err, exec.ErrNotFound) {
		return goMissing(step, "cannot start the go command", err)
	}
	return diagnose(step, output, err)
}

// cancelled is the error of a build that was stopped in a step.
type cancelled struct {
	step       string
	err, cause error
}

func (c *cancelled) Error() string   { return c.step + ": " + c.cause.Error() }
func (c *cancelled) Unwrap() []error { return []error{c.err, c.cause} }

// stopped returns the error of a step during which ctx ended. It is context.Canceled or
// context.DeadlineExceeded, and shows the cause.
func stopped(ctx context.Context, step string) error {
	return &cancelled{step: step, err: ctx.Err(), cause: context.Cause(ctx)}
}
