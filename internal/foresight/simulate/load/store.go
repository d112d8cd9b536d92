package load

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/pmk-sched/pmk-sched/internal/foresight/apiserver"
	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// Storage is an API server's storage. Nodes and pods that are written to it directly need less than
// a tenth of the time for API server requests. The API server reads them with its defaults, as it
// reads the objects that an earlier release wrote.
type Storage interface {
	// Put writes objects in their order, in one transaction, and returns its revision.
	Put(ctx context.Context, objects []apiserver.Object) (revision int64, err error)
}

// One batch is one transaction; etcd accepts 128 operations and 1.5 MiB.
const (
	batchObjects = 100
	batchBytes   = 512 << 10
)

// batch holds objects that are not yet written.
type batch struct {
	objects []apiserver.Object
	keys    map[string]bool
	bytes   int
}

func (b *batch) add(o apiserver.Object) {
	if b.keys == nil {
		b.keys = map[string]bool{}
	}
	b.objects = append(b.objects, o)
	b.keys[o.Key] = true
	b.bytes += len(o.Value)
}

// takes reports whether an object fits in.
func (b *batch) takes(o apiserver.Object) bool {
	return len(b.objects) < batchObjects && b.bytes+len(o.Value) <= batchBytes && !b.keys[o.Key]
}

// Append creates an object, or will, after all that were appended before. Wait returns when they
// exist.
func (l *Loader) Append(ctx context.Context, kind *snapshot.Kind, version string, o map[string]any) error {
	return l.make(ctx, kind, version, o, inOrder)
}

// Send writes the objects that were appended, and does not wait until the API server has read them.
func (l *Loader) Send(ctx context.Context) error {
	rest := l.batch
	l.batch, l.last = batch{}, target{}
	return l.put(ctx, rest.objects)
}

// storedAs returns the key for an object that is written to the storage, or "" if the API server
// creates it: it must validate an object that is not known to come from an API server, and its
// admission applies to it. The prefixes are in pkg/kubeapiserver/default_storage_factory_builder.go
// (SpecialDefaultResourcePrefixes).
func (l *Loader) storedAs(t target, o map[string]any) string {
	metadata, _ := o["metadata"].(map[string]any)
	if l.storage == nil || metadata["uid"] == nil || metadata["creationTimestamp"] == nil {
		return ""
	}
	switch t.kind.GroupResource() {
	case "nodes":
		return "minions/" + t.name
	case "pods", "persistentvolumeclaims", "podgroups.scheduling.k8s.io", "compositepodgroups.scheduling.k8s.io":
		return t.kind.Resource + "/" + t.namespace + "/" + t.name
	}
	return ""
}

// isKept reports whether an API server keeps an object that is being deleted: a pod until its
// kubelet has stopped it.
func isKept(o map[string]any) bool {
	spec, _ := o["spec"].(map[string]any)
	return o["kind"] != "Pod" || spec["nodeName"] != nil && spec["nodeName"] != "" && !scenario.IsFinished(o)
}

// store adds an object to the batch, and writes the batch before if it is full.
func (l *Loader) store(ctx context.Context, key string, t target, c scenario.Creation, o map[string]any) error {
	value, uid, err := encode(t, c)
	if err != nil {
		return fmt.Errorf("create %s: %w", t, err)
	}
	full := l.enqueue(t, apiserver.Object{Key: key, Value: value}, snapshot.UID(o), uid)
	return l.put(ctx, full.objects)
}

// enqueue adds an object to the batch, and returns the batch before if it is full.
func (l *Loader) enqueue(t target, o apiserver.Object, old, uid string) (full batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.uids[old] = uid
	if !l.batch.takes(o) {
		full, l.batch = l.batch, batch{}
	}
	l.batch.add(o)
	l.last = t
	return full
}

// encode returns an object in the storage's form, and its UID.
func encode(t target, c scenario.Creation) ([]byte, string, error) {
	metadata, _ := c.Object["metadata"].(map[string]any)
	uid := string(uuid.NewUUID())
	metadata["uid"], metadata["creationTimestamp"] = uid, time.Now().UTC().Format(time.RFC3339)
	if c.Deleted {
		markStored(t.kind, metadata)
	}
	if status, ok := c.Status["status"]; ok {
		c.Object["status"] = status
	}
	var into any
	switch t.kind.Name {
	case "Node":
		into = &corev1.Node{}
	case "Pod":
		into = &corev1.Pod{}
	case "PersistentVolumeClaim":
		into = &corev1.PersistentVolumeClaim{}
	default:
		into = &metav1.PartialObjectMetadata{}
	}
	if _, ok := c.Object["status"]; !ok && t.kind.Group == "" {
		c.Object["status"] = map[string]any{"phase": string(corev1.PodPending)} // of claims, too
	}
	text, err := snapshot.Encode(c.Object)
	if err != nil {
		return nil, "", err
	}
	// The API server reads no object of a kind if it cannot read one.
	return text, uid, json.Unmarshal(text, into)
}

// markStored is markDeleted for an object that is stored.
func markStored(kind *snapshot.Kind, metadata map[string]any) {
	seconds := longTime
	if kind.Name != "Pod" {
		seconds, metadata["finalizers"] = 0, []any{finalizer}
	}
	metadata["deletionTimestamp"] = time.Now().Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)
	metadata["deletionGracePeriodSeconds"] = seconds
}

// flush writes the rest of the batch, and waits until the API server has read all objects.
func (l *Loader) flush(ctx context.Context) error {
	last, objects := l.last, l.batch.objects
	l.last, l.batch = target{}, batch{}
	if len(objects) == 0 {
		return nil
	}
	// All objects in a transaction have one revision, and the API server reads them one by one: it has
	// read all if it has read one with a later revision. So the last object gets its own transaction.
	// No object is written twice: the scheduler may have bound the pod by then.
	end := len(objects) - 1
	if err := l.put(ctx, objects[:end]); err != nil {
		return err
	}
	revision, err := l.storage.Put(ctx, objects[end:])
	if err != nil {
		return fmt.Errorf("create %s: %w", last, err)
	}
	return l.requests.Do(ctx, fmt.Sprintf("wait until the API server has read %s", last),
		func(ctx context.Context) error {
			// Its watch cache answers when it is at least as new as the revision.
			_, err := send(ctx, last.request("GET").Param("resourceVersion", strconv.FormatInt(revision, 10)))
			if apierrors.IsNotFound(err) { // read, and evicted since
				return nil
			}
			return err
		})
}

func (l *Loader) put(ctx context.Context, objects []apiserver.Object) error {
	if len(objects) == 0 {
		return nil
	}
	if _, err := l.storage.Put(ctx, objects); err != nil {
		return fmt.Errorf("create %d objects: %w", len(objects), err)
	}
	return nil
}
