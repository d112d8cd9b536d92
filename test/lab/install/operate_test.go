//go:build linux

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

// The log of the only replica, which leads; with --follow a line that is logged later is printed
// too, and an interrupt is not a failure.
func TestLogsMarkTheLeaderAndFollow(t *testing.T) {
	n, name := labs.Shared(t, "pmk"), labs.SchedulerName(t)
	image := n.Image(t)
	n.PMKSched(t, "logs", "--name", name).Fails(t, 2, "has no pods in namespace kube-system")
	n.Deploy(t, name, image)
	pod := n.Kubectl(t, "get", "pods", "-n", "kube-system", "-l", "app.kubernetes.io/instance="+name, "-o",
		"jsonpath={.items[0].metadata.name}")
	run.Eventually(t, "the log of the leader is printed", func(context.Context) (bool, string) {
		log := n.PMKSched(t, "logs", "--name", name).OK(t)
		return strings.Contains(log.Stdout, "["+pod+" leader] ") &&
			strings.Contains(log.Stdout, "successfully acquired lease"), log.String()
	})
	if recent := n.PMKSched(t, "logs", "--name", name, "--since", "1s").OK(t); strings.Contains(recent.Stdout,
		"Starting Kubernetes Scheduler") {
		t.Errorf("--since 1s prints the beginning: %s", recent)
	}

	n.Shell(t, fmt.Sprintf(followScript, run.Program(t), name, filepath.Join(t.TempDir(), "log")))
}

// followScript follows the log of a scheduler while a pod is bound, and fails unless the log then
// has a line about the pod, and `logs --follow` succeeds when it is interrupted.
const followScript = `
program=%s name=%s log=%s
"$program" logs --name "$name" --follow >"$log" &
follower=$!
trap 'kill "$follower" 2>/dev/null || true' EXIT # or the test would wait for its output
"$program" verify --name "$name"
tries=0
until grep -q 'Successfully bound pod to node' "$log"; do
	tries=$((tries + 1))
	test "$tries" -lt 150
	sleep 0.2
done
kill -TERM "$follower"
wait "$follower"
`
