package apply

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/suspension"
)

// recreatable are the kinds that may be deleted and created again if an immutable field differs,
// because they have no state: data in an immutable ConfigMap or Secret, roleRef in a binding.
var recreatable = []string{"ConfigMap", "Secret", "RoleBinding", "ClusterRoleBinding"}

var immutableField = regexp.MustCompile(`immutable|cannot change roleRef`)

// Plan returns the changes that [Client.Apply] would make, by a dry-run on the API server. It
// changes nothing.
//
// Every object must have the labels from [ownership.Labels]. An object that exists without them is
// an error.
func (c *Client) Plan(ctx context.Context, objs []*unstructured.Unstructured) (ChangeSet, error) {
	return c.changes(ctx, objs, ownership.Manager)
}

// PlanHelm is like Plan for upgrading a Helm release whose chart has these objects. An object that
// exists and that Helm did not install for the same scheduler is an error.
func (c *Client) PlanHelm(ctx context.Context, objs []*unstructured.Unstructured) (ChangeSet, error) {
	ofHelm := make([]*unstructured.Unstructured, len(objs))
	for i, obj := range objs {
		ofHelm[i] = obj.DeepCopy()
		labels := ofHelm[i].GetLabels()
		labels[ownership.LabelManagedBy] = ownership.Helm
		ofHelm[i].SetLabels(labels)
	}
	return c.changes(ctx, ofHelm, ownership.Helm)
}

func (c *Client) changes(ctx context.Context, objs []*unstructured.Unstructured, manager string) (ChangeSet, error) {
	planned, err := c.plan(ctx, objs, manager)
	if err != nil {
		return nil, err
	}
	changes := make(ChangeSet, len(planned))
	for i, p := range planned {
		changes[i] = p.change
	}
	return changes, nil
}

// step is one object in a plan, in apply order.
type step struct {
	wanted *unstructured.Unstructured
	live   *unstructured.Unstructured // nil: does not exist
	change Change
	// current and merged are the live object and its state after the change, if Action is
	// Configured: without managed fields, Secrets masked.
	current, merged *unstructured.Unstructured
}

