package kubeapi

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var pods = schema.GroupResource{Resource: "pods"}

func request(err error) error {
	return &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/api/v1/pods?limit=1", Err: err}
}

func dial(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }

func TestExplainNamesTheCause(t *testing.T) {
	cases := map[string]struct {
		err       error
		cause     Cause // empty: not unreachable
		transient bool
	}{
		"refused": {request(dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))), CauseRefused,
			true},
		"reset": {request(dial(os.NewSyscallError("read", syscall.ECONNRESET))), CauseNetwork, true},
		"no route": {request(dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH))), CauseNetwork,
			true},
		"closed in the middle":   {request(io.ErrUnexpectedEOF), CauseNetwork, true},
		"EOF":                    {request(io.EOF), CauseNetwork, true},
		"HTTP/2 connection lost": {request(errors.New("http2: client connection lost")), CauseNetwork, true},
		"no such host": {request(dial(&net.DNSError{Err: "no such host", Name: "api", IsNotFound: true})),
			CauseNoSuchHost, false},
		"unknown authority":          {request(x509.UnknownAuthorityError{}), CauseCertificate, false},
		"expired server certificate": {request(x509.CertificateInvalidError{Reason: x509.Expired}), CauseCertificate, false},
		"client certificate refused": {request(errors.New("remote error: tls: bad certificate")), CauseCertificate, false},
		"unauthorized":               {apierrors.NewUnauthorized("no"), CauseIdentity, false},
		"no answer":                  {fmt.Errorf("%w: %w", errAttemptTimeout, context.DeadlineExceeded), CauseTimeout, true},
		"dial timeout":               {request(dial(os.ErrDeadlineExceeded)), CauseTimeout, true},
		"unavailable":                {apierrors.NewServiceUnavailable("starting"), CauseUnavailable, true},
		"too many requests":          {apierrors.NewTooManyRequests("slow down", 1), "", true},
		"etcd lost its leader":       {apierrors.NewInternalError(errors.New("etcdserver: leader changed")), "", true},
		"server timeout":             {apierrors.NewServerTimeout(pods, "create", 1), "", true},
		"gateway timeout":            {apierrors.NewTimeoutError("timeout", 1), "", true},
		"bad gateway":                {apierrors.NewGenericServerResponse(502, "get", pods, "x", "", 0, true), "", true},
		"not found":                  {apierrors.NewNotFound(pods, "x"), "", false},
		"conflict":                   {apierrors.NewConflict(pods, "x", errors.New("no")), "", false},
		"invalid":                    {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x", nil), "", false},
		"forbidden":                  {apierrors.NewForbidden(pods, "x", errors.New("no")), "", false},
		"cancelled":                  {request(context.Canceled), "", false},
		"deadline of the caller":     {request(context.DeadlineExceeded), "", false},
		"anything else":              {errors.New("else"), "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := Explain("list pods", tc.err)
			var unreachable *UnreachableError
			if is := errors.As(err, &unreachable); is != (tc.cause != "") {
				t.Fatalf("unreachable is %t: %v", is, err)
			}
			if unreachable != nil && (unreachable.Cause != tc.cause || unreachable.Hint() == "") {
				t.Errorf("cause is %q, want %q, hint %q", unreachable.Cause, tc.cause, unreachable.Hint())
			}
			if !errors.Is(err, tc.err) && unreachable == nil {
				t.Errorf("%v does not wrap %v", err, tc.err)
			}
			if !strings.HasPrefix(err.Error(), "list pods: ") {
				t.Errorf("error %q does not say what was being done", err)
			}
			if got := Transient(tc.err); got != tc.transient {
				t.Errorf("transient is %t", got)
			}
			if again := Explain("do more", err); unreachable != nil && !errors.Is(again, err) {
				t.Errorf("explained twice: %v", again)
			}
		})
	}
	if Explain("list pods", nil) != nil || Transient(nil) {
		t.Error("no error is explained")
	}
}

func TestUnreachableNamesTheServerOnce(t *testing.T) {
	err := Explain("list pods", request(dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))))
	want := "list pods: the API server https://10.0.0.1:6443: connection refused: dial tcp: connect: connection refused"
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

func TestForbiddenNamesUserVerbAndResource(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	cases := map[string]struct {
		err        error
		want, hint string
	}{
		"in a namespace": {
			apierrors.NewForbidden(deployments, "x",
				errors.New(`User "jane" cannot patch resource "deployments" in API group "apps" in the namespace "kube-system"`)),
			"apply x: no permission: user jane cannot patch deployments.apps in namespace kube-system",
			"`kubectl auth can-i patch deployments.apps/x -n kube-system`",
		},
		"at cluster scope": {
			apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "",
				errors.New(`User "jane" cannot list resource "nodes" in API group "" at the cluster scope`)),
			"apply x: no permission: user jane cannot list nodes at cluster scope",
			"`kubectl auth can-i list nodes`",
		},
		"a subresource": {
			apierrors.NewForbidden(pods, "p",
				errors.New(`User "jane" cannot get resource "pods/log" in API group "" in the namespace "a": RBAC: x not found`)),
			"apply x: no permission: user jane cannot get pods/log in namespace a",
			"-n a`",
		},
		"a path": {
			apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(`User "jane" cannot get path "/configz"`)),
			"apply x: no permission: user jane cannot get /configz at cluster scope",
			"`kubectl auth can-i get /configz`",
		},
		"by admission": {
			apierrors.NewForbidden(pods, "p", errors.New(`violates PodSecurity "restricted:latest"`)),
			`apply x: no permission: pods "p" is forbidden: violates PodSecurity "restricted:latest"`,
			"cluster administrator",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := Explain("apply x", tc.err)
			var forbidden *ForbiddenError
			if !errors.As(err, &forbidden) || !apierrors.IsForbidden(err) {
				t.Fatalf("error is %v", err)
			}
			if err.Error() != tc.want {
				t.Errorf("got  %s\nwant %s", err, tc.want)
			}
			if !strings.Contains(forbidden.Hint(), tc.hint) {
				t.Errorf("hint %q does not hold %q", forbidden.Hint(), tc.hint)
			}
		})
	}
}
