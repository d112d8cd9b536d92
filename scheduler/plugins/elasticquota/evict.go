package elasticquota

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// evictor evicts pods, as far as their PodDisruptionBudgets allow it.
type evictor interface {
	// tryAll returns the first pod that would not be evicted now, nil if all would.
	tryAll(ctx context.Context, victims []*corev1.Pod) (*corev1.Pod, error)
	evict(ctx context.Context, victim *corev1.Pod) error
}

type eviction struct{ client kubernetes.Interface }

// newEviction returns an evictor that does not wait. An API server answers an eviction that a
// PodDisruptionBudget refuses with the time to try again, and a client waits so long and tries
// again, while the scheduler schedules nothing.
func newEviction(config *rest.Config) (eviction, error) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return impatient{next} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return eviction{}, fmt.Errorf("create client for evictions: %w", err)
	}
	return eviction{client}, nil
}

// impatient removes the header that has clients wait.
type impatient struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (i impatient) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := i.next.RoundTrip(request)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

func (e eviction) tryAll(ctx context.Context, victims []*corev1.Pod) (*corev1.Pod, error) {
	for _, victim := range victims {
		err := e.post(ctx, victim, true)
		if apierrors.IsTooManyRequests(err) {
			return victim, nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("evict pod %s/%s: %w", victim.Namespace, victim.Name, err)
		}
	}
	return nil, nil
}

func (e eviction) evict(ctx context.Context, victim *corev1.Pod) error {
	if err := e.post(ctx, victim, false); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("evict pod %s/%s: %w", victim.Namespace, victim.Name, err)
	}
	return nil
}

// post creates an eviction. The API server accepts policy/v1 from 1.22 on, and v1beta1 before.
func (e eviction) post(ctx context.Context, victim *corev1.Pod, dryRun bool) error {
	var err error
	for _, version := range []string{"policy/v1", "policy/v1beta1"} {
		options := map[string]interface{}{"preconditions": map[string]interface{}{"uid": victim.UID}}
		if dryRun {
			options["dryRun"] = []string{"All"}
		}
		body, wrong := json.Marshal(map[string]interface{}{
			"apiVersion": version, "kind": "Eviction", "deleteOptions": options,
			"metadata": map[string]interface{}{"namespace": victim.Namespace, "name": victim.Name},
		})
		if wrong != nil {
			return wrong
		}
		err = e.client.CoreV1().RESTClient().Post().Namespace(victim.Namespace).Resource("pods").Name(
			victim.Name).SubResource("eviction").
			SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
		if !isUnknownVersion(err) {
			return err
		}
	}
	return err
}

// isUnknownVersion reports whether the API server cannot read an eviction in the request's version.
func isUnknownVersion(err error) bool {
	status, ok := err.(apierrors.APIStatus) //nolint:errorlint // clients do not wrap it
	return ok && status.Status().Code == http.StatusBadRequest
}
