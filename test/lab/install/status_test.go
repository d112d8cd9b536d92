//go:build linux && labs

package install

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

func TestStatusOfARealScheduler(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	n.PMKSched(t, "status", "--name", name).Fails(t, 2, "no scheduler or extender "+name+" is deployed")
	n.Deploy(t, name, n.Image(t))
	n.PMKSched(t, "verify", "--name", name).OK(t)
	expectFindings(t, n, name)
	var report statusReport
	var r run.Result
	run.Eventually(t, "the scheduler counts the pod of the verification", func(context.Context) (bool, string) {
		report, r = status(t, n, name)
		return len(report.Schedulers) == 1 && report.Schedulers[0].Scheduling != nil &&
			report.Schedulers[0].Scheduling.Scheduled >= 1, r.String()
	})
	if report.Server != n.Release || report.Requests == 0 {
		t.Fatal(r)
	}
	s := report.Schedulers[0]
	if s.Ready != 1 || s.Revision != 1 || len(s.Replicas) != 1 || s.Replicas[0].Node != n.NodeName ||
		!s.Replicas[0].Leads {
		t.Errorf("status: %s", r)
	}
	// The node itself may read the metrics.
	if m := s.Scheduling; m.Unknown != "" || m.P99 <= 0 || m.Leading != 1 {
		t.Errorf("scheduling: %s", r)
	}

	t.Run("edited by hand", func(t *testing.T) {
		n.Kubectl(t, "annotate", "deployment", name, "-n", "kube-system", "of=another-tool")
		n.Kubectl(t, "patch", "deployment", name, "-n", "kube-system", "-p",
			`{"spec":{"revisionHistoryLimit":3,"strategy":{"rollingUpdate":{"maxUnavailable":"50%"}}}}`)
		expectFindings(t, n, name, "drift")
		n.PMKSched(t, "status", "--name", name).Fails(t, 3, "spec.strategy.rollingUpdate.maxUnavailable is ", "(kubectl")
		n.TryDeploy(t, name, n.Image(t)).OK(t)
		expectFindings(t, n, name)
	})
	t.Run("permissions removed", func(t *testing.T) {
		n.Kubectl(t, "delete", "clusterrolebinding", name+"-as-kube-scheduler")
		expectFindings(t, n, name, "object-missing")
		n.TryDeploy(t, name, n.Image(t)).OK(t)
		expectFindings(t, n, name)
	})
	t.Run("scaled to nothing", func(t *testing.T) {
		n.Kubectl(t, "scale", "deployment", name, "-n", "kube-system", "--replicas=0")
		expectFindings(t, n, name, "drift", "no-leader")
		n.TryDeploy(t, name, n.Image(t)).OK(t)
		expectFindings(t, n, name)
	})
	broken := func(code string, kubectl ...string) {
		t.Run(code, func(t *testing.T) {
			n.Kubectl(t, append(kubectl, "-n", "kube-system")...)
			run.Eventually(t, "it is a finding", func(context.Context) (bool, string) {
				r := n.PMKSched(t, "status", "--name", name)
				return r.Code == 3 && strings.Contains(r.Stderr, "["+code+"]") && strings.Contains(r.Stderr, "[drift]"), r.String()
			})
			n.TryDeploy(t, name, n.Image(t)).OK(t)
			expectFindings(t, n, name)
		})
	}
	broken("image-unavailable", "set", "image", "deployment/"+name, "kube-scheduler=localhost/missing:v1")
	broken("replica-crashing", "set", "image", "deployment/"+name, "kube-scheduler="+n.Faulty(t, "crash", labs.Release))
	broken("replica-unscheduled", "patch", "deployment", name, "-p",
		`{"spec":{"template":{"spec":{"nodeSelector":{"no-such":"label"}}}}}`)
	broken("replica-not-ready", "patch", "deployment", name, "-p",
		`{"spec":{"template":{"spec":{"containers":[{"name":"kube-scheduler","readinessProbe":{"httpGet":{"path":"/no-such-path"}}}]}}}}`)
	t.Run("watched", func(t *testing.T) {
		n.Shell(t, fmt.Sprintf(watchScript, run.Program(t), name, filepath.Join(t.TempDir(), "status")))
		n.TryDeploy(t, name, n.Image(t)).OK(t)
		expectFindings(t, n, name)
	})
}

// watchScript watches the status while an object is deleted, and fails unless both states are
// printed and the end is not a failure.
const watchScript = `
program=%s name=%s out=%s
"$program" status --name "$name" --watch >"$out" &
watcher=$!
await() {
	tries=0
	until grep -q "$1" "$out"; do
		tries=$((tries + 1))
		test "$tries" -lt 300
		sleep 0.2
	done
}
await 'no findings'
kubectl delete clusterrolebinding "$name-as-kube-scheduler"
await 'object-missing'
kill -TERM "$watcher"
wait "$watcher"
`