// plan compares objects whose label [ownership.LabelManagedBy] is manager.
func (c *Client) plan(ctx context.Context, objs []*unstructured.Unstructured, manager string) ([]step, error) {
	sorted := inOrder(objs)
	steps := make([]step, 0, len(sorted))
	for _, wanted := range sorted {
		s, err := c.planOne(ctx, wanted, steps, manager)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// inOrder returns copies of objs in dependency order: namespaces, roles and bindings, service
// accounts, configuration, then workloads.
func inOrder(objs []*unstructured.Unstructured) []*unstructured.Unstructured {
	sorted := make([]*unstructured.Unstructured, len(objs))
	for i, obj := range objs {
		sorted[i] = obj.DeepCopy()
	}
	sort.Stable(ssa.SortableUnstructureds(sorted))
	return sorted
}

func (c *Client) planOne(ctx context.Context, wanted *unstructured.Unstructured, before []step,
	manager string) (step, error) {
	s := step{wanted: wanted, change: Change{Object: nameOf(wanted)}}
	live, err := c.Live(ctx, wanted)
	if err != nil {
		return s, err
	}
	s.live = live
	if live != nil && wanted.GetKind() == "Namespace" {
		s.change.Action = Unchanged
		return s, nil
	}
	if err := checkOwner(wanted, live, manager); err != nil {
		return s, err
	}
	if live != nil { // whoever suspended a registration resumes it
		if err := suspension.Keep(wanted, live); err != nil {
			return s, err
		}
	}
	entry, current, merged, err := c.ssa.Diff(ctx, wanted.DeepCopy(), ssa.DefaultDiffOptions())
	if s.change.Action, s.change.Note, err = actionFor(wanted, live, entry, err, before); err != nil {
		return s, err
	}
	from, to := live, wanted
	switch s.change.Action {
	case Unchanged:
		return s, nil
	case Created:
		from = nil
	case Configured:
		from, to, s.current, s.merged = current, merged, current, merged
		if manager == ownership.Manager { // Helm also overwrites the changes of others
			if s.change.Note, err = c.takenOver(ctx, wanted); err != nil {
				return s, err
			}
		}
	}
	s.change.Diff, err = Diff(from, to)
	return s, err
}

// actionFor returns the action for an object, and a note for the user, given the live object, the
// dry-run's result, and the steps before.
func actionFor(wanted, live *unstructured.Unstructured, entry *ssa.ChangeSetEntry, err error,
	before []step) (action Action, note string, _ error) {
	switch {
	case err == nil && isTerminating(live):
		return Recreated, "it is being deleted", nil
	case err == nil && entry.Action == ssa.UnchangedAction:
		return Unchanged, "", nil
	case err == nil && entry.Action == ssa.CreatedAction,
		live == nil && apierrors.IsNotFound(err) && dependsOnCreated(wanted, before):
		return Created, "", nil
	case err == nil:
		return Configured, "", nil
	case live == nil || !isImmutable(err):
		return "", "", unwrapDryRun(nameOf(wanted), err)
	case !slices.Contains(recreatable, wanted.GetKind()):
		return "", "", problem.Errorf("uninstall this scheduler and deploy it again, or deploy under another --name",
			"an immutable field of %s differs: %w", nameOf(wanted), innermostStatus(err))
	}
	return Recreated, "a field that differs is immutable", nil
}

// Live returns the live object, or nil if it does not exist. That includes kinds that the cluster
// does not serve; applying reports them.
func (c *Client) Live(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(obj.GroupVersionKind())
	err := c.api.Get(ctx, client.ObjectKeyFromObject(obj), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return live, nil
}

// checkOwner returns an error if live is not an object for the same scheduler.
func checkOwner(wanted, live *unstructured.Unstructured, manager string) error {
	name := wanted.GetLabels()[ownership.LabelInstance]
	owned := func(o *unstructured.Unstructured) bool {
		return o.GetLabels()[ownership.LabelManagedBy] == manager && o.GetLabels()[ownership.LabelInstance] == name
	}
	if name == "" || !owned(wanted) {
		return fmt.Errorf("%s does not have the labels %s=%s and %s", nameOf(wanted), ownership.LabelManagedBy, manager,
			ownership.LabelInstance)
	}
	if live == nil || owned(live) {
		return nil
	}
	return foreignError(nameOf(live), ownerOf(live))
}

// ownerOf returns who manages an object: the label that tools set, or the first field manager.
func ownerOf(live *unstructured.Unstructured) string {
	labels := live.GetLabels()
	if by := labels[ownership.LabelManagedBy]; by != "" {
		if instance := labels[ownership.LabelInstance]; instance != "" {
			return by + " for " + instance
		}
		return by
	}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != "" {
			return entry.Manager
		}
	}
	return ""
}

// dependsOnCreated reports whether the dry-run of wanted failed because an earlier step creates a
// dependency: its namespace, or the role that a binding refers to.
func dependsOnCreated(wanted *unstructured.Unstructured, before []step) bool {
	refKind, _, _ := unstructured.NestedString(wanted.Object, "roleRef", "kind")
	refName, _, _ := unstructured.NestedString(wanted.Object, "roleRef", "name")
	for _, s := range before {
		if s.change.Action != Created {
			continue
		}
		isNamespace := s.wanted.GetKind() == "Namespace" && s.wanted.GetName() == wanted.GetNamespace()
		isRole := s.wanted.GetKind() == refKind && s.wanted.GetName() == refName
		if isNamespace || isRole {
			return true
		}
	}
	return false
}

func isImmutable(err error) bool {
	return apierrors.IsInvalid(err) && immutableField.MatchString(err.Error())
}

// innermostStatus returns the API server's response within err.
func innermostStatus(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		return status
	}
	return err
}

// takenOver reports which fields of other managers would be overwritten: fields that were changed
// after the object was applied.
func (c *Client) takenOver(ctx context.Context, wanted *unstructured.Unstructured) (string, error) {
	err := c.api.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted.DeepCopy()), client.DryRunAll,
		client.FieldOwner(ownership.Manager))
	if !apierrors.IsConflict(err) {
		return "", unwrapDryRun(nameOf(wanted), err)
	}
	return conflictNote(err), nil
}

// conflictNote returns the note about the fields in the API server's answer about a conflict.
func conflictNote(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			fields = append(fields, fmt.Sprintf("%s (%s)", cause.Field, strings.TrimPrefix(cause.Message, "conflict with ")))
		}
	}
	if len(fields) == 0 {
		return ""
	}
	return "reverts changes of others: " + strings.Join(fields, ", ")
}
