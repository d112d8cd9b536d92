package build

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

func TestUnknownBranchIsReportedImmediately(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, "v1.24.4", nil)

	failed := mustFail(t, p.options(t))

	if failed.Cause != CauseBranchUnknown || !failed.Invalid() {
		t.Errorf("cause: got %s, invalid %v", failed.Cause, failed.Invalid())
	}
	if want := "has no k8s.io/kubernetes v1.24.3"; !strings.Contains(failed.Error(), want) {
		t.Errorf("message: got %q, want %q in it", failed.Error(), want)
	}
	if want := "--branch v1.24.4"; !strings.Contains(failed.Hint(), want) {
		t.Errorf("hint: got %q, want %q in it", failed.Hint(), want)
	}
}

func TestStagingModuleThatDoesNotDownloadIsNamedWithTheNearestPatch(t *testing.T) {
	for name, status := range map[string]int{"gone": http.StatusGone, "forbidden": http.StatusForbidden} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t)
			for _, release := range []string{testRelease, "v1.24.2", "v1.24.4", "v1.24.5"} {
				p.release(t, release, nil)
			}
			p.fail("k8s.io/client-go", "v0.24.3", "zip", status)
			p.fail("k8s.io/client-go", "v0.24.2", "zip", status)
			p.fail("k8s.io/client-go", "v0.24.4", "info", status)

			failed := mustFail(t, p.options(t))

			if failed.Cause != CauseModuleMissing || fmt.Sprint(failed.Modules) != "[k8s.io/client-go@v0.24.3]" {
				t.Errorf("got %s of %q", failed.Cause, failed.Modules)
			}
			if !strings.Contains(failed.Error(), "k8s.io/client-go@v0.24.3") {
				t.Errorf("message: got %q, want the module in it", failed.Error())
			}
			if want := "--branch v1.24.5"; !strings.Contains(failed.Hint(), want) {
				t.Errorf("hint: got %q, want %q in it", failed.Hint(), want)
			}
		})
	}
}

func TestStagingModuleThatNoProgramNeedsIsOnlyAWarning(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	p.fail("k8s.io/kubectl", "v0.24.3", "zip", http.StatusNotFound)
	o := p.options(t)

	result := mustRun(t, o)

	if len(result.Info.Warnings) != 1 || !strings.Contains(result.Info.Warnings[0], "k8s.io/kubectl@v0.24.3") {
		t.Errorf("warnings: got %q", result.Info.Warnings)
	}
	o.Programs = []Program{{Name: "kubectl"}}
	if failed := mustFail(t, o); failed.Cause != CauseModuleMissing {
		t.Errorf("a program that needs it: got %v", failed)
	}
}

func TestCompileErrorShowsTheCompilersLines(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, map[string]string{
		"k8s.io/kubernetes/cmd/kube-scheduler/app/server.go": "package app\n\nfunc NewSchedulerCommand() nothing { return " +
			"1 }\n",
	})

	failed := mustFail(t, p.options(t))

	if failed.Cause != CauseCompile || failed.Invalid() {
		t.Errorf("cause: got %s, invalid %v", failed.Cause, failed.Invalid())
	}
	for _, want := range []string{"compile kube-scheduler for " + Host().String(), "server.go:3:", "undefined: nothing"} {
		if !strings.Contains(failed.Error(), want) {
			t.Errorf("message: got %q, want %q in it", failed.Error(), want)
		}
	}
	if !strings.HasPrefix(failed.Output, "# k8s.io/kubernetes/cmd/kube-scheduler/app\n") {
		t.Errorf("output: got %q, want only the compiler's lines", failed.Output)
	}
}

func TestBinaryThatPrintsAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, map[string]string{
		"k8s.io/component-base/version/version.go": "package version\n\nfunc GitVersion() string { return \"v0.0.0\" }\n\n" +
			"func String() string { return \"\" }\n",
	})
	o := p.options(t)

	failed := mustFail(t, o)

	if failed.Cause != CauseVersion ||
		!strings.Contains(failed.Error(), `expected the binary to print "Kubernetes v1.24.3", got "Kubernetes v0.0.0"`) {
		t.Errorf("got %v", failed)
	}
	mustBeEmpty(t, filepath.Dir(newCache(o.CacheDir).binary("x")))
}

func TestSchedulerInWhichTwoPluginsHaveTheSameArgumentsIsRefused(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	const says = "plugin Gangs: package example.com/native/v1 registers the kind GangsArgs, and so on"
	p.release(t, testRelease, map[string]string{
		"k8s.io/component-base/version/version.go": "package version\n\nfunc GitVersion() string { panic(" +
			strconv.Quote(says) + ") }\n\nfunc String() string { return \"\" }\n",
	})
	o := p.options(t)

	failed := mustFail(t, o)

	if failed.Cause != CauseArguments || !failed.Invalid() || failed.Message != says ||
		!strings.Contains(failed.Hint(), "compile in example.com/native/v1") {
		t.Errorf("got %v, cause %s, hint %q", failed, failed.Cause, failed.Hint())
	}
	mustBeEmpty(t, filepath.Dir(newCache(o.CacheDir).binary("x")))
}

