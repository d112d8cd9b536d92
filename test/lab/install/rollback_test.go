//go:build linux

package install

import (
	"slices"
	"strings"
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

func TestRollbackRefusesWhatIsNoDeployedRevision(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	n.PMKSched(t, "history", "--name", name).Fails(t, 2, name+" has no revisions in namespace kube-system")
	n.PMKSched(t, "rollback", "--name", name).Fails(t, 2, "no deployed revision")
	image := n.Image(t)
	n.Deploy(t, name, image)
	n.TryDeploy(t, name, n.Faulty(t, "crash", labs.Release)).Fails(t, 1, "this scheduler ends at once")
	n.PMKSched(t, "rollback", "--name", name).Fails(t, 2, "no deployed revision that differs")
	n.PMKSched(t, "rollback", "--name", name, "--to", "2").Fails(t, 2, "was never stable")
	n.PMKSched(t, "rollback", "--name", name, "--to", "7").Fails(t, 2, "no revision 7", "it has 1 and 2")

	secret := "pmk-sched-" + name + "-revision-1"
	n.Kubectl(t, "patch", "secret", secret, "-n", "kube-system", "--type=merge", "-p",
		`{"data":{"objects.json.gz":"ZGFtYWdlZA=="}}`)
	n.PMKSched(t, "rollback", "--name", name, "--to", "1").Fails(t, 1, "revision 1 of "+name+" is damaged", secret)
	if got := history(t, n, name); got[0].Status != "damaged" || !strings.Contains(got[0].Reason, secret) {
		t.Errorf("history: %+v", got)
	}
	hasImage(t, n, name, image)
	n.PMKSched(t, "verify", "--name", name).OK(t)
}
