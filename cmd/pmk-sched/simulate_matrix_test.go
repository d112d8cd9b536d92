package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/matrix"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/report"
)

func TestMatrixTable(t *testing.T) {
	r := &matrix.Result{Cells: []matrix.Cell{
		{Snapshot: "a.tar.gz", Scenario: "pending", Scheduler: "default", Outcome: matrix.Outcome{
			Result: &report.Report{Release: "v1.24.3", Summary: report.Summary{
				Placed: 7, Unplaced: 2, Moved: 1, Evicted: 3, After: &report.Distribution{EmptyNodes: []string{"n"}},
				Utilization: []report.Utilization{{Resource: "cpu", After: 0.5}, {Resource: "memory", After: 0.256}},
			}}}},
		{Snapshot: "a.tar.gz", Scenario: "pending", Scheduler: "new.yaml", Outcome: matrix.Outcome{
			Error: "no room\nand its log", Hints: []string{"make some"}}},
	}}
	const want = `SNAPSHOT	SCENARIO	SCHEDULER	RELEASE	PLACED	UNPLACED	MOVED	EVICTED	EMPTY NODES	CPU	MEMORY
a.tar.gz	pending	default	v1.24.3	7	2	1	3	1	50.0 %	25.6 %
a.tar.gz	pending	new.yaml	-	failed	-	-	-	-	-	-

a.tar.gz, pending, new.yaml: no room
`
	if diff := cmp.Diff(want, matrixTable(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	err := failedCells(r)
	if err == nil || err.Error() != "1 of 2 simulations failed" || command.ExitStatus(err) != command.StatusFailure ||
		!cmp.Equal(problem.Hints(err), []string{"make some"}) {
		t.Errorf("got %v", err)
	}
	r.Cells = r.Cells[:1]
	if err := failedCells(r); err != nil {
		t.Errorf("without a failed one: %v", err)
	}
}

func TestArgumentsOfAMatrix(t *testing.T) {
	chdir(t, map[string]string{
		"new.yaml": "apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\nmetadata: {name: packer}\nspec: " +
			"{configuration: {preset: binpack}}\n",
		"scenario.yaml": "apiVersion: pmk-sched.io/v1alpha1\nkind: Scenario\nsteps: [{scenario: drain, nodes: [a]}, " +
			"{scenario: pending}]\n",
	})
	read := func(args ...string) (r matrix.Request, err error) {
		err = withCommand(t, []string{"simulate", "matrix"}, append([]string{"simulate", "matrix"}, args...),
			func(c *cli.Context, u *ui) (err error) {
				r, err = matrixRequest(c, u)
				return err
			})
		return r, err
	}
	r, err := read("--snapshot", "a", "--snapshot", "b", "-f", "default", "-f", "new.yaml", "--branch", "v1.24.3",
		"--timeout", "1m", "pending", "scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Schedulers) != 2 || r.Schedulers[1].Configuration.Preset != "binpack" ||
		r.Schedulers[0].Branch != "v1.24.3" || r.Parallel != 1 || r.Timeout != time.Minute || r.Job != nil ||
		!cmp.Equal(r.Snapshots, []string{"a", "b"}) || len(r.Scenarios) != 2 || len(r.Scenarios[1].Steps) != 2 ||
		r.Scenarios[0].Steps[0].Scenario != "pending" {
		t.Errorf("got %+v", r)
	}
	r, err = read("--snapshot", "a", "--job", "--load", "containerd", "--busybox", "/bin/busybox", "--node", "w", "-n",
		"x", "replace-all")
	if err != nil {
		t.Fatal(err)
	}
	if j := r.Job; j == nil || j.Namespace != "x" || j.Node != "w" || j.Image.Tag != "" || j.Image.Self == "" ||
		len(j.Image.Load) != 1 || r.Parallel != defaultParallelJob ||
		len(r.Schedulers) != 1 || r.Schedulers[0].Source != "default" || r.Schedulers[0].Branch != "auto" {
		t.Errorf("got %+v", r)
	}
	for args, want := range map[string]string{
		"--snapshot a": "SCENARIO is required",
		"pending":      "--snapshot is required",
		"--snapshot a missing.yaml --branch v1.24": "missing.yaml",
		"--snapshot a missing.yaml":                "missing.yaml",
		"--snapshot a -f missing.yaml pending":     "--file: ",
		"--snapshot a --parallel 0 pending":        "invalid --parallel 0",
		"--snapshot a --push --tag r/x:v1 pending": "requires --job",
		"--snapshot a --job pending":               "--job requires --push or --load",
		"--snapshot a --job --push pending":        "--push requires --tag",
	} {
		if _, err := read(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) ||
			!problem.IsInvalid(err) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
}