func TestFailuresOfTheMachineAndTheNetwork(t *testing.T) {
	tests := map[string]struct {
		status int
		env    []string
		cause  Cause
		hint   string
	}{
		"no go on PATH":                {env: []string{"PATH=/nowhere"}, cause: CauseGoMissing, hint: "install Go"},
		"proxy answers with 502":       {status: http.StatusBadGateway, cause: CauseProxy, hint: "try again later"},
		"proxy says too many requests": {status: http.StatusTooManyRequests, cause: CauseProxy, hint: "try again later"},
		"connection refused":           {env: []string{"GOPROXY=http://127.0.0.1:1"}, cause: CauseNoNetwork, hint: "GOPROXY"},
		"proxy switched off":           {env: []string{"GOPROXY=off"}, cause: CauseNoNetwork, hint: "GOPROXY"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t)
			p.release(t, testRelease, nil)
			for _, kind := range []string{"info", "mod", "zip"} {
				p.fail(kubernetes, testRelease, kind, test.status)
			}
			o := p.options(t)
			o.Env = append(o.Env, test.env...)

			failed := mustFail(t, o)

			if failed.Cause != test.cause || failed.Invalid() {
				t.Errorf("got %s, invalid %v, from: %v", failed.Cause, failed.Invalid(), failed)
			}
			if !strings.Contains(failed.Hint(), test.hint) {
				t.Errorf("hint: got %q, want %q in it", failed.Hint(), test.hint)
			}
		})
	}
}

func TestGoThatCannotDownloadToolchainsIsTooOld(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	o := p.options(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\necho '{\"GOVERSION\": \"go1.18.3\"}'\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	o.Env = append(o.Env, "PATH="+dir)

	failed := mustFail(t, o)

	if failed.Cause != CauseGoMissing || !strings.Contains(failed.Error(), "Go 1.18.3 is too old") {
		t.Errorf("got %v", failed)
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	t.Parallel()
	release := mustRelease(t, "v1.22.2")
	for name, o := range map[string]Options{
		"unknown source":               {Source: "svn:there"},
		"program in another directory": {Programs: []Program{{Name: "../kubelet"}}},
		"missing tree":                 {Source: "git:" + filepath.Join(t.TempDir(), "none")},
		"nearest patch of a tree":      {Source: "git:" + t.TempDir(), Nearest: true},
		"no tree":                      {Source: "git:"},
	} {
		o.Release, o.CacheDir, o.Env = release, t.TempDir(), []string{"PATH=" + os.Getenv("PATH")}
		if err := mustRefuse(t, o); len(problem.Hints(err)) == 0 {
			t.Errorf("%s: got %v without a hint", name, err)
		}
	}
}

// wrapGo puts a go command first on PATH that does as go does, but for `go
// build`, in place of which it runs script.
func wrapGo(t *testing.T, env []string, script string) []string {
	t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = build ]; then\n%s\nfi\nexec '%s' \"$@\"\n", script, path)
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return append(env, "PATH="+dir+":"+os.Getenv("PATH"))
}

func TestCanceledBuildLeavesNoFilesOrProcesses(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	o := p.options(t)
	started := filepath.Join(t.TempDir(), "compiler")
	o.Env = wrapGo(t, o.Env,
		fmt.Sprintf("touch \"$TMPDIR/half-done\"; sleep 600 & echo $! > '%[1]s.new'; mv '%[1]s.new' '%[1]s'; wait", started))
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(started); err == nil {
				cancel(errors.New("interrupt"))
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()

	_, err := Run(ctx, o)

	if !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), "compile kube-scheduler for "+Host().String()+": interrupt") {
		t.Errorf("got %v, want that the compiling was cancelled", err)
	}
	mustBeEmpty(t, newCache(o.CacheDir).temporary())
	text, err := os.ReadFile(started)
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if alive(compiler) {
		t.Errorf("the compiler's process %d is still there", compiler)
	}
}

// alive reports whether a process runs. One that was killed and not yet reaped
// by its new parent does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(status), ") Z ")
}

func TestFullDiskIsReportedAndLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, nil)
	o := p.options(t)
	o.Env = wrapGo(t, o.Env, "echo '# runtime' >&2; echo 'write $WORK/b002/_pkg_.a: no space left on device' >&2; exit 1")

	failed := mustFail(t, o)

	if failed.Cause != CauseDiskFull || !strings.Contains(failed.Hint(), "GOCACHE") {
		t.Errorf("got %s, hint %q", failed.Cause, failed.Hint())
	}
}
