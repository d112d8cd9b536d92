package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// create creates an object. If the object exists, the answer to an earlier attempt was lost, or the
// API server itself has created the object: it gets the labels in the snapshot.
func (l *Loader) create(ctx context.Context, t target, c scenario.Creation, o map[string]any) error {
	body, err := snapshot.Encode(c.Object)
	if err != nil {
		return fmt.Errorf("create %s: %w", t, err)
	}
	var answer []byte
	exists := false
	err = l.requests.Do(ctx, "create "+t.String(), func(ctx context.Context) (err error) {
		answer, err = send(ctx, t.request("POST").Body(body))
		if exists = apierrors.IsAlreadyExists(err); exists {
			answer, err = send(ctx, t.request("GET"))
		}
		return err
	})
	if refused := refusal(err); refused != nil {
		return refused
	}
	if err != nil {
		return err
	}
	if metadata, _ := c.Object["metadata"].(map[string]any); exists && metadata["labels"] != nil {
		if err := l.patch(ctx, t, map[string]any{"metadata": map[string]any{"labels": metadata["labels"]}}); err != nil {
			return err
		}
	}
	return l.learn(o, answer)
}

// learn remembers an object's new UID.
func (l *Loader) learn(o map[string]any, answer []byte) error {
	var created struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(answer, &created); err != nil {
		return fmt.Errorf("read created object: %w", err)
	}
	metadata, _ := o["metadata"].(map[string]any)
	if old, ok := metadata["uid"].(string); ok && old != "" {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.uids[old] = string(created.Metadata.UID)
	}
	return nil
}

func (l *Loader) patch(ctx context.Context, t target, patch map[string]any, subresources ...string) error {
	body, err := snapshot.Encode(patch)
	if err != nil {
		return fmt.Errorf("write %s: %w", t, err)
	}
	return l.requests.Do(ctx, "write "+t.String(), func(ctx context.Context) error {
		_, err := send(ctx, t.request("PATCH", subresources...).SetHeader("Content-Type",
			string(types.MergePatchType)).Body(body))
		return err
	})
}

const (
	// longTime is the time in seconds for which an object that is being deleted in the snapshot stays
	// so.
	longTime = 7 * 24 * 3600
	// finalizer keeps an object that is being deleted and that is not a pod.
	finalizer = "pmk-sched.io/snapshot"
)

// markDeleted deletes an object that is being deleted, so that it stays so: a pod until its kubelet
// has stopped it, others while they have a finalizer.
func (l *Loader) markDeleted(ctx context.Context, t target) error {
	if t.kind.Name != "Pod" {
		err := l.patch(ctx, t, map[string]any{"metadata": map[string]any{"finalizers": []any{finalizer}}})
		if err != nil {
			return err
		}
	}
	body := fmt.Appendf(nil, `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":%d}`, longTime)
	return l.requests.Do(ctx, "delete "+t.String(), func(ctx context.Context) error {
		_, err := send(ctx, t.request("DELETE").Body(body))
		return err
	})
}

// ensureNamespace creates an object's namespace if the snapshot does not have it.
func (l *Loader) ensureNamespace(ctx context.Context, t target) error {
	name := t.namespace
	if t.kind.Name == "Namespace" {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.namespaces[t.name] = true
		return nil
	}
	l.mu.Lock()
	known := name == "" || l.namespaces[name]
	l.mu.Unlock()
	if known {
		return nil
	}
	core, _ := l.served.clientOf("", "v1")
	if core == nil {
		return errors.New("the API server does not serve v1")
	}
	body := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
	text, err := snapshot.Encode(body)
	if err != nil {
		return err
	}
	err = l.requests.Do(ctx, "create Namespace/"+name, func(ctx context.Context) error {
		_, err := send(ctx, core.Post().Resource("namespaces").SetHeader("Content-Type", "application/json").Body(text))
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.namespaces[name] = true
	}
	return err
}
