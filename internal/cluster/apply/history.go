package apply

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

const (
	// keptRevisions is the number of revisions that Prune keeps.
	keptRevisions = 10
	// maxRevisions is the number of revisions that are considered.
	maxRevisions = 50
	interrupted  = "interrupted: the run ended without recording its result"
)

// SaveRevision saves a revision with the next number and the status pending, and returns it; wanted
// has its name, namespace, description, author, origin and objects. Call it before the cluster is
// changed, with the [Client.Lock] held. Revisions that are still pending are from runs that were
// killed: they become failed. It fails if the objects do not fit into a Secret.
func (c *Client) SaveRevision(ctx context.Context, wanted Revision) (*Revision, error) {
	if err := CheckObjects(wanted.Objects, wanted.Namespace, wanted.Name); err != nil {
		return nil, fmt.Errorf("save a revision of scheduler %s, which could not be deployed again: %w", wanted.Name, err)
	}
	revisions, err := c.Revisions(ctx, wanted.Namespace, wanted.Name)
	if err != nil {
		return nil, err
	}
	next := 1
	for i := range revisions {
		next = revisions[i].Number + 1
		if revisions[i].Status == Pending {
			if err := c.SetRevisionStatus(ctx, &revisions[i], Failed, interrupted); err != nil {
				return nil, err
			}
		}
	}
	if next > maxNumber {
		return nil, problem.Errorf("delete the Secret "+revisionName(wanted.Name, maxNumber)+" and those before it",
			"save a revision of scheduler %s: its last revision is number %d", wanted.Name, maxNumber)
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

// SetRevisionStatus sets a revision's status in the cluster and in r, and its verification time in
// the cluster. reason is the reason for a failure, truncated to 4 KiB.
func (c *Client) SetRevisionStatus(ctx context.Context, r *RevisionInfo, status RevisionStatus, reason string) error {
	key := client.ObjectKey{Namespace: r.Namespace, Name: revisionName(r.Name, r.Number)}
	reason = bounded(reason)
	annotations := map[string]string{annotationReason: reason}
	if !r.Verified.IsZero() {
		annotations[annotationVerified] = r.Verified.UTC().Format(time.RFC3339)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels": map[string]string{labelRevisionStatus: string(status)}, "annotations": annotations,
	}})
	if err != nil {
		return fmt.Errorf("encode status of Secret/%s: %w", key, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := c.api.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return err
	}
	r.Status, r.Reason = status, reason
	return nil
}

// Revisions lists the revisions of scheduler name in namespace ns, oldest first. It reads only
// metadata. It logs and omits all but the newest 50 revisions: Prune keeps 10, and users who may
// write Secrets in the namespace can add any number.
func (c *Client) Revisions(ctx context.Context, ns, name string) ([]RevisionInfo, error) {
	var revisions []RevisionInfo
	omitted := 0
	err := c.eachSecret(ctx, func(secret *metav1.PartialObjectMetadata) {
		number, ok := revisionNumber(secret, name)
		if !ok {
			return
		}
		revisions = append(revisions, describeRevision(secret, number))
		if len(revisions) > 2*maxRevisions {
			omitted += len(revisions) - maxRevisions
			revisions = newest(revisions)
		}
	}, client.InNamespace(ns), client.MatchingLabels(ownership.Labels(name)), client.HasLabels{ownership.LabelRevision},
		client.MatchingFields{"type": string(revisionType)})
	if err != nil {
		return nil, fmt.Errorf("read revisions of scheduler %s: %w", name, err)
	}
	omitted += max(0, len(revisions)-maxRevisions)
	if omitted > 0 {
		c.log.Warn("old revisions are ignored", zap.String("scheduler", name), zap.Int("revisions", omitted))
	}
	return newest(revisions), nil
}

// newest returns the newest 50 revisions, oldest first.
func newest(revisions []RevisionInfo) []RevisionInfo {
	slices.SortFunc(revisions, func(a, b RevisionInfo) int { return cmp.Compare(a.Number, b.Number) })
	return slices.Clone(revisions[max(0, len(revisions)-maxRevisions):])
}

// ReadRevision reads a revision's objects and record. If they are unreadable, or were deleted after
// info was read, the revision has neither, and its Damage is the reason.
func (c *Client) ReadRevision(ctx context.Context, info RevisionInfo) (*Revision, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: info.Namespace, Name: revisionName(info.Name, info.Number)}
	if err := c.api.Get(ctx, key, secret); err != nil {
		err = fmt.Errorf("read revision %d of %s: %w", info.Number, info.Name, err)
		if apierrors.IsNotFound(err) { // another run pruned it
			return &Revision{RevisionInfo: info, Damage: err}, nil
		}
		return nil, err
	}
	return decodeRevision(info, secret), nil
}

