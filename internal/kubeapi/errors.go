package kubeapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Cause says why an API server could not be spoken with.
type Cause string

// Why an API server could not be spoken with.
const (
	CauseRefused     Cause = "connection refused"
	CauseNoSuchHost  Cause = "no such host"
	CauseCertificate Cause = "certificate not accepted"
	CauseTimeout     Cause = "no answer in time"
	CauseNetwork     Cause = "connection lost"
	CauseUnavailable Cause = "not ready to serve"
	CauseIdentity    Cause = "identity not accepted"
)

// UnreachableError says that there is no API server to speak with, or none that can be trusted or that knows who asks.
type UnreachableError struct {
	Doing  string // what was being done, with its object: `apply Deployment/kube-system/x`
	Server string // address that was asked; empty when the error does not tell it
	Cause  Cause
	Err    error
}

// Error names what was being done, the server, and the cause.
func (e *UnreachableError) Error() string {
	server := "the API server"
	if e.Server != "" {
		server += " " + e.Server
	}
	return fmt.Sprintf("%s: %s: %s: %v", e.Doing, server, e.Cause, e.Err)
}

// Unwrap returns the client's own error.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Hint says what to look at.
func (e *UnreachableError) Hint() string {
	switch e.Cause {
	case CauseNoSuchHost:
		return "the kubeconfig names a host that does not resolve: check `kubectl config view --minify` and --kubeconfig/--context"
	case CauseCertificate:
		return "the kubeconfig and the API server do not belong together, or a certificate has expired: check certificate-authority and the dates of both certificates"
	case CauseIdentity:
		return "the token or client certificate of the kubeconfig is expired or not known to this API server: renew it, or choose another with --kubeconfig/--context"
	case CauseUnavailable:
		return "the API server answers, but says it cannot serve: look at its log and at etcd's, and try again"
	default:
		return "is the cluster up, and is this its address? Check `kubectl version` with the same kubeconfig (--kubeconfig/--context)"
	}
}

// ForbiddenError says that the user of the kubeconfig may not do one thing.
type ForbiddenError struct {
	Doing     string // what was being done, with its object
	User      string // as the API server knows it; may be empty
	Verb      string // create, patch, …; empty when the server's message does not name it
	Resource  string // resource.group, `deployments.apps`
	Name      string // of the one object; may be empty
	Namespace string // empty: cluster scope
	Err       error
}

// Error names who may not do what to which resource.
func (e *ForbiddenError) Error() string {
	if e.Verb == "" {
		return fmt.Sprintf("%s: no permission: %v", e.Doing, e.Err)
	}
	who, where := "this user", "at cluster scope"
	if e.User != "" {
		who = "user " + e.User
	}
	if e.Namespace != "" {
		where = "in namespace " + e.Namespace
	}
	return fmt.Sprintf("%s: no permission: %s may not %s %s %s", e.Doing, who, e.Verb, e.Resource, where)
}

// Unwrap returns the client's own error.
func (e *ForbiddenError) Unwrap() error { return e.Err }

// Hint gives the command that asks the cluster the same question.
func (e *ForbiddenError) Hint() string {
	if e.Verb == "" {
		return "use a kubeconfig of a cluster administrator (--kubeconfig/--context)"
	}
	question := "kubectl auth can-i " + e.Verb + " " + e.Resource
	if e.Name != "" && e.Verb != "create" {
		question += "/" + e.Name
	}
	if e.Namespace != "" {
		question += " -n " + e.Namespace
	}
	return "ask the cluster with `" + question + "`, and use a kubeconfig of a cluster administrator (--kubeconfig/--context)"
}

// forbiddenMessage is the form in which kube-apiserver says what is forbidden
// (staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go, forbiddenMessage).
var forbiddenMessage = regexp.MustCompile(`User "([^"]*)" cannot (\S+) (?:resource "([^"]+)" in API group "([^"]*)"|path "([^"]+)")(?: in the namespace "([^"]+)")?`)

// Explain wraps err, which came of doing something to an object ("apply Deployment/kube-system/x"), as an [UnreachableError] or
// [ForbiddenError] where it is one. Any other error is wrapped as it is; nil stays nil; what is explained already stays as it is.
func Explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	var unreachable *UnreachableError
	var forbidden *ForbiddenError
	if errors.As(err, &unreachable) || errors.As(err, &forbidden) {
		return err
	}
	if cause, ok := unreachableCause(err); ok {
		return &UnreachableError{Doing: doing, Server: serverOf(err), Cause: cause, Err: innermost(err)}
	}
	if apierrors.IsForbidden(err) {
		return explainForbidden(doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func explainForbidden(doing string, err error) error {
	e := &ForbiddenError{Doing: doing, Err: err}
	m := forbiddenMessage.FindStringSubmatch(err.Error())
	if m == nil {
		return e
	}
	e.User, e.Verb, e.Resource, e.Namespace = m[1], m[2], m[3], m[6]
	if m[4] != "" {
		e.Resource += "." + m[4]
	}
	if m[5] != "" {
		e.Resource = m[5]
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		e.Name = status.Status().Details.Name
	}
	return e
}

// unreachableCause says why nothing could be got from an API server, if that is what err means.
func unreachableCause(err error) (Cause, bool) {
	var dns *net.DNSError
	var netErr net.Error
	var opErr *net.OpError
	switch {
	case errors.Is(err, context.Canceled):
		return "", false
	case certificateError(err):
		return CauseCertificate, true
	case apierrors.IsUnauthorized(err):
		return CauseIdentity, true
	case errors.Is(err, syscall.ECONNREFUSED):
		return CauseRefused, true
	case errors.As(err, &dns):
		return CauseNoSuchHost, true
	case apierrors.IsServiceUnavailable(err):
		return CauseUnavailable, true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return CauseNetwork, true
	case errors.Is(err, errAttemptTimeout):
		return CauseTimeout, true
	case errors.Is(err, context.DeadlineExceeded):
		return "", false
	case errors.As(err, &netErr) && netErr.Timeout():
		return CauseTimeout, true
	case errors.As(err, &opErr), brokenConnection(err):
		return CauseNetwork, true
	}
	return "", false
}

// brokenConnection recognises what net/http and its HTTP/2 say of a lost connection only in words.
func brokenConnection(err error) bool {
	for _, words := range []string{
		"http2: client connection lost", "http2: server sent GOAWAY", "http2: client connection force closed",
		"use of closed network connection", "server closed idle connection", "TLS handshake timeout",
	} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

func certificateError(err error) bool {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var verify *tls.CertificateVerificationError
	var alert tls.AlertError
	return errors.As(err, &unknown) || errors.As(err, &invalid) || errors.As(err, &host) || errors.As(err, &verify) ||
		errors.As(err, &alert) || strings.Contains(err.Error(), "x509: ") || strings.Contains(err.Error(), "remote error: tls: ") ||
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

// serverOf returns scheme and host of the request that failed.
func serverOf(err error) string {
	var request *url.Error
	if !errors.As(err, &request) {
		return ""
	}
	u, parseErr := url.Parse(request.URL)
	if parseErr != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// innermost drops the request's own words, which repeat its whole address.
func innermost(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}

// Transient reports whether err passes by itself: the API server is restarting, overloaded, has lost its etcd for a moment, or the
// connection broke. A host that does not resolve and a certificate that is not accepted do not pass.
func Transient(err error) bool {
	if err == nil {
		return false
	}
	if cause, ok := unreachableCause(err); ok {
		return cause != CauseCertificate && cause != CauseNoSuchHost && cause != CauseIdentity
	}
	if apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err) {
		return true
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}
