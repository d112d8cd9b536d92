package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// recorder is a cluster that records calls, and fails on request. Answers of a real cluster are
// tested in test/.
type recorder struct {
	Cluster
	calls     []string
	fails     map[string]error
	revisions []*apply.Revision
	owned     []*unstructured.Unstructured
	byHelm    []*unstructured.Unstructured
	shortage  int
	// unavailable are the maxUnavailable of the Deployments that were applied.
	unavailable []int64
	fresh       bool // owned is there only after it was applied
	onCall      map[string]func()
	held        context.Context         // ends when the lock is lost
	lose        context.CancelCauseFunc // the lock
}

func (r *recorder) call(format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	r.calls = append(r.calls, what)
	if f := r.onCall[what]; f != nil {
		f()
	}
	return r.fails[what]
}

func names(objs []*unstructured.Unstructured) string {
	var list []string
	for _, o := range objs {
		list = append(list, o.GetKind()+"/"+o.GetName())
	}
	return strings.Join(list, " ")
}

func (r *recorder) Plan(_ context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error) {
	return nil, r.call("plan %s", names(objs))
}

func (r *recorder) PlanHelm(_ context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error) {
	return nil, r.call("plan helm %s", names(objs))
}

func (r *recorder) ByHelm(context.Context, string, string) ([]*unstructured.Unstructured, error) {
	return r.byHelm, nil
}

func (r *recorder) Apply(_ context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error) {
	for _, o := range objs {
		if n, found, _ := unstructured.NestedInt64(o.Object, "spec", "strategy", "rollingUpdate", "maxUnavailable"); found {
			r.unavailable = append(r.unavailable, n)
		}
	}
	return apply.ChangeSet{{Object: "x", Action: apply.Created}}, r.call("apply %s", names(objs))
}

func (r *recorder) Delete(ctx context.Context, objs []*unstructured.Unstructured) (apply.ChangeSet, error) {
	err := r.call("delete %s", names(objs))
	if r.held != nil && r.held.Err() != nil {
		select { // the end of the lock ends every step
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(time.Minute):
			err = errors.New("the step goes on without the lock")
		}
	}
	return nil, err
}

func (r *recorder) Prune(context.Context, string, string) (apply.ChangeSet, error) {
	return nil, r.call("prune")
}

func (r *recorder) Owned(context.Context, string, string) ([]*unstructured.Unstructured, error) {
	applied := slices.ContainsFunc(r.calls, func(call string) bool { return strings.HasPrefix(call, "apply") })
	if r.fresh && !applied {
		return nil, nil
	}
	return r.owned, nil
}

func (r *recorder) DeleteLeaderLease(context.Context, string, string) (apply.Change, error) {
	return apply.Change{Action: apply.Absent}, r.call("delete lease")
}

func (r *recorder) WaitStable(context.Context, string, string, apply.WaitOptions) error {
	return r.call("wait")
}

func (r *recorder) Shortage(context.Context, *unstructured.Unstructured) (int, error) {
	return r.shortage, r.fails["shortage"]
}

func (r *recorder) SaveRevision(_ context.Context, revision apply.Revision) (*apply.Revision, error) {
	revision.Number, revision.Status = len(r.revisions)+1, apply.Pending
	r.revisions = append(r.revisions, &revision)
	return &revision, r.call("save revision %d", revision.Number)
}

func (r *recorder) SetRevisionStatus(_ context.Context, revision *apply.RevisionInfo, status apply.RevisionStatus,
	_ string) error {
	err := r.call("revision %d %s", revision.Number, status)
	if err == nil {
		revision.Status = status
	}
	return err
}

func (r *recorder) Revisions(context.Context, string, string) ([]apply.RevisionInfo, error) {
	return infos(r.revisions), nil
}

func (r *recorder) ReadRevision(ctx context.Context, info apply.RevisionInfo) (*apply.Revision, error) {
	return reading(r.revisions)(ctx, info)
}

func (r *recorder) LastDeployed(ctx context.Context, _, _ string) (*apply.Revision, error) {
	if last := apply.LastDeployed(infos(r.revisions)); last != nil {
		return r.ReadRevision(ctx, *last)
	}
	return nil, nil
}

// infos describes revisions.
func infos(revisions []*apply.Revision) (list []apply.RevisionInfo) {
	for _, r := range revisions {
		list = append(list, r.RevisionInfo)
	}
	return list
}

