package health

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// healthy is a scheduler without findings.
func healthy() *Workload {
	return &Workload{
		Kind: Scheduler, Name: "s", Namespace: "n", InstalledBy: "pmk-sched", Release: "v1.24.3", Revision: 2, Ready: 1,
		Wanted:   1,
		Replicas: []Replica{{Pod: "s-1", Node: "node-1", Ready: true, Leads: true, Since: ago(time.Hour)}},
		Lease: &Lease{Exists: true, Holder: "s-1_x", Since: ago(time.Hour), Renewed: ago(2 * time.Second),
			Duration: 15 * time.Second},
		Certificate: &Certificate{Object: "Secret/n/s-credentials", Expires: now.AddDate(1, 0, 0)},
		Waiting:     &Waiting{},
		Calls:       []string{"e"},
	}
}

// extender is an extender without findings.
func extender() *Workload {
	return &Workload{
		Kind: Extender, Name: "e", Namespace: "n", InstalledBy: "pmk-sched", Revision: 1, Ready: 1, Wanted: 1,
		Replicas: []Replica{{Pod: "e-1", Node: "node-1", Ready: true, Since: ago(time.Hour)}}, Service: &Service{Exists: true,
			Endpoints: 1},
	}
}

func replica(change func(*Replica)) func(*Workload) {
	return func(w *Workload) {
		w.Replicas[0].Ready, w.Ready = false, 0
		change(&w.Replicas[0])
	}
}

