package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/ssa"
	ssaerrors "github.com/fluxcd/pkg/ssa/errors"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// labelled is [object] with labels, key=value separated by blanks.
func labelled(kind, labels string) *unstructured.Unstructured {
	obj, set := object(kind, nil), map[string]string{}
	for _, label := range strings.Fields(labels) {
		key, value, _ := strings.Cut(label, "=")
		set["app.kubernetes.io/"+key] = value
	}
	obj.SetLabels(set)
	return obj
}

// dryRunErr is the error of a dry-run as flux returns it.
func dryRunErr(err error, obj *unstructured.Unstructured) error {
	return fmt.Errorf("dry-run: %w", ssaerrors.NewDryRunErr(err, obj))
}

func invalid(kind, text string) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, "x",
		field.ErrorList{field.Forbidden(field.NewPath("data"), text)})
}

func TestActionFollowsFromTheLiveObjectAndTheDryRun(t *testing.T) {
	config, deployment, binding := object("ConfigMap", nil), object("Deployment", nil), object("RoleBinding", nil)
	binding.Object["roleRef"] = map[string]any{"kind": "Role", "name": "r"}
	terminating := object("ConfigMap", nil)
	terminating.SetDeletionTimestamp(&metav1.Time{Time: start})
	role, namespace, otherRole := object("Role", nil), object("Namespace", nil), object("Role", nil)
	role.SetName("r")
	namespace.SetName("a")
	created := func(obj *unstructured.Unstructured) step { return step{wanted: obj, change: Change{Action: Created}} }
	existing := step{wanted: namespace, change: Change{Action: Unchanged}}
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a")
	const immutable = "a field is immutable when `immutable` is set"
	const rejected, recreated = "the API server rejects ConfigMap/a/x", "a field that differs is immutable"
	for name, c := range map[string]struct {
		wanted, live *unstructured.Unstructured
		result       ssa.Action
		err          error
		before       []step
		action       Action
		note, fails  string
	}{
		"equal":   {wanted: config, live: config, result: ssa.UnchangedAction, action: Unchanged},
		"missing": {wanted: config, result: ssa.CreatedAction, action: Created},
		"another": {wanted: config, live: config, result: ssa.ConfiguredAction, action: Configured},
		"being deleted": {wanted: config, live: terminating, result: ssa.ConfiguredAction, action: Recreated,
			note: "it is being deleted"},
		"equal, but being deleted": {wanted: config, live: terminating, result: ssa.UnchangedAction, action: Recreated,
			note: "it is being deleted"},
		"in a namespace to create": {wanted: config, err: notFound, before: []step{created(namespace)}, action: Created},
		"of a role to create": {wanted: binding, err: notFound, before: []step{created(config), created(role)},
			action: Created},
		"in a namespace that exists": {wanted: config, err: notFound, before: []step{existing}, fails: "not found"},
		"of another role": {wanted: binding, err: notFound, before: []step{created(otherRole)},
			fails: "not found"},
		"in another namespace": {wanted: config, err: notFound, before: []step{created(object("Namespace", nil))},
			fails: "not found"},
		"not found although it exists": {wanted: config, live: config, err: notFound, before: []step{created(namespace)},
			fails: "not found"},
		"missing, and rejected": {wanted: config, err: apierrors.NewBadRequest("no"), before: []step{created(namespace)},
			fails: rejected},
		"an immutable field": {wanted: config, live: config, err: invalid("ConfigMap", immutable), action: Recreated,
			note: recreated},
		"another role": {wanted: binding, live: binding, err: invalid("RoleBinding", "cannot change roleRef"),
			action: Recreated, note: recreated},
		"an immutable field of a Deployment": {wanted: deployment, live: deployment, err: invalid("Deployment", immutable),
			fails: `an immutable field of Deployment/a/x differs: Deployment "x" is invalid`},
		"an immutable field of a missing object": {wanted: config, err: invalid("ConfigMap", immutable), fails: rejected},
		"an invalid field":                       {wanted: config, live: config, err: invalid("ConfigMap", "too long"), fails: rejected},
		"immutable, by a webhook": {wanted: config, live: config, err: apierrors.NewBadRequest("it is immutable"),
			fails: rejected},
	} {
		var entry *ssa.ChangeSetEntry
		err := c.err
		if err == nil {
			entry = &ssa.ChangeSetEntry{Action: c.result}
		} else {
			err = dryRunErr(err, c.wanted)
		}
		action, note, err := actionFor(c.wanted, c.live, entry, err, c.before)
		if action != c.action || note != c.note || (err == nil) != (c.fails == "") ||
			err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: got %q (%s), %v, want %q (%s), %s", name, action, note, err, c.action, c.note, c.fails)
		}
		if strings.Contains(fmt.Sprint(err), "differs") != slices.ContainsFunc(problem.Hints(err),
			func(hint string) bool { return strings.HasPrefix(hint, "uninstall this scheduler") }) {
			t.Errorf("%s: hints %q", name, problem.Hints(err))
		}
	}
}

