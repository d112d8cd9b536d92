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

// Cause is the reason why an API server is unreachable.
type Cause string

// Causes of an [UnreachableError].
const (
	CauseRefused     Cause = "connection refused"
	CauseNoSuchHost  Cause = "no such host"
	CauseCertificate Cause = "certificate rejected"
	CauseNoTLS       Cause = "no TLS server"
	CauseTimeout     Cause = "no response before the timeout"
	CauseNetwork     Cause = "connection lost"
	CauseUnavailable Cause = "not ready"
	CauseIdentity    Cause = "credentials rejected"
)

// UnreachableError is returned when no API server responds, or when one side rejects the other's
// credentials.
type UnreachableError struct {
	Doing  string // operation and object: `apply Deployment/kube-system/x`
	Server string // address of the request, if known
	Cause  Cause
	Err    error
}

// Error returns the operation, the server and the cause.
func (e *UnreachableError) Error() string {
	server := "the API server"
	if e.Server != "" {
		server += " " + e.Server
	}
	return fmt.Sprintf("%s: %s: %s: %v", e.Doing, server, e.Cause, e.Err)
}

// Unwrap returns the client's error.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Hint returns an instruction for the user.
func (e *UnreachableError) Hint() string {
	switch e.Cause {
	case CauseNoSuchHost:
		return "the host of the kubeconfig does not resolve: check `kubectl config view --minify` and --kubeconfig/--context"
	case CauseCertificate:
		return certificateHint(e.Err)
	case CauseNoTLS:
		return "the server of the kubeconfig is https://, and this port does not use TLS: check the port, and proxies on " +
			"the way (proxy-url of the kubeconfig, HTTPS_PROXY)"
	case CauseIdentity:
		return "the token or client certificate of the kubeconfig is expired or unknown to this API server: renew it, or " +
			"select another with --kubeconfig/--context"
	case CauseUnavailable:
		return "check the logs of the API server and of etcd, and try again"
	default:
		return "check that the cluster is running and that this is its address, for example with `kubectl version` and the " +
			"same kubeconfig (--kubeconfig/--context)"
	}
}

// ForbiddenError is returned when the kubeconfig's user lacks a permission.
type ForbiddenError struct {
	Doing     string // operation and object
	User      string // user name; may be empty
	Verb      string // create, patch, …, or empty if the server's message lacks it
	Resource  string // resource.group, `deployments.apps`
	Name      string // of the object; may be empty
	Namespace string // empty for cluster scope
	Err       error
}

// Error returns the user, the verb and the resource.
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
	return fmt.Sprintf("%s: no permission: %s cannot %s %s %s", e.Doing, who, e.Verb, e.Resource, where)
}

// Unwrap returns the client's error.
func (e *ForbiddenError) Unwrap() error { return e.Err }

// Hint returns the command that checks the permission.
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
	return "check with `" + question + "`, or use a kubeconfig of a cluster administrator (--kubeconfig/--context)"
}

// forbiddenMessage matches kube-apiserver's message
// (staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go,
// forbiddenMessage).
var forbiddenMessage = regexp.MustCompile(
	`User "([^"]*)" cannot (\S+) (?:resource "([^"]+)" in API group "([^"]*)"|path "([^"]+)")(?: in the namespace "([^"]+)")?`)

// Explain wraps err, the result of an operation on an object ("apply Deployment/kube-system/x"), in
// an [UnreachableError] or [ForbiddenError] if it is one, and in an ordinary error if not. It
// returns nil for nil, and an explained error unchanged.
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

// unreachableCause returns why the API server is unreachable, if err means that it is.
func unreachableCause(err error) (Cause, bool) {
	var dns *net.DNSError
	var netErr net.Error
	var opErr *net.OpError
	switch {
	case errors.Is(err, context.Canceled):
		return "", false
	case notTLS(err):
		return CauseNoTLS, true
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
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err,
		syscall.EPIPE):
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

// brokenConnection reports whether err is one of net/http's errors for a lost connection that have
// no type.
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

// notTLS reports whether the server answers in clear text.
func notTLS(err error) bool {
	var record tls.RecordHeaderError
	return errors.As(err, &record) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

// rejectedByServer begins the errors from crypto/tls for a handshake that the server ends.
const rejectedByServer = "remote error: tls: "

func certificateError(err error) bool {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var verify *tls.CertificateVerificationError
	var alert tls.AlertError
	return errors.As(err, &unknown) || errors.As(err, &invalid) || errors.As(err, &host) || errors.As(err, &verify) ||
		errors.As(err, &alert) || strings.Contains(err.Error(), "x509: ") ||
		strings.Contains(err.Error(), rejectedByServer)
}

// certificateHint returns the remedy for a certificate that one side rejects.
func certificateHint(err error) string {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	switch {
	case errors.As(err, &host):
		return "the API server's certificate does not have this name: use a server of the kubeconfig that it has, name one " +
			"in tls-server-name, or add the name to the certificate (certSANs of kubeadm)"
	case errors.As(err, &unknown):
		return "certificate-authority of the kubeconfig did not sign the API server's certificate: the kubeconfig is for " +
			"another cluster or older than a new CA, or a proxy on the way has its own certificate"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the API server's certificate is expired or not yet valid: check its dates and the clock of this machine, and " +
			"renew it (`kubeadm certs renew` with kubeadm)"
	case strings.Contains(err.Error(), rejectedByServer) && strings.Contains(err.Error(), "certificate"):
		return "the API server rejects the client certificate of the kubeconfig: it is expired, or another CA signed it; " +
			"get a new kubeconfig"
	}
	return "check certificate-authority of the kubeconfig, and the dates of both certificates"
}

// serverOf returns the failed request's scheme and host.
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

// innermost removes the wrapping that repeats the request's URL.
func innermost(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}

// Transient reports whether a retry may succeed: the API server is restarting, overloaded or
// without etcd, or the connection broke. An unknown host and a rejected certificate are not
// transient.
func Transient(err error) bool {
	if err == nil {
		return false
	}
	if cause, ok := unreachableCause(err); ok {
		return cause != CauseCertificate && cause != CauseNoTLS && cause != CauseNoSuchHost && cause != CauseIdentity
	}
	if apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsInternalError(err) {
		return true
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}
