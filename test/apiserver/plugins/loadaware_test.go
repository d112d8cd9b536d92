//go:build linux

package plugins

import (
	"context"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugins/loadaware"
	"github.com/pmk-sched/pmk-sched/test/internal/prometheus"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The nodes are known to Prometheus by their address, their name and their host name.
func createNodes(ctx context.Context, t *testing.T) (nodes map[string]scheduler.NodeInfo, instances map[string]string) {
	t.Helper()
	nodes = map[string]scheduler.NodeInfo{}
	instances = map[string]string{"load-1": "10.1.0.1:9100", "load-2": "load-2", "load-3": "host-3:9100"}
	client := server.Client(t).CoreV1().Nodes()
	for name := range instances {
		object, err := client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		switch name {
		case "load-1":
			object.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.1.0.1"}}
		case "load-3":
			object.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "host-3"}}
		}
		if object, err = client.UpdateStatus(ctx, object, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		nodes[name] = node{object: object}
	}
	return nodes, instances
}

// One plugin sees everything that befalls a Prometheus, one after the other.
func TestLoadAwareFollowsPrometheus(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	nodes, instances := createNodes(ctx, t)
	load := prometheus.StartExporter(t, "load-1", "load-2", "load-3")
	load.Load(map[string]float64{"load-1": 0.95, "load-2": 0.5, "load-3": 0.1})
	prom := prometheus.New(t, "127.0.0.1", 200*time.Millisecond, load, instances)
	door := startGate(t, prom, "sesame")
	h := newHandle(t, server.Config())
	plugin, err := loadaware.New(ctx, scheduler.NewArguments(fmt.Appendf(nil, `{
		"prometheus": {"url": %q, "ca": %q, "bearerTokenFile": %q, "timeout": "2s"},
		"interval": "200ms", "staleAfter": "3s", "window": "3s",
		"metrics": [{"name": "cpu", "maxPercent": 85}, {"name": "memory"}]}`,
		door.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: door.Certificate().Raw}), tokenFile(t))), h)
	if err != nil {
		t.Fatal(err)
	}
	h.factory.Start(ctx.Done())
	neutral := map[string]int64{"load-1": 0, "load-2": 0, "load-3": 0}
	await := func(what string, want map[string]int64, passing ...string) {
		t.Helper()
		awaitScores(ctx, t, what, plugin, nodes, want, passing)
	}

	await("Prometheus is not there yet", neutral, "load-1", "load-2", "load-3")
	prom.Start(ctx, t)
	await("Prometheus starts", map[string]int64{"load-1": 5, "load-2": 50, "load-3": 90}, "load-2", "load-3")
	load.Load(map[string]float64{"load-1": 0.1, "load-2": 0.3, "load-3": 0.95})
	await("the load moves", map[string]int64{"load-1": 90, "load-2": 70, "load-3": 5}, "load-1", "load-2")

	for _, trouble := range []struct {
		name       string
		cause, end func()
	}{
		{"garbage", func() { door.mode.Store(gateGarbage) }, func() { door.mode.Store(gateOpen) }},
		{"silence", func() { door.mode.Store(gateHanging) }, func() { door.mode.Store(gateOpen) }},
		{"Prometheus is killed", prom.Stop, func() { prom.Start(ctx, t) }},
	} {
		// A metric that has not recovered from the previous failure would hide this one.
		run.Eventually(t, "both metrics before "+trouble.name, func(context.Context) (bool, string) {
			up := h.metric(t, "pmk_sched_loadaware_up")
			return up == 2, fmt.Sprint(up)
		})
		before := h.log.count("error: LoadAware cannot read load")
		trouble.cause()
		await(trouble.name, neutral, "load-1", "load-2", "load-3")
		run.Eventually(t, trouble.name+" is reported for both metrics", func(context.Context) (bool, string) {
			up, lines := h.metric(t, "pmk_sched_loadaware_up"), h.log.count("error: LoadAware cannot read load")-before
			return up == 0 && lines == 2, fmt.Sprintf("up %v, lines of the log %q", up, h.log.text)
		})
		trouble.end()
		await("after "+trouble.name, map[string]int64{"load-1": 90, "load-2": 70, "load-3": 5}, "load-1", "load-2")
	}
	run.Eventually(t, "the metrics count three nodes with fresh data", func(context.Context) (bool, string) {
		fresh, up := h.metric(t, "pmk_sched_loadaware_nodes", `"fresh"`), h.metric(t, "pmk_sched_loadaware_up")
		return fresh == 6 && up == 2, fmt.Sprint(fresh, up)
	})
}

func tokenFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// awaitScores waits until the nodes have these scores, with a tolerance for counters and a loaded
// machine, and until exactly the nodes in passing pass the filter.
func awaitScores(ctx context.Context, t *testing.T, what string, plugin *loadaware.LoadAware,
	nodes map[string]scheduler.NodeInfo, want map[string]int64, passing []string) {
	t.Helper()
	const tolerance = 4
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	run.Eventually(t, what, func(context.Context) (bool, string) {
		var scores []scheduler.NodeScore
		for name, n := range nodes {
			score, _ := plugin.Score(ctx, nil, pod, n)
			scores = append(scores, scheduler.NodeScore{Name: name, Score: score})
		}
		plugin.NormalizeScore(ctx, nil, pod, scores)
		ok := true
		for _, s := range scores {
			ok = ok && s.Score >= want[s.Name]-tolerance && s.Score <= want[s.Name]+tolerance
		}
		passes := map[string]bool{}
		for name, n := range nodes {
			if plugin.Filter(ctx, nil, pod, n).IsSuccess() {
				passes[name] = true
			}
		}
		ok = ok && len(passes) == len(passing)
		for _, name := range passing {
			ok = ok && passes[name]
		}
		return ok, fmt.Sprint(scores, passes)
	})
}
