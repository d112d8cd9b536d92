package deploy

import (
	"bytes"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// revision returns a deployed revision of my-scheduler for a cluster of a release.
func revision(t *testing.T, number int, server string, change func(*PlanInput)) *apply.Revision {
	t.Helper()
	o := PlanInput{Name: "my-scheduler", Facts: Facts{Cluster: masterInfo(server),
		Image: "registry.example.com/s:" + server + "@sha256:" + strings.Repeat("0123", 16)}}
	if change != nil {
		change(&o)
	}
	if o.Spec.Credentials == CredentialsNode {
		o.Node = nodeCredentials()
	}
	plan, err := o.Plan()
	if err != nil {
		t.Fatal(err)
	}
	r := revisionOf(t, number, plan)
	r.By, r.Created = "root@node-1", now
	return r
}

// revisionOf returns a deployed revision of a plan.
func revisionOf(t *testing.T, number int, plan *Plan) *apply.Revision {
	t.Helper()
	record, err := plan.Record()
	if err != nil {
		t.Fatal(err)
	}
	return &apply.Revision{
		RevisionInfo: apply.RevisionInfo{Number: number, Name: plan.Name, Namespace: plan.Namespace,
			Status: apply.Deployed, Description: plan.Description()},
		Objects: plan.Objects,
		Record:  record,
	}
}

func port(p v1alpha1.AutoInt) func(*PlanInput) { return func(o *PlanInput) { o.Spec.Ports.Secure = p } }

func failed(r *apply.Revision) *apply.Revision {
	r.Status, r.Reason = apply.Failed, "not stable\nlog lines"
	return r
}

func damaged(r *apply.Revision) *apply.Revision {
	r.Objects, r.Damage = nil, errors.New("unpack: unexpected EOF")
	return r
}

// rollBack plans a rollback on a cluster of a release.
func rollBack(t *testing.T, server string, revisions []*apply.Revision, o RollbackOptions) (*Plan, *apply.Revision,
	error) {
	t.Helper()
	return PlanRollback(t.Context(), masterInfo(server), infos(revisions), reading(revisions), o)
}

func TestRollbackChoosesTheRevision(t *testing.T) {
	one, two, three := revision(t, 1, "v1.24.3", nil), revision(t, 2, "v1.24.3", port(10300)), revision(t, 3, "v1.24.3",
		port(10301))
	like3 := revision(t, 4, "v1.24.3", port(10301))
	tests := map[string]struct {
		revisions []*apply.Revision
		to        int
		want      int
		replaces  int
		fails     string
	}{
		"the one before":              {revisions: []*apply.Revision{one, two, three}, want: 2, replaces: 3},
		"a number":                    {revisions: []*apply.Revision{one, two, three}, to: 1, want: 1, replaces: 3},
		"the current one":             {revisions: []*apply.Revision{one, two}, to: 2, want: 2, replaces: 2},
		"the one before that differs": {revisions: []*apply.Revision{one, two, three, like3}, want: 2, replaces: 4},
		"failed ones are skipped": {revisions: []*apply.Revision{one,
			failed(revision(t, 2, "v1.24.3", port(10300))), three}, want: 1, replaces: 3},
		"the newest failed": {revisions: []*apply.Revision{one, two,
			failed(revision(t, 3, "v1.24.3", port(10301)))}, want: 1, replaces: 2},
		"the current one is damaged": {revisions: []*apply.Revision{one, two,
			damaged(revision(t, 3, "v1.24.3", port(10301)))}, want: 2, replaces: 2},
		"none": {fails: "has no deployed revision in namespace kube-system"},
		"only one": {revisions: []*apply.Revision{one},
			fails: "no deployed revision that differs from the current one, 1"},
		"no such revision": {revisions: []*apply.Revision{one, two, three}, to: 9,
			fails: "no revision 9 in namespace kube-system: it has 1, 2 and 3"},
		"one that failed": {revisions: []*apply.Revision{one,
			failed(revision(t, 2, "v1.24.3", port(10300)))}, to: 2,
			fails: "revision 2 of my-scheduler was never stable: not stable"},
		"a damaged one": {revisions: []*apply.Revision{damaged(revision(t, 1, "v1.24.3", nil)), two},
			to: 1, fails: "revision 1 of my-scheduler is damaged: unpack: unexpected EOF"},
		"a damaged one before is left out": {revisions: []*apply.Revision{one, damaged(revision(t, 2, "v1.24.3", nil)),
			three}, want: 1, replaces: 3},
		"only a damaged one before is left": {revisions: []*apply.Revision{damaged(revision(t, 1, "v1.24.3", nil)), two},
			fails: "no deployed revision that differs"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			plan, target, err := rollBack(t, "v1.24.3", tt.revisions,
				RollbackOptions{Name: "my-scheduler", Namespace: "kube-system", To: tt.to, Now: now})
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) ||
					!strings.Contains(hintOf(err), "pmk-sched history --name my-scheduler") {
					t.Fatalf("error %v with hint %q, want %q", err, hintOf(err), tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if target.Number != tt.want || plan.Replaces != tt.replaces || !SameObjects(plan.Objects, target.Objects) {
				t.Errorf("to revision %d in place of %d, want %d in place of %d", target.Number, plan.Replaces, tt.want,
					tt.replaces)
			}
		})
	}
}

func TestRollbackKeepsWhatTheRevisionDeployed(t *testing.T) {
	one, two := revision(t, 1, "v1.24.3", port(10300)), revision(t, 2, "v1.24.9", nil)
	plan, _, err := rollBack(t, "v1.24.9", []*apply.Revision{one, two},
		RollbackOptions{Name: "my-scheduler", Namespace: "kube-system", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if plan.Scheduler.Image != "registry.example.com/s:v1.24.3@sha256:"+strings.Repeat("0123", 16) ||
		plan.Release.String() != "v1.24.3" {
		t.Errorf("image %s of %s", plan.Scheduler.Image, plan.Release)
	}
	if plan.Scheduler.Port != 10300 || plan.TakenPorts[10259] == "" {
		t.Errorf("port %d is checked against %v", plan.Scheduler.Port, plan.TakenPorts)
	}
	if plan.Description() != one.Description || plan.Origin != "rollback to revision 1" {
		t.Errorf("description %q, origin %q", plan.Description(), plan.Origin)
	}
	if !strings.Contains(string(plan.Scheduler.Configuration.YAML), "kind: KubeSchedulerConfiguration") {
		t.Errorf("the configuration to check is %q", plan.Scheduler.Configuration.YAML)
	}
}

func TestRollbackRefusesWhatTheClusterDoesNotAccept(t *testing.T) {
	inNode := func(o *PlanInput) { o.Spec.Credentials = CredentialsNode }
	tests := map[string]struct {
		server           string
		target, current  *apply.Revision
		change           func(*apply.Revision)
		contains, warned string
	}{
		"another patch": {server: "v1.24.17", target: revision(t, 1, "v1.24.3", nil),
			current: revision(t, 2, "v1.24.17", nil)},
		"the minor before, whose configuration is refused": {
			server: "v1.29.2", target: revision(t, 1, "v1.28.15", nil), change: inV1beta3(t), current: revision(t, 2, "v1.29.2",
				nil),
			contains: "its kube-scheduler is v1.28.15, and the API server is v1.29.2, whose kube-scheduler refuses its " +
				"configuration: ",
		},
		"the minor before, whose configuration is accepted": {
			server: "v1.29.2", target: revision(t, 1, "v1.28.15", nil), current: revision(t, 2, "v1.29.2", nil),
			contains: "its kube-scheduler is v1.28.15, and the API server is v1.29.2",
		},
		"both were left behind": {
			server: "v1.29.2", target: revision(t, 1, "v1.28.15", nil), current: revision(t, 2, "v1.28.15", port(10300)),
			warned: "their minor releases should match",
		},
		"an API that the API server does not serve any more": {
			server: "v1.25.4", target: revision(t, 1, "v1.20.15", nil), current: revision(t, 2, "v1.25.4",
				nil), contains: "policy/v1beta1 PodDisruptionBudgets",
		},
		"a certificate that expired": {
			server: "v1.24.3", target: revision(t, 1, "v1.24.3", inNode), change: expire(t), current: revision(t, 2, "v1.24.3",
				nil),
			contains: "expired on 2026-04-01",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.change != nil {
				tt.change(tt.target)
			}
			plan, _, err := rollBack(t, tt.server, []*apply.Revision{tt.target, tt.current},
				RollbackOptions{Name: "my-scheduler", Namespace: "kube-system", To: 1, Now: now})
			if tt.contains != "" {
				if err == nil || !strings.Contains(err.Error(), tt.contains) {
					t.Fatalf("error %v does not contain %q", err, tt.contains)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(plan.Warnings, "\n"); !strings.Contains(got, tt.warned) || tt.warned == "" && got != "" {
				t.Errorf("warnings %q, want %q", got, tt.warned)
			}
		})
	}
}

// inV1beta3 changes the config API of a revision, as an older pmk-sched might have chosen.
func inV1beta3(t *testing.T) func(*apply.Revision) {
	return func(r *apply.Revision) {
		plan, err := PlanOf(r)
		if err != nil {
			t.Fatal(err)
		}
		configuration := plan.Scheduler.Configuration
		configuration.YAML = bytes.Replace(configuration.YAML, []byte("kubescheduler.config.k8s.io/v1\n"),
			[]byte("kubescheduler.config.k8s.io/v1beta3\n"), 1)
		r.Record = revisionOf(t, 1, plan).Record
	}
}

// expire replaces the certificate of a revision with one that expired a month ago.
func expire(t *testing.T) func(*apply.Revision) {
	return func(r *apply.Revision) {
		authority, err := certificates.NewAuthority(x509.Certificate{NotBefore: now.AddDate(-1, 0, 0),
			NotAfter: now.AddDate(0, -1, 0)})
		if err != nil {
			t.Fatal(err)
		}
		creds := nodeCredentials()
		creds.Cert, creds.Expires = authority.Cert, time.Time{}
		plan, err := PlanInput{Name: "my-scheduler", Facts: Facts{Cluster: masterInfo("v1.24.3"), Node: creds,
			Image: "localhost/s:v1"}}.Plan()
		if err != nil {
			t.Fatal(err)
		}
		r.Objects = plan.Objects
	}
}

func TestRollbackRefusesAnExtender(t *testing.T) {
	r := revisionOf(t, 1, &Plan{Name: "my-scheduler", Extender: &manifest.Extender{Name: "my-scheduler"}})
	_, _, err := rollBack(t, "v1.24.3", []*apply.Revision{r}, RollbackOptions{Name: "my-scheduler", To: 1})
	if !problem.IsInvalid(err) || !strings.Contains(err.Error(), "is an extender") {
		t.Errorf("error %v", err)
	}
}

// A deployment that ended between the choice of the revision and the lock is not rolled back.
func TestRollbackStopsWhenAnotherRunDeployed(t *testing.T) {
	plan := testPlan(t)
	plan.Replaces = 1
	r := &recorder{revisions: []*apply.Revision{earlier(apply.Deployed),
		{RevisionInfo: apply.RevisionInfo{Number: 2, Status: apply.Deployed}}}}
	_, err := Deploy(t.Context(), deps(r), plan, RunOptions{})
	if err == nil || !strings.Contains(err.Error(), "revision 1 of my-scheduler is not the current one any more") {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"preflight", "lock", "binary", "unlock"}, r.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestDeployRecordsWhoDeployedWhat(t *testing.T) {
	plan := testPlan(t)
	plan.Origin, plan.Replaces = "rollback to revision 7", 1
	r := &recorder{revisions: []*apply.Revision{earlier(apply.Deployed)}}
	d := deps(r)
	d.By = "root@node-1"
	if _, err := Deploy(t.Context(), d, plan, RunOptions{}); err != nil {
		t.Fatal(err)
	}
	got := r.revisions[1]
	if got.By != "root@node-1" || got.Origin != "rollback to revision 7" || got.Name != "my-scheduler" ||
		got.Namespace != "kube-system" || got.Description == "" {
		t.Errorf("saved %+v", got)
	}
}

func TestFailedRollbackDoesNotNameAFlagOfDeploy(t *testing.T) {
	plan := testPlan(t)
	plan.Origin = "rollback to revision 1"
	r := &recorder{fails: map[string]error{"revision 2 deployed": errors.New("broken")},
		revisions: []*apply.Revision{earlier(apply.Deployed)}}
	_, err := Deploy(t.Context(), deps(r), plan, RunOptions{})
	if got := hintOf(err); got != "revision 1, which ran before, is restored" {
		t.Errorf("hint %q", got)
	}
}