// reading returns a function that reads one of the revisions.
func reading(revisions []*apply.Revision) ReadRevision {
	return func(_ context.Context, info apply.RevisionInfo) (*apply.Revision, error) {
		for _, r := range revisions {
			if r.Number == info.Number {
				return r, nil
			}
		}
		return nil, fmt.Errorf("no revision %d", info.Number)
	}
}

func (r *recorder) Lock(ctx context.Context, _, _, _ string) (context.Context, func(context.Context) error, error) {
	r.held, r.lose = context.WithCancelCause(ctx)
	unlock := func(context.Context) error {
		if err := r.call("unlock"); err != nil {
			return err
		}
		return context.Cause(r.held)
	}
	return r.held, unlock, r.call("lock")
}

func object(kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": "kube-system"}}}
}

func deps(r *recorder) Deps {
	return Deps{
		Cluster: r, Holder: "a test",
		Preflight: func(context.Context, *Plan) error { return r.call("preflight") },
		Binary: func(context.Context, *Plan, string) (configcheck.Binary, error) {
			if err := r.call("binary"); err != nil {
				return configcheck.Binary{}, err
			}
			return configcheck.Binary{}, configcheck.ErrNoBinary
		},
	}
}

func testPlan(t *testing.T) *Plan {
	t.Helper()
	plan, err := PlanInput{Name: "my-scheduler",
		Facts: Facts{Cluster: masterInfo("v1.24.3"), Image: "localhost/my-scheduler:v1"}}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	plan.Objects = []*unstructured.Unstructured{object("ConfigMap", "new"), object("Deployment", "my-scheduler")}
	return plan
}

// The objects of an earlier revision: one kind is not in the new plan.
func earlier(status apply.RevisionStatus) *apply.Revision {
	return &apply.Revision{
		RevisionInfo: apply.RevisionInfo{Number: 1, Status: status},
		Objects: []*unstructured.Unstructured{
			object("ConfigMap", "old"), object("Role", "gone"), object("Deployment", "my-scheduler"),
		},
	}
}

const (
	applyNew = "apply ConfigMap/new Deployment/my-scheduler"
	applyOld = "apply ConfigMap/old Role/gone Deployment/my-scheduler"
)

func TestFailedDeployRestoresTheFormerState(t *testing.T) {
	broken := errors.New("broken")
	begin := []string{"preflight", "lock", "binary", "save revision 1", applyNew}
	again := []string{"preflight", "lock", "binary", "save revision 2", applyNew}
	tests := map[string]struct {
		before     []*apply.Revision
		fails      string
		noRollback bool
		want       []string
		hint       string
	}{
		"first deployment": {want: append(begin, "wait", "revision 1 deployed", "delete Role/gone", "prune", "unlock")},
		"preflight":        {fails: "preflight", want: []string{"preflight"}},
		"lock":             {fails: "lock", want: []string{"preflight", "lock"}},
		"binary":           {fails: "binary", want: []string{"preflight", "lock", "binary", "unlock"}},
		"save": {fails: "save revision 1",
			want: []string{"preflight", "lock", "binary", "save revision 1", "revision 1 failed", "unlock"}},
		"first apply": {
			fails: applyNew, hint: "are removed",
			want: append(begin, "delete ConfigMap/new ConfigMap/old Role/gone Deployment/my-scheduler", "delete lease",
				"revision 1 failed", "unlock"),
		},
		"first wait": {
			fails: "wait", hint: "are removed",
			want: append(begin, "wait", "delete ConfigMap/new ConfigMap/old Role/gone Deployment/my-scheduler", "delete lease",
				"revision 1 failed", "unlock"),
		},
		"wait, with a revision to go back to": {
			before: []*apply.Revision{earlier(apply.Deployed)}, fails: applyNew,
			hint: "revision 1, which ran before, is restored",
			want: append(again, applyOld, "delete ConfigMap/new", "wait", "revision 2 failed", "unlock"),
		},
		"no rollback": {
			fails: "wait", noRollback: true, hint: "not rolled back",
			want: append(begin, "wait", "revision 1 failed", "unlock"),
		},
		"mark": {
			before: []*apply.Revision{earlier(apply.Deployed)}, fails: "revision 2 deployed", hint: "is restored",
			want: append(again, "wait", "revision 2 deployed", applyOld, "delete ConfigMap/new", "wait", "revision 2 failed",
				"unlock"),
		},
		"prune keeps the new state": {
			fails: "prune", hint: "deploy again to finish",
			want: append(begin, "wait", "revision 1 deployed", "delete Role/gone", "prune", "unlock"),
		},
		"undo fails": {
			before: []*apply.Revision{earlier(apply.Deployed)}, fails: "wait", hint: "could not be restored",
			want: append(again, "wait", applyOld, "delete ConfigMap/new", "wait", "revision 2 failed", "unlock"),
		},
		"killed before, nothing deployed": {
			before: []*apply.Revision{earlier(apply.Pending)}, fails: applyNew, hint: "are removed",
			want: append(again, "delete ConfigMap/new ConfigMap/old Role/gone Deployment/my-scheduler", "delete lease",
				"revision 2 failed", "unlock"),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &recorder{fails: map[string]error{tt.fails: broken}, revisions: tt.before, fresh: len(tt.before) == 0,
				owned: []*unstructured.Unstructured{
					object("ConfigMap", "new"), object("ConfigMap", "old"), object("Role", "gone"), object("Deployment",
						"my-scheduler"), revisionSecret(),
				}}
			_, err := Deploy(t.Context(), deps(r), testPlan(t), RunOptions{NoRollback: tt.noRollback})
			if diff := cmp.Diff(tt.want, r.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if (err != nil) != (tt.fails != "") {
				t.Fatalf("error %v", err)
			}
			if got := hintOf(err); !strings.Contains(got, tt.hint) {
				t.Errorf("hint %q does not say %q", got, tt.hint)
			}
		})
	}
}

