package deploy

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/artifact/sandbox"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// The pods would not start: nothing is applied.
func TestDeployRefusesAnImageWithoutTheProgramOfItsPods(t *testing.T) {
	r := &recorder{}
	d := deps(r)
	d.Binary = func(context.Context, *Plan, string) (configcheck.Binary, error) {
		return configcheck.Binary{Path: "/program", Missing: "/usr/local/bin/kube-scheduler"}, nil
	}
	_, err := Deploy(t.Context(), d, testPlan(t), RunOptions{})
	if !problem.IsInvalid(err) ||
		!strings.Contains(err.Error(), "image localhost/my-scheduler:v1 has no /usr/local/bin/kube-scheduler") {
		t.Errorf("got %v", err)
	}
	if called := strings.Join(r.calls, " "); strings.Contains(called, "apply") {
		t.Errorf("it was applied: %s", called)
	}
}

func TestMain(m *testing.M) {
	if sandbox.Entering(os.Args) {
		os.Exit(sandbox.Enter(os.Args))
	}
	os.Exit(m.Run())
}

// The program of the image is v1.24.3, and has no flag --port. Nothing is applied if it is another
// release than the user named, or refuses its flags.
func TestDeployComparesReleaseAndFlagsWithTheProgramOfTheImage(t *testing.T) {
	program := filepath.Join(t.TempDir(), "kube-scheduler")
	cmd := exec.Command("go", "build", "-o", program, "../artifact/configcheck/testdata/scheduler")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	for name, c := range map[string]struct {
		server, branch string
		args           []string
		want, hint     string
	}{
		"same release":     {server: "v1.24.3", branch: "v1.24.3", args: []string{"--v=4"}},
		"the API server's": {server: "v1.24.3"},
		"another minor": {server: "v1.24.3", branch: "v1.23.5",
			want: "the kube-scheduler of v1.24.3, and the scheduler is for v1.23.5", hint: "--branch v1.24.3"},
		"another patch": {server: "v1.24.9", branch: "v1.24.9",
			want: "the kube-scheduler of v1.24.3, and the scheduler is for v1.24.9", hint: "--branch v1.24.3"},
		"newer API server": {server: "v1.25.4",
			want: "the kube-scheduler of v1.24.3, and the scheduler is for v1.25.4", hint: "--branch v1.24.3"},
		"flag of the image": {server: "v1.24.3", args: []string{"--debug-scores=3"}},
		"unknown flag": {server: "v1.24.3", args: []string{"--no-such-flag=1"},
			want: "the scheduler refuses its flags: unknown flag: --no-such-flag", hint: "correct spec.args"},
		"release before flags": {server: "v1.23.5", branch: "v1.23.5", args: []string{"--port=0"},
			want: "the kube-scheduler of v1.24.3", hint: "--branch"},
	} {
		t.Run(name, func(t *testing.T) {
			o := PlanInput{Name: "my-scheduler", Facts: Facts{Cluster: masterInfo(c.server),
				Image: "localhost/my-scheduler:v1", Branch: c.branch}}
			o.Spec.Args = c.args
			plan, err := o.Plan()
			if err != nil {
				t.Fatal(err)
			}
			r := &recorder{}
			d := deps(r)
			d.Binary = func(context.Context, *Plan, string) (configcheck.Binary, error) {
				return configcheck.Binary{Path: program}, nil
			}
			_, err = Deploy(t.Context(), d, plan, RunOptions{})
			applied := strings.Contains(strings.Join(r.calls, " "), "apply")
			if c.want == "" {
				if err != nil || !applied {
					t.Errorf("got %v, applied: %v", err, applied)
				}
				return
			}
			if !problem.IsInvalid(err) || !strings.Contains(err.Error(), c.want) || applied ||
				!strings.Contains(strings.Join(problem.Hints(err), " "), c.hint) {
				t.Errorf("got %v, hints %q, applied: %v", err, problem.Hints(err), applied)
			}
		})
	}
}

// What is not established is a warning: programs with versions of their own, and another patch than
// the API server's, which the user did not name.
func TestUnknownReleaseOfTheProgramIsAWarning(t *testing.T) {
	for output, want := range map[string]string{
		"Kubernetes v0.24.9": "the release of image localhost/my-scheduler:v1 is unknown, and v1.24.3 was assumed: " +
			`its program prints "Kubernetes v0.24.9"`,
		"Kubernetes v1.24.17": "image localhost/my-scheduler:v1 has the kube-scheduler of v1.24.17, and the API server is v1.24.3",
		"Kubernetes v1.24.3":  "",
	} {
		if warning, err := testPlan(t).compareRelease(output, nil, ""); err != nil || warning != want {
			t.Errorf("%s: got %q, %v", output, warning, err)
		}
	}
	warning, err := testPlan(t).compareRelease("", errors.New("exit status 2"), "")
	if err != nil || !strings.HasSuffix(warning, "v1.24.3 was assumed: exit status 2") {
		t.Errorf("got %q, %v", warning, err)
	}
}

// A program that does not run here is for another architecture, or there is no sandbox.
func TestLabelIsComparedIfTheProgramDoesNotRun(t *testing.T) {
	for name, c := range map[string]struct{ label, refused, warning string }{
		"same release":   {label: "v1.24.3"},
		"vendor's":       {label: "v1.24.3-eks-036c24b"},
		"older release":  {label: "v1.23.9", refused: "has the kube-scheduler of v1.23.9, and the scheduler is for v1.24.3"},
		"older patch":    {label: "v1.24.1", warning: "has the kube-scheduler of v1.24.1, and the API server is v1.24.3"},
		"no label":       {warning: "the release of the program in image localhost/my-scheduler:v1 was not established"},
		"another format": {label: "latest", warning: "was not established"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			d := deps(r)
			d.Binary = func(context.Context, *Plan, string) (configcheck.Binary, error) {
				return configcheck.Binary{Label: c.label}, configcheck.ErrNoBinary
			}
			var warnings []string
			d.Warn = func(text string) { warnings = append(warnings, text) }
			_, err := Deploy(t.Context(), d, testPlan(t), RunOptions{})
			applied := strings.Contains(strings.Join(r.calls, " "), "apply")
			if c.refused != "" {
				if !problem.IsInvalid(err) || !strings.Contains(err.Error(), c.refused) || applied {
					t.Errorf("got %v, applied: %v", err, applied)
				}
				return
			}
			said := strings.Join(warnings, "\n")
			if err != nil || !applied || !strings.Contains(said, c.warning) ||
				strings.Contains(said, "established") != strings.Contains(c.warning, "established") {
				t.Errorf("got %v, applied: %v, warnings %q", err, applied, warnings)
			}
		})
	}
}
