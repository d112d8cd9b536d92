//go:build linux && (cases || faults || labs)

package install

import (
	"slices"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

type revision struct {
	Revision      int    `json:"revision"`
	Status        string `json:"status"`
	Current       bool   `json:"current"`
	By            string `json:"by"`
	Release       string `json:"release"`
	Image         string `json:"image"`
	Configuration string `json:"configuration"`
	Origin        string `json:"origin"`
	Reason        string `json:"reason"`
}

func history(t *testing.T, n *labs.Node, name string) []revision {
	t.Helper()
	return run.Decode[[]revision](t, n.PMKSched(t, "history", "--name", name, "-o", "json").OK(t).Stdout)
}

// deployer returns a function that deploys a scheduler, each time on the same port.
func deployer(t *testing.T, n *labs.Node, name string) func(image string, more ...string) run.Result {
	n.UninstallLater(t, name)
	args := append([]string{"deploy", "--name", name, "--port", n.Port(t)}, labs.Stable("1s")...)
	return func(image string, more ...string) run.Result {
		t.Helper()
		return n.PMKSched(t, slices.Concat(args, []string{"--image", image}, more)...)
	}
}

// A real scheduler on a real kubelet returns to its first configuration and schedules with it; a
// rollback that is not stable changes nothing.
func TestRollbackReturnsToAnEarlierRevision(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	deploy := deployer(t, n, name)
	deploy(n.Image(t), "--preset", "binpack").OK(t)
	deploy(n.Image(t), "--preset", "spread").OK(t)
	deploy(n.Faulty(t, "crash", labs.Release)).Fails(t, 1, "this scheduler ends at once")

	before := history(t, n, name)
	if len(before) != 3 || before[0].Status != "deployed" || !before[1].Current || before[2].Status != "failed" ||
		before[2].Reason == "" {
		t.Fatalf("history: %+v", before)
	}
	for _, r := range before {
		if r.By == "" || r.Release != labs.Release || r.Image == "" || r.Configuration == "" {
			t.Errorf("revision %d: %+v", r.Revision, r)
		}
	}

	n.PMKSched(t, "diff", "--name", name, "--revision", "1").Fails(t, 3, "")
	rollback := append([]string{"rollback", "--name", name}, labs.Stable("1s")...)
	n.PMKSched(t, rollback...).OK(t).Prints(t, "rollback to revision 1")
	n.PMKSched(t, "diff", "--name", name, "--revision", "1").OK(t)
	mounted := n.Kubectl(t, "get", "deployment", name, "-n", "kube-system", "-o",
		"jsonpath={.spec.template.spec.volumes[?(@.name=='config-file')].configMap.name}")
	if mounted != before[0].Configuration {
		t.Errorf("the scheduler mounts %s, want %s", mounted, before[0].Configuration)
	}
	n.PMKSched(t, "verify", "--name", name).OK(t)
	after := history(t, n, name)
	if last := after[len(after)-1]; last.Origin != "rollback to revision 1" || !last.Current ||
		last.Configuration != before[0].Configuration {
		t.Errorf("history: %+v", after)
	}
	n.CleanLog(t, name)
}
