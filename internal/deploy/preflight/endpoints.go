package preflight

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// Endpoint is an API server that the scheduler's replicas use, as this machine reaches it.
type Endpoint struct {
	// Node is the API server's node. If it is empty, the endpoint is for any node.
	Node string
	// Address is host:port. Its certificate has ServerName and is signed by CA, PEM.
	Address, ServerName string
	CA                  []byte
	// Local reports whether a replica on this machine uses the same address.
	Local bool
	// Chosen reports whether pmk-sched chose the address that replicas use. Otherwise the default
	// scheduler uses it too, and a failure is a warning.
	Chosen bool
}

// endpointTimeout bounds the connection to one API server.
const endpointTimeout = 5 * time.Second

func (p *preflight) endpointChecks() []Check {
	var checks []Check
	for _, e := range p.Endpoints {
		description := "API server " + e.Address + " answers"
		if e.Node != "" {
			description = fmt.Sprintf("the API server of node %s has a certificate for %s", e.Node, e.ServerName)
		}
		checks = append(checks, Check{
			Name: "api-server", Description: description, Warning: !e.Chosen,
			Run: func(ctx context.Context) (string, error) { return "", e.check(ctx) },
		})
	}
	return checks
}

// check connects to the API server as a scheduler does, without credentials. An address that this
// machine cannot reach may be reached by a replica's node.
func (e Endpoint) check(ctx context.Context) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(e.CA)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: e.ServerName, MinVersion: tls.VersionTLS12}}
	ctx, cancel := context.WithTimeout(ctx, endpointTimeout)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", e.Address)
	var untrusted *tls.CertificateVerificationError
	switch {
	case err == nil:
		return conn.Close()
	case errors.As(err, &untrusted):
		return problem.Errorf("use --credentials hostpath or --credentials serviceaccount",
			"connect to API server %s as %s: %w", e.Address, e.ServerName, err)
	case e.Local:
		return problem.Errorf(
			"check that the API server runs; --credentials hostpath and --credentials serviceaccount use other addresses",
			"connect to API server %s: %w", e.Address, err)
	}
	return fmt.Errorf("%w: connect to API server %s: %w", ErrUnknown, e.Address, err)
}
