//go:build linux && (cases || faults || labs)

package install

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/internal/fleet"
	"github.com/pmk-sched/pmk-sched/internal/lab"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// writeFleetKubeconfig writes the administrator's kubeconfig of a lab with the wave of its cluster.
func writeFleetKubeconfig(t *testing.T, n *labs.Node, file string, wave int) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(n.Lab.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Extensions = map[string]runtime.Object{
		"pmk-sched.io/labels": &runtime.Unknown{Raw: fmt.Appendf(nil, `{"wave": "%d"}`, wave), ContentType: "application/json"},
	}
	text, err := clientcmd.Write(*config)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// turns returns cluster, wave and state of each turn of a rollout.
func turns(t *testing.T, result run.Result) (list []string) {
	t.Helper()
	for _, turn := range run.Decode[[]fleet.Turn](t, result.Stdout) {
		list = append(list, fmt.Sprintf("%s %s %s", turn.Cluster, turn.Wave, turn.State))
	}
	return list
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A fleet of three clusters, the hosted control plane in the first wave: a rollout of a scheduler
// that crashes ends there, and the same command with a scheduler that works continues.
func TestFleetStopsAtTheWaveThatFailsAndContinues(t *testing.T) {
	nodes := labs.SharedFleet(t, lab.LayoutHosted, lab.LayoutPMK, lab.LayoutKubeadm)
	name, image, dir := labs.SchedulerName(t), "", t.TempDir()
	for i, n := range nodes {
		image = n.Image(t)
		writeFleetKubeconfig(t, n, filepath.Join(dir, n.Layout+".yaml"), min(1+i, 2))
		t.Cleanup(func() { n.Uninstall(t, name) })
	}
	of := func(command string, args ...string) run.Result {
		return run.PMKSched(t, append([]string{"fleet", command, "--from", dir, "--name", name, "-o", "json"}, args...)...)
	}
	rollout := func(command string, args ...string) run.Result {
		return of(command, append(append([]string{"--wave", "wave"}, labs.Stable("1s")...), args...)...)
	}

	of("check", "--image", image).OK(t)
	crash := nodes[0].Faulty(t, "crash", labs.Release)
	result := rollout("deploy", "--image", crash)
	result.Fails(t, 1, "1 of 3 clusters failed; stopped, 2 clusters were not tried", "this scheduler ends at once")
	equal(t, turns(t, result), "hosted 1 failed", "kubeadm 2 pending", "pmk 2 pending")
	for _, n := range nodes {
		n.LeftNothing(t, name)
	}
	equal(t, turns(t, rollout("deploy", "--image", image).OK(t)), "hosted 1 done", "kubeadm 2 done", "pmk 2 done")
	for command, args := range map[string][]string{"deploy": {"--image", image}, "upgrade": nil} {
		equal(t, turns(t, rollout(command, args...).OK(t)), "hosted 1 unchanged", "kubeadm 2 unchanged", "pmk 2 unchanged")
	}

	rows := run.Decode[[]fleet.Row[replace.Status]](t, of("status", "--timeout", "1m").OK(t).Stdout)
	for _, row := range rows {
		if row.Error != "" || len(row.Result.Schedulers) != 1 || row.Result.Schedulers[0].Image != image ||
			row.Result.Schedulers[0].Verified.IsZero() {
			t.Errorf("%s: %s %+v", row.Cluster, row.Error, row.Result)
		}
	}
	if len(rows) != len(nodes) {
		t.Errorf("%d rows", len(rows))
	}
}