// A scheduler that is stable and does not schedule is not kept. The undo verifies nothing: the
// former scheduler ran before.
func TestSchedulerThatIsNotVerifiedIsRolledBack(t *testing.T) {
	for name, fails := range map[string]bool{"verified": false, "not verified": true} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{revisions: []*apply.Revision{earlier(apply.Deployed)},
				owned: []*unstructured.Unstructured{object("ConfigMap", "new"), object("Deployment", "my-scheduler")}}
			want := []string{"preflight", "lock", "binary", "save revision 2", applyNew, "wait", "verify my-scheduler",
				"revision 2 deployed", "delete ", "prune", "unlock"}
			if fails {
				r.fails = map[string]error{"verify my-scheduler": errors.New("no pod was bound")}
				want = append(want[:7:7], applyOld, "delete ConfigMap/new", "wait", "revision 2 failed", "unlock")
			}
			verify := func(_ context.Context, plan *Plan) error { return r.call("verify %s", plan.Name) }
			plan := testPlan(t)
			plan.Origin = "upgrade from v1.23.17"
			_, err := Deploy(t.Context(), deps(r), plan, RunOptions{Verify: verify})
			if diff := cmp.Diff(want, r.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if (err != nil) != fails || fails && (!strings.Contains(err.Error(), "verify: no pod was bound") ||
				hintOf(err) != "revision 1, which ran before, is restored") {
				t.Errorf("error %v with hint %q", err, hintOf(err))
			}
		})
	}
}

func revisionSecret() *unstructured.Unstructured {
	secret := object("Secret", "pmk-sched-my-scheduler-revision-1")
	secret.SetLabels(map[string]string{ownership.LabelRevision: "1"})
	return secret
}

func hintOf(err error) string {
	var advice interface{ Hint() string }
	if errors.As(err, &advice) {
		return advice.Hint()
	}
	return ""
}

