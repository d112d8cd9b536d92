package build

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/build/goversion"
)

// carried are the settings that say where modules come from, whom to trust for
// them and where to keep them. They are a person's to choose (with the
// environment or with `go env -w`) and do not change what is built.
var carried = []string{
	"GOPROXY", "GONOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOINSECURE", "GOVCS", "GOAUTH",
	"GOMODCACHE", "GOCACHE", "GOPATH",
}

// goCommand is the go command on a person's PATH, and what it is run with.
type goCommand struct {
	path string
	// version is its own, such as "1.26.8".
	version string
	// base is the environment that every run starts from: the one passed in
	// without any variable of Go's, and then the settings carried over.
	base []string
}

// findGo finds the go command and reads a person's settings for it.
func (j *job) findGo(ctx context.Context) (*goCommand, error) {
	if j.golang != nil {
		return j.golang, nil
	}
	const step = "find the go command"
	path, err := lookPath(j.env, "go")
	if err != nil {
		return nil, goMissing(step, "there is no go command on PATH", err)
	}
	work, err := j.workspace(ctx)
	if err != nil {
		return nil, err
	}
	args := append([]string{"env", "-json", "GOVERSION", "GOFLAGS"}, carried...)
	env := append(j.personal(), "GOTOOLCHAIN=local", "GOWORK=off")
	out, err := j.run(ctx, command{path: path, args: args, dir: work.tmp, env: env})
	if err != nil {
		return nil, failure(ctx, step, out.tail, err)
	}
	settings := map[string]string{}
	if err := json.Unmarshal(out.stdout, &settings); err != nil {
		return nil, goMissing(step, "what "+path+" prints as its settings cannot be read", err)
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(settings["GOVERSION"], "go"), " ")
	if goversion.Compare(version, goversion.Oldest) < 0 {
		return nil, goMissing(step, "Go "+version+" is too old to fetch the version of Go that a release names", nil)
	}
	j.golang = &goCommand{path: path, version: version, base: j.baseEnvironment(work, settings)}
	return j.golang, nil
}

// personal is the environment in which a person's settings are read: without
// what would have the go command refuse to say them, such as a GOOS it does not know.
func (j *job) personal() []string {
	return slices.DeleteFunc(slices.Clone(j.env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return ofGo(name) && !slices.Contains(carried, name) && name != "GOENV" && name != "GOFLAGS"
	})
}

func (j *job) baseEnvironment(work *workspace, settings map[string]string) []string {
	var base []string
	for _, variable := range j.env {
		name, _, _ := strings.Cut(variable, "=")
		if !ofGo(name) {
			base = append(base, variable)
		}
	}
	for _, name := range carried {
		value := settings[name]
		if value == "" || value == "off" && name == "GOCACHE" {
			value = j.fallback(name)
		}
		if value != "" {
			base = append(base, name+"="+value)
		}
	}
	return append(base,
		"GOENV=off", "GO111MODULE=on", "GOWORK=off", "GOFLAGS="+keptFlags(settings["GOFLAGS"]),
		"CGO_ENABLED=0", "GOTMPDIR="+work.tmp, "TMPDIR="+work.tmp)
}

// fallback is where Go keeps things when there is no home folder to keep them in.
func (j *job) fallback(name string) string {
	switch name {
	case "GOCACHE":
		return filepath.Join(j.cache.dir, "go-build")
	case "GOPATH":
		return filepath.Join(j.cache.dir, "go")
	}
	return ""
}

// ofGo reports whether a variable steers the go command or the C compiler it may call.
func ofGo(name string) bool {
	switch name {
	case "CC", "CXX", "AR", "FC", "PKG_CONFIG", "GCCGO", "TMPDIR":
		return true
	}
	return strings.HasPrefix(name, "GO") && name != "GOOGLE_APPLICATION_CREDENTIALS" || strings.HasPrefix(name, "CGO_")
}

// keptFlags returns what of a person's GOFLAGS is about their machine and is
// understood by every supported toolchain: a module cache that can be removed,
// and how many compilers may run at once.
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

// in returns the command's run with arguments in a folder. Variables given here
// win over the base environment.
func (g *goCommand) in(dir string, variables []string, args ...string) command {
	return command{path: g.path, args: args, dir: dir, env: append(slices.Clone(g.base), variables...)}
}

// asking returns a run that looks up or downloads modules. The person's own go
// does it; it fetches a newer one only if a module cannot be read otherwise.
func (g *goCommand) asking(dir string, args ...string) command {
	return g.in(dir, []string{"GOTOOLCHAIN=auto"}, args...)
}

func goMissing(step, message string, err error) *Error {
	return &Error{
		Step: step, Cause: CauseGoMissing, Message: message, Err: err,
		Try: "install Go " + goversion.Oldest + " or later and have its bin folder on PATH; the version of Go that a release needs is then fetched by it",
	}
}

// failure turns a failed run into the error that is returned: ctx's own error,
// or an *Error that says the cause in words.
func failure(ctx context.Context, step, output string, err error) error {
	if ctx.Err() != nil {
		return stopped(ctx, step)
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	if errors.Is(err, exec.ErrNotFound) {
		return goMissing(step, "the go command cannot be started", err)
	}
	return diagnose(step, output, err)
}

// cancelled says in which step a build was stopped, and by what.
type cancelled struct {
	step       string
	err, cause error
}

func (c *cancelled) Error() string   { return c.step + ": " + c.cause.Error() }
func (c *cancelled) Unwrap() []error { return []error{c.err, c.cause} }

// stopped is the error of a step during which ctx ended. It is context.Canceled
// or context.DeadlineExceeded, whatever the cause that it shows.
func stopped(ctx context.Context, step string) error {
	return &cancelled{step: step, err: ctx.Err(), cause: context.Cause(ctx)}
}
