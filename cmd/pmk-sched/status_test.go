package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pmk-sched/pmk-sched/cmd/internal/command"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

// fullStatus has a scheduler with findings and an extender without.
func fullStatus() *replace.Status {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	expires := at.AddDate(0, 0, 20)
	return &replace.Status{
		Server: "v1.24.3", Requests: 40,
		Nodes: []replace.NodeStatus{{Node: "node-1", Replaced: true, Ready: true, Leads: true,
			Image: "registry.example.com/kube-scheduler:v1.24.3"}},
		Schedulers: []*health.Workload{{
			Kind: health.Scheduler, Name: "my-scheduler", Namespace: "kube-system", InstalledBy: "pmk-sched", Release: "v1.24.3",
			Revision: 4, Ready: 1, Wanted: 2,
			Image: "registry.example.com/sched/my-scheduler:v1@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			Replicas: []health.Replica{
				{Pod: "my-scheduler-6d5f9b7c8-abcde", Node: "node-1", Ready: true, Leads: true, Since: at, Restarts: 1},
				{Pod: "my-scheduler-6d5f9b7c8-fghij", Node: "node-2", Since: at,
					NodeProblem: "is not ready since 2026-03-01T11:00:00Z"},
			},
			Lease:       &health.Lease{Exists: true, Holder: "node-1_0f1e", Since: at},
			Credentials: &health.Credentials{Mode: "node", Subject: "CN=system:kube-scheduler", Expires: &expires},
			Certificate: &health.Certificate{Object: "Secret/kube-system/my-scheduler-credentials-1a2b", Expires: expires},
			Waiting:     &health.Waiting{Pods: 3, Oldest: "team-a/web-0", Since: at, Ignored: 1},
			Scheduling: &health.Scheduling{Scheduled: 1200, Unschedulable: 4, P50: 0.0015, P99: 1.2, Replicas: 1,
				Unknown: "the metrics of my-scheduler-6d5f9b7c8-fghij are not readable: timeout"},
			Calls: []string{"gpu"},
			Events: []health.Event{{Time: at, Object: "Pod/my-scheduler-6d5f9b7c8-fghij", Reason: "NodeNotReady",
				Message: "Node is not ready\nand " + strings.Repeat("a long message ", 9)}},
		}},
		Extenders: []*health.Workload{{
			Kind: health.Extender, Name: "gpu", Namespace: "kube-system", Revision: 1, Ready: 1, Wanted: 1,
			Image:    "registry.example.com/extender:v1",
			Replicas: []health.Replica{{Pod: "gpu-1", Node: "node-1", Ready: true, Since: at}},
			Service:  &health.Service{Exists: true, Endpoints: 1},
		}},
		Arbiter: &health.Arbiter{Name: "pmk-sched-arbiter", Namespace: "pmk-sched-system", Trusted: true,
			Lease: &health.Lease{Exists: true, Holder: "pmk-sched-admission-5f6d7c8b9-abcde", Since: at}},
		Findings: []health.Finding{
			{Code: health.Drifted, Kind: health.Scheduler, Name: "my-scheduler", Namespace: "kube-system",
				Text:   "Deployment/kube-system/my-scheduler differs from revision 4 in 1 field",
				Detail: "  spec.replicas is 2, recorded is 1 (kubectl at 2026-03-01T12:00:00Z)\n",
				Hint:   "deploy it again to undo the change"},
			{Code: health.NodeNotReady, Kind: health.Scheduler, Name: "my-scheduler", Namespace: "kube-system",
				Text: "replica my-scheduler-6d5f9b7c8-fghij is on node node-2, which is not ready", Hint: "repair the node"},
			{Code: health.CertificateExpiring, Kind: health.Scheduler, Name: "my-scheduler", Namespace: "kube-system",
				Text: "the certificate expires", Hint: "deploy it again"},
		},
	}
}

func TestStatusText(t *testing.T) {
	s := fullStatus()
	got := command.Aligned(statusText(s) + findingsText(s.Findings))
	golden.Equal(t, "testdata/status.golden", got)
	for line := range strings.Lines(got) {
		if len([]rune(strings.TrimRight(line, "\n"))) > textWidth {
			t.Errorf("a line is wider than %d columns: %s", textWidth, line)
		}
	}
}

func TestStatusTextOfAnEmptyCluster(t *testing.T) {
	if got := statusText(&replace.Status{Requests: 3}); got != "3 requests to the API server\n" {
		t.Errorf("got %q", got)
	}
}

// watched runs watchStatus with readings until they end, and returns its output. A nil reading
// stands for an error of the API server.
func watched(t *testing.T, format string, readings ...*replace.Status) (out, errs string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	u := newUI(nil, &stdout, &stderr)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	err = watchStatus(ctx, u, format, time.Minute, func(context.Context) (*replace.Status, error) {
		if n == len(readings) {
			cancel()
			return nil, ctx.Err()
		}
		s := readings[n]
		n++
		switch {
		case s == nil:
			return nil, errors.New("the API server is away")
		case len(s.Findings) > 0:
			return s, &health.FindingsError{Findings: s.Findings}
		}
		return s, nil
	})
	return stdout.String(), stderr.String(), err
}

func TestWatchPrintsAStatusThatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := fullStatus()
		changed.Schedulers[0].Ready, changed.Findings = 2, nil
		out, errs, err := watched(t, "table", fullStatus(), fullStatus(), nil, fullStatus(), changed)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"1/2", "2/2", "\nFINDINGS\n", "no findings", "hint: repair the node"} {
			if strings.Count(out, text) != 1 {
				t.Errorf("%q is not printed once:\n%s", text, out)
			}
		}
		if !strings.Contains(errs, "the API server is away") || strings.Contains(out, "\033[H") {
			t.Errorf("standard error %q, output %q", errs, out)
		}
	})
}

func TestWatchPrintsJSONDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, _, err := watched(t, "json", fullStatus(), fullStatus())
		if err != nil || strings.Count(out, `"server": "v1.24.3"`) != 1 || !strings.HasPrefix(out, "{") {
			t.Errorf("error %v, output %s", err, out)
		}
	})
}

func TestWatchFailsIfTheFirstReadingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, _, err := watched(t, "table", nil); err == nil || !strings.Contains(err.Error(), "away") {
			t.Errorf("got %v", err)
		}
	})
}
