package deploy

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// OwnerError is returned for a scheduler that belongs to another owner: a CustomScheduler object,
// or the user who deployed it with a command.
type OwnerError struct {
	// Name is the scheduler, Revision its deployed revision.
	Name     string
	Revision int
	// Owner is the object that the scheduler belongs to, or "".
	Owner string
	// By deployed the scheduler.
	By string
}

// Error names the owner.
func (e *OwnerError) Error() string {
	if e.Owner != "" {
		return fmt.Sprintf("scheduler %s belongs to %s, which `pmk-sched controller` keeps deployed", e.Name, e.Owner)
	}
	return fmt.Sprintf("scheduler %s was deployed by %s (revision %d), not by the controller", e.Name, e.By, e.Revision)
}

// Hint returns a suggestion for the user.
func (e *OwnerError) Hint() string {
	if e.Owner != "" {
		return "change that object; or delete it with deletionPolicy Orphan, which leaves the scheduler to this command"
	}
	return "uninstall that scheduler with `pmk-sched uninstall`, or give the object another name"
}

// checkOwner refuses to change another owner's scheduler. revision is the deployed revision, or
// nil.
func (d Deps) checkOwner(ctx context.Context, revision *apply.Revision) error {
	if revision == nil {
		return nil
	}
	owner, isScheduler := ownerOf(revision)
	if owner == d.Owner || !isScheduler && d.Owner != "" {
		return nil
	}
	refused := &OwnerError{Name: revision.Name, Revision: revision.Number, Owner: owner, By: revision.By}
	if owner == "" || d.OwnerExists == nil {
		return refused
	}
	exists, err := d.OwnerExists(ctx, owner)
	if err != nil || !exists {
		return err
	}
	return refused
}

// ownerOf returns the owner that a revision records, and whether it is a scheduler's revision.
func ownerOf(revision *apply.Revision) (owner string, isScheduler bool) {
	r, err := decodeRecord(revision)
	if err != nil {
		return "", true
	}
	if r.Request == nil {
		return "", r.Extender == nil
	}
	return r.Request.Annotations[v1alpha1.AnnotationOwner], true
}

// OwnerName returns the owner of an object's scheduler.
func OwnerName(object *v1alpha1.CustomScheduler) string {
	return kubeapi.ObjectName(v1alpha1.Kind, object.Namespace, object.Name)
}

// ownerExists returns a function that looks an owner up. It lists, which is all that the controller
// may do. An owner that the user may not look up exists.
func ownerExists(cfg *rest.Config) func(ctx context.Context, owner string) (bool, error) {
	return func(ctx context.Context, owner string) (bool, error) {
		parts := strings.Split(owner, "/")
		if len(parts) != 3 {
			return false, nil
		}
		client, err := dynamic.NewForConfig(cfg)
		if err != nil {
			return false, fmt.Errorf("create client for %s: %w", cfg.Host, err)
		}
		resource := schema.GroupVersionResource{Group: v1alpha1.Group, Version: v1alpha1.Version,
			Resource: v1alpha1.Resource}
		found, err := client.Resource(resource).Namespace(parts[1]).List(ctx,
			metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", parts[2]).String(), Limit: 1})
		switch {
		case apierrors.IsNotFound(err): // the cluster has no CustomSchedulers
			return false, nil
		case apierrors.IsForbidden(err):
			return true, nil
		case err != nil:
			return false, kubeapi.Explain("look up "+owner+", to which the scheduler belongs", err)
		}
		return len(found.Items) > 0, nil
	}
}