func TestDeployOfSamePlanKeepsItsRevision(t *testing.T) {
	plan := testPlan(t)
	r := &recorder{revisions: []*apply.Revision{{
		RevisionInfo: apply.RevisionInfo{Number: 7, Status: apply.Deployed}, Objects: plan.Objects}}}
	outcome, err := Deploy(t.Context(), deps(r), plan, RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Revision != 7 {
		t.Errorf("revision %d, want 7", outcome.Revision)
	}
	want := []string{"preflight", "lock", "binary", applyNew, "wait", "delete ", "prune", "unlock"}
	if diff := cmp.Diff(want, r.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestInterruptedDeployRestoresTheFormerState(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &recorder{
		fresh:  true,
		onCall: map[string]func(){applyNew: cancel},
		owned:  []*unstructured.Unstructured{object("Deployment", "my-scheduler")},
	}
	_, err := Deploy(ctx, deps(r), testPlan(t), RunOptions{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v is not the context's", err)
	}
	want := []string{"preflight", "lock", "binary", "save revision 1", applyNew, "delete Deployment/my-scheduler",
		"delete lease", "revision 1 failed", "unlock"}
	if diff := cmp.Diff(want, r.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// Another run has taken over the lock: nothing is written any more, not to undo either, and the
// error lists the objects written before.
func TestLostLockStopsTheRun(t *testing.T) {
	lost := &apply.LostLockError{Name: "my-scheduler", Holder: "root@b"}
	begin := []string{"preflight", "lock", "binary", "save revision 1", applyNew}
	remove := "delete ConfigMap/new Deployment/my-scheduler"
	tests := map[string]struct {
		at    string
		fails string // before
		want  []string
		hint  string
	}{
		"before the first change":       {at: "binary", want: []string{"preflight", "lock", "binary", "unlock"}},
		"while the objects are applied": {at: applyNew, want: append(begin, "unlock"), hint: "left as it is: x created"},
		"while it waits": {at: "wait", want: append(begin, "wait", "unlock"),
			hint: "left as it is: x created"},
		"at the end": {at: "prune",
			want: append(begin, "wait", "revision 1 deployed", "delete ", "prune", "unlock"), hint: "left as it is: x created"},
		"during the undo": {at: remove, fails: "wait", want: append(begin, "wait", remove, "unlock"),
			hint: "could not be restored"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &recorder{fails: map[string]error{tt.fails: errors.New("broken")}, fresh: true, owned: testPlan(t).Objects}
			r.onCall = map[string]func(){tt.at: func() { r.lose(lost) }}
			_, err := Deploy(t.Context(), deps(r), testPlan(t), RunOptions{})
			if diff := cmp.Diff(tt.want, r.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if !errors.Is(err, lost) || strings.Count(err.Error(), lost.Error()) != 1 {
				t.Fatalf("error %v does not name the loss once", err)
			}
			if hints := strings.Join(problem.Hints(err), "\n"); !strings.Contains(hints, tt.hint) ||
				!strings.Contains(hints, lost.Hint()) {
				t.Errorf("hints %q do not contain %q", hints, tt.hint)
			}
		})
	}
}

func TestLostLockStopsAnUninstall(t *testing.T) {
	lost := &apply.LostLockError{Name: "my-scheduler", Holder: "root@b"}
	r := &recorder{owned: []*unstructured.Unstructured{object("Role", "a"), revisionSecret()}}
	r.onCall = map[string]func(){"delete Role/a": func() { r.lose(lost) }}
	_, err := Uninstall(t.Context(), deps(r), "kube-system", "my-scheduler")
	if diff := cmp.Diff([]string{"lock", "delete Role/a", "unlock"}, r.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if !errors.Is(err, lost) {
		t.Errorf("error %v does not name the loss", err)
	}
}

func TestSecondRunReportsTheFirst(t *testing.T) {
	r := &recorder{fails: map[string]error{"lock": &apply.LockedError{Name: "my-scheduler", Holder: "root@a"}}}
	_, err := Deploy(t.Context(), deps(r), testPlan(t), RunOptions{})
	if err == nil || !strings.Contains(err.Error(), "another run is in progress") ||
		!strings.Contains(err.Error(), "root@a") {
		t.Errorf("error %v does not name the other run", err)
	}
}

func TestSchedulerOfAnotherNamespaceIsRefused(t *testing.T) {
	there := object("Deployment", "my-scheduler")
	there.SetNamespace("elsewhere")
	ctx := t.Context()
	tests := map[string]struct {
		run  func(r *recorder) error
		want []string
	}{
		"deploy": {
			run:  func(r *recorder) error { _, err := Deploy(ctx, deps(r), testPlan(t), RunOptions{}); return err },
			want: []string{"preflight"},
		},
		"diff": {run: func(r *recorder) error { _, err := Diff(ctx, deps(r), testPlan(t)); return err }},
		"uninstall": {
			run: func(r *recorder) error { _, err := Uninstall(ctx, deps(r), "kube-system", "my-scheduler"); return err }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &recorder{owned: []*unstructured.Unstructured{there}}
			err := tt.run(r)
			if diff := cmp.Diff(tt.want, r.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if err == nil || !strings.Contains(err.Error(), "is in namespace elsewhere") ||
				!strings.Contains(hintOf(err), "-n elsewhere") {
				t.Errorf("error %v, hint %q", err, hintOf(err))
			}
		})
	}
}

func TestFailedDeployOfSamePlanRestoresNothing(t *testing.T) {
	plan := testPlan(t)
	r := &recorder{
		revisions: []*apply.Revision{{
			RevisionInfo: apply.RevisionInfo{Number: 7, Status: apply.Deployed}, Objects: plan.Objects}},
		fails: map[string]error{"wait": errors.New("broken")},
	}
	_, err := Deploy(t.Context(), deps(r), plan, RunOptions{})
	want := []string{"preflight", "lock", "binary", applyNew, "wait", "unlock"}
	if diff := cmp.Diff(want, r.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if !strings.Contains(hintOf(err), "objects of revision 7") {
		t.Errorf("hint %q", hintOf(err))
	}
}

func TestUninstallRemovesRevisionsLast(t *testing.T) {
	owned := []*unstructured.Unstructured{object("Role", "a"), object("Deployment", "my-scheduler"), revisionSecret()}
	tests := map[string]struct {
		owned []*unstructured.Unstructured
		fails string
		want  []string
	}{
		"everything": {owned: owned, want: []string{
			"lock", "delete Role/a Deployment/my-scheduler", "delete lease", "delete Secret/pmk-sched-my-scheduler-revision-1",
			"unlock",
		}},
		"stopped": {owned: owned, fails: "delete lease",
			want: []string{"lock", "delete Role/a Deployment/my-scheduler", "delete lease", "unlock"}},
		"nothing": {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &recorder{owned: tt.owned, fails: map[string]error{tt.fails: errors.New("broken")}}
			_, err := Uninstall(t.Context(), deps(r), "kube-system", "my-scheduler")
			if diff := cmp.Diff(tt.want, r.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if (err != nil) != (tt.fails != "") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A stored revision has been converted to JSON and back.
func TestObjectsAreTheSameAfterJSON(t *testing.T) {
	plan, err := PlanInput{Name: "my-scheduler", Facts: Facts{Cluster: masterInfo("v1.24.3"), Node: nodeCredentials(),
		Image: "localhost/my-scheduler:v1"}}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	var back []*unstructured.Unstructured
	for _, o := range plan.Objects {
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		read := &unstructured.Unstructured{}
		if err := read.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		back = append(back, read)
		if diff := cmp.Diff(o.Object, read.Object); diff != "" {
			t.Error(diff)
		}
	}
	if !SameObjects(back, plan.Objects) {
		t.Error("the objects differ")
	}
	back[0].SetLabels(map[string]string{"x": "y"})
	if SameObjects(back, plan.Objects) {
		t.Error("a change is not detected")
	}
}

func TestFailedDeployWithoutFormerRevisionRemovesNothing(t *testing.T) {
	r := &recorder{fails: map[string]error{"wait": errors.New("broken")},
		owned: []*unstructured.Unstructured{object("Deployment", "my-scheduler")}}
	var warned []string
	d := deps(r)
	d.Warn = func(text string) { warned = append(warned, text) }
	_, err := Deploy(t.Context(), d, testPlan(t), RunOptions{})
	if err == nil || !strings.Contains(hintOf(err), "not rolled back") {
		t.Errorf("got %v, hint %q", err, hintOf(err))
	}
	for _, call := range r.calls {
		if strings.HasPrefix(call, "delete") {
			t.Errorf("unexpected %s", call)
		}
	}
	if !strings.Contains(strings.Join(warned, " "), "cannot be restored") {
		t.Errorf("warnings %q", warned)
	}
}

// Replicas that have no node now keep neither a rollout nor its undo from replacing the others.
func TestDeployToleratesNodesThatAreAway(t *testing.T) {
	deployment := func() *unstructured.Unstructured {
		o := object("Deployment", "my-scheduler")
		o.Object["spec"] = map[string]any{
			"replicas": int64(3), "template": map[string]any{"spec": map[string]any{"hostNetwork": true}},
			"strategy": map[string]any{"rollingUpdate": map[string]any{"maxSurge": int64(0), "maxUnavailable": int64(1)}},
		}
		return o
	}
	plan := testPlan(t)
	plan.Objects[1] = deployment()
	before := earlier(apply.Deployed)
	before.Objects[2] = deployment()
	r := &recorder{shortage: 1, revisions: []*apply.Revision{before},
		fails: map[string]error{"wait": errors.New("broken")}}
	if _, err := Deploy(t.Context(), deps(r), plan, RunOptions{}); err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff([]int64{2, 2}, r.unavailable); diff != "" {
		t.Errorf("maxUnavailable of what was applied (-want +got):\n%s", diff)
	}
	for _, o := range []*unstructured.Unstructured{plan.Objects[1], before.Objects[2]} {
		if got, _, _ := unstructured.NestedInt64(o.Object, "spec", "strategy", "rollingUpdate", "maxUnavailable"); got != 1 {
			t.Errorf("the plan or the revision was changed: %d", got)
		}
	}
}
