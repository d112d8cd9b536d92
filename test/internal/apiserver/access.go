//go:build linux

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Proxy returns a handler that passes requests to the API server, with all permissions instead of
// the credentials of the client, or with those of the user that the client impersonates.
func (s *Server) Proxy(t testing.TB) *httputil.ReverseProxy {
	t.Helper()
	cfg := s.Config()
	address, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(address)
		r.Out.Header.Del("Authorization")
	}}
}

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
	var status struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := s.AskEtcd(ctx, "maintenance/status", struct{}{}, &status); err != nil {
		return err
	}
	compaction := map[string]any{"physical": true, "revision": status.Header.Revision}
	return s.AskEtcd(ctx, "kv/compaction", compaction, &struct{}{})
}

// RoundTrip is a function as an [http.RoundTripper], to observe the requests of a client.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
