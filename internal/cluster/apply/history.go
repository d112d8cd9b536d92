package apply

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

const (
	// keptRevisions is how many revisions Prune keeps.
	keptRevisions = 10
	interrupted   = "interrupted: the run ended without recording its result"
)

// SaveRevision saves a revision with the next number and the status pending, and returns it; wanted
// has its name, namespace, description, author, origin and objects. Call it before the cluster is
// changed, with the [Client.Lock] held. Revisions that are still pending are of runs that were
// killed: they become failed. It fails if the objects do not fit into a Secret.
func (c *Client) SaveRevision(ctx context.Context, wanted Revision) (*Revision, error) {
	secrets, err := c.revisionSecrets(ctx, wanted.Namespace, wanted.Name)
	if err != nil {
		return nil, err
	}
	next := 1
	for number, secret := range secrets {
		next = max(next, number+1)
		if secret.Labels[labelRevisionStatus] == string(Pending) {
			if err := c.setStatus(ctx, client.ObjectKeyFromObject(secret), Failed, interrupted, time.Time{}); err != nil {
				return nil, err
			}
		}
	}
	r := wanted
	r.Number, r.Status = next, Pending
	writer := rand.Text()
	secret, err := encodeRevision(&r, writer)
	if err != nil {
		return nil, err
	}
	err = c.api.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		// The response to the first attempt may have been lost with the API server.
		if getErr := c.api.Get(ctx, client.ObjectKeyFromObject(secret), secret); getErr != nil {
			return nil, getErr
		}
		if secret.Annotations[annotationWriter] == writer {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("save revision %d of scheduler %s: %w", next, r.Name, err)
	}
	r.Created = secret.CreationTimestamp.Time
	return &r, nil
}

// SetRevisionStatus sets the status of a revision in the cluster and in r, and the time of its
// verification in the cluster. reason is why it failed, truncated to 4 KiB.
func (c *Client) SetRevisionStatus(ctx context.Context, r *Revision, status RevisionStatus, reason string) error {
	key := client.ObjectKey{Namespace: r.Namespace, Name: revisionName(r.Name, r.Number)}
	if err := c.setStatus(ctx, key, status, reason, r.Verified); err != nil {
		return err
	}
	r.Status, r.Reason = status, reason
	return nil
}

func (c *Client) setStatus(
	ctx context.Context, key client.ObjectKey, status RevisionStatus, reason string, verified time.Time,
) error {
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	annotations := map[string]string{annotationReason: reason}
	if !verified.IsZero() {
		annotations[annotationVerified] = verified.UTC().Format(time.RFC3339)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels": map[string]string{labelRevisionStatus: string(status)}, "annotations": annotations,
	}})
	if err != nil {
		return fmt.Errorf("encode status of Secret/%s: %w", key, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	return c.api.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch))
}

// Revisions returns the revisions of scheduler name in namespace ns, oldest first. It logs and
// omits damaged ones: a damaged old revision must not prevent a new deployment.
func (c *Client) Revisions(ctx context.Context, ns, name string) ([]*Revision, error) {
	all, err := c.AllRevisions(ctx, ns, name)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(r *Revision) bool {
		if r.Damage != nil {
			c.log.Warn("a revision is unreadable", zap.Error(r.Damage))
		}
		return r.Damage != nil
	}), nil
}

// AllRevisions is [Client.Revisions] with the damaged ones, which have no objects.
func (c *Client) AllRevisions(ctx context.Context, ns, name string) ([]*Revision, error) {
	secrets, err := c.revisionSecrets(ctx, ns, name)
	if err != nil {
		return nil, err
	}
	var revisions []*Revision
	for _, number := range slices.Sorted(maps.Keys(secrets)) {
		r, err := decodeRevision(secrets[number])
		if err != nil {
			return nil, err
		}
		revisions = append(revisions, r)
	}
	return revisions, nil
}

// revisionSecrets returns the Secrets that hold revisions, by number. Others with the same labels
// are not revisions.
func (c *Client) revisionSecrets(ctx context.Context, ns, name string) (map[int]*corev1.Secret, error) {
	list := &corev1.SecretList{}
	err := c.api.List(ctx, list, client.InNamespace(ns), client.MatchingLabels(ownership.Labels(name)),
		client.HasLabels{ownership.LabelRevision})
	if err != nil {
		return nil, fmt.Errorf("read revisions of scheduler %s: %w", name, err)
	}
	secrets := map[int]*corev1.Secret{}
	for i := range list.Items {
		secret := &list.Items[i]
		number, err := strconv.Atoi(secret.Labels[ownership.LabelRevision])
		if err == nil && secret.Type == revisionType && secret.Name == revisionName(name, number) {
			secrets[number] = secret
		}
	}
	return secrets, nil
}

// Prune deletes all revisions of scheduler name except the last 10 and the last deployed one, and
// the ConfigMaps and Secrets that neither a remaining revision nor the Deployment refers to.
// Without any revision it deletes nothing.
func (c *Client) Prune(ctx context.Context, ns, name string) (ChangeSet, error) {
	revisions, err := c.Revisions(ctx, ns, name)
	if err != nil || len(revisions) == 0 {
		return nil, err
	}
	kept := keptOf(revisions)
	needed := map[string]bool{}
	for _, r := range kept {
		needed[kubeapi.ObjectName("Secret", ns, revisionName(name, r.Number))] = true
		for _, obj := range r.Objects {
			needed[nameOf(obj)] = true
		}
	}
	owned, err := c.Owned(ctx, name, ns)
	if err != nil {
		return nil, err
	}
	var unneeded []*unstructured.Unstructured
	for _, obj := range owned {
		isData := obj.GetKind() == "ConfigMap" || obj.GetKind() == "Secret"
		if isData && obj.GetNamespace() == ns && !needed[nameOf(obj)] && !mentioned(owned, obj.GetName()) {
			unneeded = append(unneeded, obj)
		}
	}
	changes, err := c.Delete(ctx, unneeded)
	if err != nil {
		return changes, errors.Join(fmt.Errorf("delete old revisions of scheduler %s", name), err)
	}
	return changes, nil
}

// keptOf returns the revisions to keep, given all, oldest first.
func keptOf(revisions []*Revision) []*Revision {
	first := max(0, len(revisions)-keptRevisions)
	kept := slices.Clone(revisions[first:])
	if last := LastDeployed(revisions); last != nil && !slices.Contains(kept, last) {
		kept = append(kept, last)
	}
	return kept
}

// mentioned reports whether a Deployment among objs has name as a value in its spec, for example as
// a volume.
func mentioned(objs []*unstructured.Unstructured, name string) bool {
	return slices.ContainsFunc(objs, func(obj *unstructured.Unstructured) bool {
		return obj.GetKind() == "Deployment" && holdsString(obj.Object["spec"], name)
	})
}

func holdsString(value any, text string) bool {
	switch v := value.(type) {
	case string:
		return v == text
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return holdsString(item, text) })
	case map[string]any:
		for _, item := range v {
			if holdsString(item, text) {
				return true
			}
		}
	}
	return false
}
