package load

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/foresight/simulate/scenario"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
)

// RefusedError is returned for an object that the API server's admission refuses.
type RefusedError struct {
	// Reason is the API server's message.
	Reason string
}

func (e *RefusedError) Error() string { return "refused by the API server: " + e.Reason }

// Admit returns the API server's answer to a request to create a pod or a node from a manifest: the
// object with its defaults, changed by its admission, and validated. Nothing is created. The error
// is a [RefusedError] if admission refuses the object.
func (l *Loader) Admit(
	ctx context.Context, kind *snapshot.Kind, version string, o map[string]any,
) (map[string]any, error) {
	client, apiVersion := l.served.client(kind, version)
	if client == nil {
		return o, nil
	}
	c, _ := scenario.Complete(kind, o, l.uid)
	c.Object["apiVersion"] = apiVersion
	target := newTarget(client, kind, o)
	if err := l.ensureNamespace(ctx, target); err != nil {
		return nil, err
	}
	body, err := snapshot.Encode(c.Object)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", target, err)
	}
	known := alike(target, c.Object)
	answer, ok := l.admitted[known]
	if !ok {
		if answer, err = l.dryRun(ctx, target, body); err != nil {
			return nil, err
		}
		l.admitted[known] = answer
	}
	decoded, err := snapshot.Decode(answer)
	if err != nil {
		return nil, fmt.Errorf("read the created %s: %w", target, err)
	}
	return decoded, nil
}

// dryRun returns the object that the API server would create.
func (l *Loader) dryRun(ctx context.Context, t target, body []byte) ([]byte, error) {
	var answer []byte
	var refused *RefusedError
	err := l.requests.Do(ctx, "create "+t.String(), func(ctx context.Context) (err error) {
		answer, err = send(ctx, t.request("POST").Param("dryRun", metav1.DryRunAll).Body(body))
		if refused = refusal(err); refused != nil {
			err = nil
		}
		return err
	})
	if refused != nil {
		return nil, refused
	}
	return answer, err
}

// refusal returns the refusal in an answer from the API server. Its user has all permissions, so
// that only admission forbids something.
func refusal(err error) *RefusedError {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return nil
	}
	return &RefusedError{Reason: status.Status().Message}
}

// alike returns a text that objects have in common which differ in their names only: the API server
// changes them in the same way. An invalid name makes a difference.
func alike(t target, o map[string]any) string {
	metadata, _ := o["metadata"].(map[string]any)
	name := ""
	if len(validation.NameIsDNSSubdomain(t.name, false)) > 0 {
		name = t.name
	}
	text, err := snapshot.Encode(map[string]any{
		"kind": t.kind.Name, "namespace": t.namespace, "name": name, "labels": metadata["labels"],
		"annotations": metadata["annotations"], "owners": metadata["ownerReferences"], "spec": o["spec"],
		"status": o["status"],
	})
	if err != nil { // decoded JSON can be encoded
		return t.String()
	}
	return string(text)
}