func TestObjectsOfOthersAreNotChanged(t *testing.T) {
	const own, byHelm = "managed-by=pmk-sched instance=s", "managed-by=Helm instance=s"
	byApply := labelled("ConfigMap", "")
	byApply.SetManagedFields([]metav1.ManagedFieldsEntry{{}, {Manager: "kubectl"}, {Manager: "other"}})
	for name, c := range map[string]struct {
		wanted, live *unstructured.Unstructured
		manager      string
		want         string // of the error
	}{
		"new":                   {labelled("ConfigMap", own), nil, ownership.Manager, ""},
		"own":                   {labelled("ConfigMap", own), labelled("ConfigMap", own), ownership.Manager, ""},
		"of Helm":               {labelled("ConfigMap", byHelm), labelled("ConfigMap", byHelm), ownership.Helm, ""},
		"own, wanted by Helm":   {labelled("ConfigMap", byHelm), labelled("ConfigMap", own), ownership.Helm, "but by pmk-sched for s"},
		"of another scheduler":  {labelled("ConfigMap", own), labelled("ConfigMap", "managed-by=pmk-sched instance=t"), ownership.Manager, "but by pmk-sched for t"},
		"of another tool":       {labelled("ConfigMap", own), labelled("ConfigMap", "managed-by=flux"), ownership.Manager, "but by flux"},
		"with the name alone":   {labelled("ConfigMap", own), labelled("ConfigMap", "instance=s"), ownership.Manager, "for this scheduler"},
		"of a field manager":    {labelled("ConfigMap", own), byApply, ownership.Manager, "but by kubectl"},
		"wanted without a name": {labelled("ConfigMap", "managed-by=pmk-sched"), nil, ownership.Manager, "does not have the labels"},
		"wanted by others":      {labelled("ConfigMap", "managed-by=flux instance=s"), nil, ownership.Manager, "does not have the labels"},
	} {
		err := checkOwner(c.wanted, c.live, c.manager)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasSuffix(err.Error(), c.want) &&
			!strings.Contains(err.Error(), "ConfigMap/a/x "+c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if foreign := err != nil && strings.Contains(err.Error(), "already exists"); foreign &&
			!slices.Contains(problem.Hints(err), "choose another --name, or delete that object if it is not needed") {
			t.Errorf("%s: hints %q", name, problem.Hints(err))
		}
	}
}

func TestOnlyOwnObjectsAreDeleted(t *testing.T) {
	const own, skipped = "managed-by=pmk-sched instance=s", "not managed by pmk-sched for this scheduler"
	for name, c := range map[string]struct {
		obj, live *unstructured.Unstructured
		action    Action
		note      string
	}{
		"own":                  {labelled("Role", own), labelled("Role", own), Deleted, ""},
		"missing":              {labelled("Role", own), nil, Absent, ""},
		"of another scheduler": {labelled("Role", own), labelled("Role", "managed-by=pmk-sched instance=t"), Skipped, skipped},
		"of another tool":      {labelled("Role", own), labelled("Role", "managed-by=flux instance=s"), Skipped, skipped},
		"without a name":       {labelled("Role", ""), labelled("Role", "managed-by=pmk-sched"), Skipped, skipped},
	} {
		if action, note := deletionOf(c.obj, c.live); action != c.action || note != c.note {
			t.Errorf("%s: got %s (%s)", name, action, note)
		}
	}
}

func TestFieldsOfOthersThatWouldBeOverwrittenAreNamed(t *testing.T) {
	cause := func(kind metav1.CauseType, by, path string) metav1.StatusCause {
		return metav1.StatusCause{Type: kind, Message: `conflict with "` + by + `"`, Field: path}
	}
	conflict := metav1.CauseTypeFieldManagerConflict
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"two fields": {apierrors.NewApplyConflict([]metav1.StatusCause{cause(conflict, "kubectl", ".spec.replicas"),
			cause(metav1.CauseTypeFieldValueInvalid, "x", ".spec.x"), cause(conflict, "hpa", ".spec.paused")}, "conflicts"),
			`reverts changes of others: .spec.replicas ("kubectl"), .spec.paused ("hpa")`},
		"no field":    {apierrors.NewApplyConflict(nil, "conflicts"), ""},
		"no details":  {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonConflict}}, ""},
		"other error": {errors.New("x"), ""},
	} {
		if got := conflictNote(c.err); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestObjectsAreAppliedAfterTheirDependencies(t *testing.T) {
	objs := []*unstructured.Unstructured{object("Deployment", nil), object("ConfigMap", nil), object("RoleBinding", nil),
		object("ServiceAccount", nil), object("Namespace", nil)}
	var got []string
	for _, obj := range inOrder(objs) {
		got = append(got, obj.GetKind())
		obj.SetName("changed")
	}
	if diff := cmp.Diff([]string{"Namespace", "ServiceAccount", "RoleBinding", "ConfigMap", "Deployment"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if objs[0].GetName() != "x" {
		t.Error("the given objects were changed")
	}
}

// Drift compares the live object with the result of the step.
func TestOnlyAChangedObjectDiffers(t *testing.T) {
	live, wanted := object("ConfigMap", map[string]any{"k": "old"}), object("ConfigMap", map[string]any{"k": "new"})
	wanted.SetName("other")
	terminating := live.DeepCopy()
	terminating.SetDeletionTimestamp(&metav1.Time{Time: start})
	for name, c := range map[string]struct {
		step step
		want string // data of the applied object
	}{
		"unchanged": {step{live: live, wanted: wanted, change: Change{Action: Unchanged}}, ""},
		"created":   {step{wanted: wanted, change: Change{Action: Created}}, ""},
		"configured": {step{live: live, wanted: wanted, current: live.DeepCopy(), merged: wanted,
			change: Change{Action: Configured}}, "new"},
		"recreated":     {step{live: live, wanted: wanted, change: Change{Action: Recreated}}, "new"},
		"being deleted": {step{live: terminating, wanted: wanted, change: Change{Action: Recreated}}, ""},
	} {
		before, applied := c.step.differing()
		if (before != nil) != (c.want != "") || (applied != nil) != (c.want != "") {
			t.Errorf("%s: got %v, %v", name, before, applied)
			continue
		}
		if c.want == "" {
			continue
		}
		old, _, _ := unstructured.NestedString(before.Object, "data", "k")
		data, _, _ := unstructured.NestedString(applied.Object, "data", "k")
		if old != "old" || data != c.want {
			t.Errorf("%s: %q becomes %q", name, old, data)
		}
		if c.step.change.Action == Recreated && applied.GetName() != "x" {
			t.Errorf("%s: the metadata of the live object is lost: %s", name, applied.GetName())
		}
	}
}

func TestErrorsOfADryRunAreThoseOfTheAPIServer(t *testing.T) {
	forbidden, unreachable := &kubeapi.ForbiddenError{Doing: "apply x"}, &kubeapi.UnreachableError{Doing: "apply x"}
	plain := errors.New("plain")
	for name, c := range map[string]struct{ err, want error }{
		"none": {nil, nil}, "forbidden": {dryRunErr(forbidden, nil), forbidden},
		"unreachable": {dryRunErr(unreachable, nil), unreachable}, "another": {plain, plain},
	} {
		if got := unwrapDryRun("ConfigMap/a/x", c.err); !errors.Is(got, c.want) || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if got := unwrapDryRun("ConfigMap/a/x", dryRunErr(plain, nil)); !errors.Is(got, plain) ||
		got.Error() != "the API server rejects ConfigMap/a/x: plain" {
		t.Errorf("a rejection: %v", got)
	}
}