// Each case is a workload without findings, with one cause. Those without a code are near misses of
// the case before.
func TestEachFindingHasItsCause(t *testing.T) {
	var all strings.Builder
	defer func() { golden.Equal(t, "testdata/findings.txt", all.String()) }()
	for _, tc := range []struct {
		name   string
		of     func() *Workload
		change func(*Workload)
		code   Code
		text   string
	}{
		{"a scheduler", healthy, func(*Workload) {}, "", ""},
		{"an extender", extender, func(*Workload) {}, "", ""},

		{"edited object", healthy, func(w *Workload) {
			w.Drift = []ObjectDrift{{Object: "Deployment/n/s",
				Fields: []FieldDrift{{Path: "spec.replicas", Live: "3", Recorded: "1"}}}}
		}, Drifted, "Deployment/n/s differs from revision 2 in 1 field"},
		{"deleted object", healthy, func(w *Workload) {
			w.Drift = []ObjectDrift{
				{Object: "Role/n/s-lease", Missing: true}}
		}, ObjectMissing, "Role/n/s-lease of revision 2 does not exist"},
		{"labels removed", healthy, func(w *Workload) {
			w.Drift = []ObjectDrift{
				{Object: "Role/n/s-lease", Foreign: true}}
		}, ObjectForeign, "Role/n/s-lease has lost the labels"},
		{"deployment under way", healthy, func(w *Workload) {
			w.Unfinished = &Unfinished{Revision: 3, Since: ago(time.Minute), By: "root@node-1"}
		}, DeployUnfinished, "the deployment of revision 3 by root@node-1, begun at 2026-03-01T11:59:00Z, has not ended"},

		{"deployment under way without a name", healthy, func(w *Workload) {
			w.Unfinished = &Unfinished{Revision: 3, Since: ago(time.Minute)}
		}, DeployUnfinished, "the deployment of revision 3, begun at 2026-03-01T11:59:00Z, has not ended"},

		{"too few pods", healthy, func(w *Workload) { w.Wanted = 2 }, ReplicaMissing, "1 of 2 replicas exist"},
		{"only a pod that is being deleted", healthy, func(w *Workload) { w.Replicas[0].Terminating = true }, ReplicaMissing,
			"0 of 1 replica exists"},
		{"no pods", healthy, func(w *Workload) { w.Replicas = []Replica{} }, ReplicaMissing, "0 of 1 replica exists"},
		{"pods that could not be listed", healthy, func(w *Workload) { w.Replicas = nil }, "", ""},
		{"more pods during a rollout", healthy, func(w *Workload) {
			w.Replicas = append(w.Replicas,
				Replica{Pod: "s-0", Node: "node-1", Ready: true, Terminating: true, Since: ago(time.Hour)})
		}, "", ""},
		{"a pod without node", healthy, replica(func(r *Replica) { r.Node, r.Message = "", "0/1 nodes are available" }),
			ReplicaUnbound, "replica s-1 has no node: 0/1 nodes are available"},
		{"a node that is down", healthy, replica(func(r *Replica) { r.NodeProblem = "is not ready since yesterday" }),
			NodeNotReady, "replica s-1 is on node node-1, which is not ready since yesterday"},
		{"an image that is missing", healthy, replica(func(r *Replica) { r.Reason = "ErrImageNeverPull" }), ImageUnavailable,
			"node node-1 does not get the image of replica s-1: ErrImageNeverPull"},
		{"a crash", healthy, replica(func(r *Replica) { r.Reason, r.Restarts = "CrashLoopBackOff", 4 }), ReplicaCrashing,
			"replica s-1 on node node-1 does not run, after 4 restarts: CrashLoopBackOff"},
		{"a probe that fails", healthy, replica(func(*Replica) {}), ReplicaNotReady,
			"replica s-1 on node node-1 is not ready since 2026-03-01T11:00:00Z"},
		{"a probe with a message", healthy, replica(func(r *Replica) {
			r.Reason, r.Message = "Unhealthy", strings.Repeat("é ", 100)+"\t\n"
		}), ReplicaNotReady, "is not ready since 2026-03-01T11:00:00Z: Unhealthy: é"},
		{"a message of the greatest length", healthy, replica(func(r *Replica) { r.Message = strings.Repeat("é", 200) }),
			ReplicaNotReady, "is not ready since 2026-03-01T11:00:00Z: é"},
		{"a message that is too long", healthy, replica(func(r *Replica) { r.Message = strings.Repeat("é", 201) }),
			ReplicaNotReady, "é …"},
		{"restarts long ago", healthy, func(w *Workload) { w.Replicas[0].Restarts = 9 }, "", ""},

		{"no lease", healthy, func(w *Workload) { w.Lease = &Lease{} }, NoLeader, "no replica leads: lease s does not exist"},
		{"released lease", healthy, func(w *Workload) { w.Lease.Holder = "" }, NoLeader,
			"no replica leads: lease s has no holder"},
		{"expired lease", healthy, func(w *Workload) { w.Lease.Renewed = ago(46 * time.Second) }, NoLeader,
			"no replica leads: s-1_x last renewed lease s at 2026-03-01T11:59:14Z"},
		{"lease that the last replica did not release", healthy, func(w *Workload) {
			w.Wanted, w.Ready, w.Replicas = 0, 0, []Replica{}
		}, NoLeader, "no replica leads: none exists, and lease s still names s-1_x"},
		{"no replicas wanted, and none could be listed", healthy, func(w *Workload) { w.Wanted, w.Replicas = 0, nil }, "", ""},
		{"clocks that differ", healthy, func(w *Workload) { w.Lease.Renewed = ago(45 * time.Second) }, "", ""},
		{"no leader election", healthy, func(w *Workload) { w.Lease = nil }, "", ""},
		{"taken lease", healthy, func(w *Workload) { w.Lease.Foreign, w.Lease.Holder = true, "other_x" }, LeaseForeign,
			"lease s is held by other_x since 2026-03-01T11:00:00Z, which is none of the replicas"},
		{"lease of the replica before", healthy, func(w *Workload) {
			w.Lease.Foreign, w.Replicas[0].Since = true, ago(32*time.Second)
			w.Replicas = append(w.Replicas, Replica{Pod: "s-2", Node: "node-2", Ready: true, Since: ago(time.Hour)})
		}, "", ""},
		{"lease of the replica before, for too long", healthy, func(w *Workload) {
			w.Lease.Foreign, w.Replicas[0].Since = true, ago(33*time.Second)
		}, LeaseForeign, "lease s is held by s-1_x since"},

		{"pods that nothing tried", healthy, func(w *Workload) { w.Waiting.Add("a/p", ago(2*time.Minute), false) },
			PodsIgnored,
			"the scheduler has not reported on 1 pod that name it; the oldest, a/p, waits since 2026-03-01T11:58:00Z"},
		{"a pod that nothing tried for a minute", healthy, func(w *Workload) {
			w.Waiting.Add("a/p", ago(time.Minute), false)
		}, PodsIgnored, "the oldest, a/p, waits since 2026-03-01T11:59:00Z"},
		{"a pod that was just created", healthy, func(w *Workload) { w.Waiting.Add("a/p", ago(time.Second), false) }, "", ""},
		{"a pod that does not fit", healthy, func(w *Workload) { w.Waiting.Add("a/p", ago(time.Hour), true) }, "", ""},
		{"a route", healthy, func(w *Workload) { w.Route = &Route{Bound: 3, Waiting: 1} }, "", ""},
		{"a suspended route", healthy, func(w *Workload) {
			w.Route = &Route{Suspended: true, SuspendedSince: ago(time.Minute)}
		}, RouteSuspended, "new pods are not routed to the scheduler since 2026-03-01T11:59:00Z: no replica led"},
		{"a route that nothing ends", healthy, func(w *Workload) { w.Route = &Route{Unguarded: true} }, RouteUnguarded,
			"nothing ends the route if no replica leads: routed pods would wait"},

		{"certificate near its end", healthy, func(w *Workload) { w.Certificate.Expires = now.AddDate(0, 0, 20) },
			CertificateExpiring, "the certificate in Secret/n/s-credentials expires in 20 days, on 2026-03-21"},
		{"certificate of the credentials", healthy, func(w *Workload) {
			w.Certificate.Expires = now.Add(certificateSoon - 1)
			w.Credentials = &Credentials{Source: w.Certificate.Object, Renewal: "by the kubelet"}
		}, CertificateExpiring, "expires in 29 days, on 2026-03-31"},
		{"certificate of other credentials", healthy, func(w *Workload) {
			w.Certificate.Expires = now.Add(24 * time.Hour)
			w.Credentials = &Credentials{Source: "Secret/n/other", Renewal: "by the kubelet"}
		}, CertificateExpiring, "expires in 1 day, on 2026-03-02"},
		{"certificate of credentials without renewal", healthy, func(w *Workload) {
			w.Certificate.Expires = now.Add(1)
			w.Credentials = &Credentials{Source: w.Certificate.Object}
		}, CertificateExpiring, "expires in 0 days, on 2026-03-01"},
		{"certificate for 30 days", healthy, func(w *Workload) { w.Certificate.Expires = now.Add(certificateSoon) }, "", ""},
		{"certificate past its end", healthy, func(w *Workload) { w.Certificate.Expires = now }, CertificateExpired,
			"expired on 2026-03-01"},
		{"release behind", healthy, func(w *Workload) { w.Server = "v1.25.16" }, ReleaseSkew,
			"it is v1.24.3, the API server is v1.25.16"},
		{"release of a chart behind", healthy, func(w *Workload) { w.Server, w.InstalledBy = "v1.25.16", "Helm" },
			ReleaseSkew, "it is v1.24.3, the API server is v1.25.16"},
		{"one API server for all", healthy, func(w *Workload) { w.DependsOn = "node-1" }, DependsOnNode,
			"all replicas use the API server of node node-1"},

		{"extender not deployed", healthy, func(w *Workload) {
			w.Missing = []string{
				"e"}
		}, ExtenderMissing, "it calls extender e, which is not deployed"},
		{"no Service", extender, func(w *Workload) { w.Service = &Service{} }, ExtenderNoEndpoints,
			"its Service does not exist"},
		{"no endpoints", extender, func(w *Workload) { w.Service.Endpoints = 0 }, ExtenderNoEndpoints,
			"its Service has no ready endpoints"},
		{"unreachable", extender, func(w *Workload) { w.Unreachable = "timeout" }, ExtenderUnreachable,
			"the API server does not reach its pods, so schedulers may not either: timeout"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := tc.of()
			tc.change(w)
			found := w.Findings(now)
			if tc.code == "" {
				if len(found) > 0 {
					t.Fatalf("findings: %v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Code != tc.code || !strings.Contains(found[0].Text, tc.text) || found[0].Hint == "" {
				t.Fatalf("findings %+v, want %s: %s", found, tc.code, tc.text)
			}
			fmt.Fprintf(&all, "%s\n  %s\n  hint: %s\n%s\n", tc.name, found[0], found[0].Hint, found[0].Detail)
			if found[0].Kind != w.Kind || found[0].Name != w.Name || found[0].Namespace != w.Namespace {
				t.Errorf("the finding is about %s %s/%s", found[0].Kind, found[0].Namespace, found[0].Name)
			}
		})
	}
}

// While a deployment is under way the objects differ from the last revision, and replicas come and
// go.
func TestNoDriftWhileADeploymentIsUnderWay(t *testing.T) {
	w := healthy()
	w.Unfinished, w.Wanted = &Unfinished{Revision: 3, Since: now}, 3
	w.Drift = []ObjectDrift{{Object: "Deployment/n/s", Missing: true}}
	if found := w.Findings(now); len(found) != 1 || found[0].Code != DeployUnfinished {
		t.Errorf("findings %v", found)
	}
}

func TestWaitingCountsTheOldest(t *testing.T) {
	w := &Waiting{}
	w.Add("a/new", ago(time.Minute), false)
	w.Add("a/old", ago(time.Hour), true)
	w.Add("a/older-ignored", ago(30*time.Minute), false)
	w.Add("a/newest", ago(time.Second), false)
	want := &Waiting{Pods: 4, Oldest: "a/old", Since: ago(time.Hour), Ignored: 3, OldestIgnored: "a/older-ignored",
		IgnoredSince: ago(30 * time.Minute)}
	if diff := cmp.Diff(want, w); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
}

func TestFindingsErrorHasALineForEachFindingAndTheirHints(t *testing.T) {
	err := error(&FindingsError{Findings: []Finding{
		{Code: Drifted, Kind: Scheduler, Name: "s", Namespace: "n", Text: "differs", Hint: "deploy",
			Detail: "  spec.replicas\n"},
		{Code: NoLeader, Kind: Node, Name: "node-1", Text: "down", Hint: "repair"},
	}})
	const want = "scheduler s in namespace n: differs [drift]\n  spec.replicas\nnode node-1: down [no-leader]"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err.Error(), want)
	}
	if diff := cmp.Diff([]string{"deploy", "repair"}, problem.Hints(err)); diff != "" {
		t.Errorf("hints (-want +got):\n%s", diff)
	}
	var finding interface{ CheckFailed() bool }
	if !errors.As(err, &finding) || !finding.CheckFailed() || problem.IsInvalid(err) {
		t.Error("it is not a failed check")
	}
}
