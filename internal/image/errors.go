package image

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/pmk-sched/pmk-sched/internal/problem"
)

// registryError says in our words what a registry, or the way to it, answered.
func registryError(doing string, ref name.Reference, err error) error {
	host, repository := ref.Context().RegistryStr(), ref.Context().RepositoryStr()
	wrapped := func(seen, hint string) error {
		return problem.Errorf(hint, "%s %s: %s: %w", doing, canonical(ref), seen, err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s %s: %w", doing, canonical(ref), err)
	}
	var answer *transport.Error
	if errors.As(err, &answer) {
		switch {
		case answered(answer, http.StatusUnauthorized, transport.UnauthorizedErrorCode), answered(answer, http.StatusForbidden, transport.DeniedErrorCode):
			return wrapped("registry "+host+" refused the credentials, or wants some", fmt.Sprintf("log in with \"docker login %s\" "+
				"(its configuration file is read) and check that you may use %s; some registries answer so to a misspelt name too", host, repository))
		case answered(answer, http.StatusNotFound, transport.NameUnknownErrorCode, transport.ManifestUnknownErrorCode):
			return wrapped("not found in registry "+host,
				fmt.Sprintf("check the name; some registries want %s created before the first push", repository))
		case answered(answer, http.StatusTooManyRequests, transport.TooManyRequestsErrorCode):
			return wrapped("registry "+host+" limits the rate", "wait, log in, or do without a registry: --busybox PATH")
		}
		return wrapped("registry "+host+" answered", "")
	}
	return networkError(wrapped, host, err)
}

// networkError explains why a registry was not reached.
func networkError(wrapped func(seen, hint string) error, host string, err error) error {
	const without = "or do without a registry: --busybox PATH as the base, --archive FILE.tar as the destination"
	var (
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
	)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return wrapped("nothing listens at "+host, "is the registry running? Check host and port, "+without)
	case errors.As(err, &dns):
		return wrapped("host "+host+" is not known here", "check the name and the network, "+without)
	case errors.As(err, &authority) || errors.As(err, &hostname):
		return wrapped("the certificate of "+host+" is not trusted", "add the registry's CA to this machine's certificates")
	case errors.Is(err, http.ErrSchemeMismatch) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return wrapped("registry "+host+" does not speak TLS", "plain HTTP is used for loopback addresses only, unless allowed")
	}
	return wrapped("registry "+host+" was not reached", "check the network and the proxy settings, "+without)
}

// answered reports whether the registry gave the status or one of the codes.
func answered(err *transport.Error, status int, codes ...transport.ErrorCode) bool {
	return err.StatusCode == status || slices.ContainsFunc(err.Errors, func(d transport.Diagnostic) bool {
		return slices.Contains(codes, d.Code)
	})
}
