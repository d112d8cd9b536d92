//go:build linux

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// AwaitAccess waits until the API server lets a user do all that is asked. It watches RBAC objects,
// so new ones take effect a little later.
func (s *Server) AwaitAccess(ctx context.Context, user string, asked ...authorizationv1.ResourceAttributes) error {
	kube, err := kubernetes.NewForConfig(s.ConfigFor(user))
	if err != nil {
		return err
	}
	for _, attributes := range asked {
		err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			review := &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
			answer, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err == nil && answer.Status.Allowed, err
		})
		if err != nil {
			return fmt.Errorf("wait until %s may %s %s in namespace %q: %w", user, attributes.Verb, attributes.Resource,
				attributes.Namespace, err)
		}
	}
	return nil
}

// Compact makes etcd forget all former versions of the objects, as the API server does every few
// minutes.
func (s *Server) Compact(ctx context.Context) error {
	status, err := post(ctx, s.EtcdURL()+"/v3/maintenance/status", "{}")
	if err != nil {
		return err
	}
	var answer struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := json.Unmarshal(status, &answer); err != nil {
		return fmt.Errorf("ask etcd for its revision: %w", err)
	}
	_, err = post(ctx, s.EtcdURL()+"/v3/kv/compaction", `{"physical": true, "revision": "`+answer.Header.Revision+`"}`)
	return err
}

// post sends a request to the HTTP gateway of etcd.
func post(ctx context.Context, url, body string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("post %s: %s: %s", url, response.Status, text)
	}
	return text, err
}

// RoundTrip is a function as an [http.RoundTripper], to observe the requests of a client.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