// LastDeployed reads the newest deployed revision of scheduler name in namespace ns that can be
// read. It is nil if there is none. Damaged ones are logged and skipped: a damaged revision must
// not prevent a new deployment.
func (c *Client) LastDeployed(ctx context.Context, ns, name string) (*Revision, error) {
	revisions, err := c.Revisions(ctx, ns, name)
	if err != nil {
		return nil, err
	}
	for _, info := range slices.Backward(revisions) {
		if info.Status != Deployed {
			continue
		}
		r, err := c.ReadRevision(ctx, info)
		if err != nil || r.Damage == nil {
			return r, err
		}
		c.log.Warn("a revision is unreadable", zap.Error(r.Damage))
	}
	return nil, nil
}

// Prune deletes all revisions of scheduler name except the last 10 and the last deployed one, and
// the ConfigMaps and Secrets that neither a remaining revision nor the Deployment refers to.
// Without any revision it deletes nothing.
func (c *Client) Prune(ctx context.Context, ns, name string) (ChangeSet, error) {
	needed, err := c.needed(ctx, ns, name)
	if err != nil || len(needed) == 0 {
		return nil, err
	}
	owned, err := c.Owned(ctx, name, ns)
	if err != nil {
		return nil, err
	}
	changes, err := c.Delete(ctx, unneeded(owned, ns, needed))
	if err != nil {
		return changes, errors.Join(fmt.Errorf("delete old revisions of scheduler %s", name), err)
	}
	return changes, nil
}

// unneeded returns the ConfigMaps and Secrets in a namespace that are not needed and that no
// Deployment among owned refers to.
func unneeded(owned []*unstructured.Unstructured, ns string, needed map[string]bool) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, obj := range owned {
		if hasData(obj.GetKind()) && obj.GetNamespace() == ns && !needed[nameOf(obj)] && !mentioned(owned, obj.GetName()) {
			found = append(found, obj)
		}
	}
	return found
}

// needed returns the revisions to keep, by name, and their objects. Damaged revisions are not kept.
func (c *Client) needed(ctx context.Context, ns, name string) (map[string]bool, error) {
	revisions, err := c.Revisions(ctx, ns, name)
	if err != nil {
		return nil, err
	}
	var readable []RevisionInfo
	names := map[int][]string{}
	for _, info := range revisions {
		r, err := c.ReadRevision(ctx, info)
		if err != nil {
			return nil, err
		}
		if r.Damage != nil {
			c.log.Warn("a revision is unreadable", zap.Error(r.Damage))
			continue
		}
		readable = append(readable, info)
		names[info.Number] = append(names[info.Number], kubeapi.ObjectName("Secret", ns, revisionName(name, info.Number)))
		for _, obj := range r.Objects {
			names[info.Number] = append(names[info.Number], nameOf(obj))
		}
	}
	needed := map[string]bool{}
	for _, info := range keptOf(readable) {
		for _, object := range names[info.Number] {
			needed[object] = true
		}
	}
	return needed, nil
}

// keptOf returns the revisions to keep, given all, oldest first.
func keptOf(revisions []RevisionInfo) []RevisionInfo {
	first := max(0, len(revisions)-keptRevisions)
	kept := slices.Clone(revisions[first:])
	if last := LastDeployed(revisions); last != nil && !slices.Contains(kept, *last) {
		kept = append(kept, *last)
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
