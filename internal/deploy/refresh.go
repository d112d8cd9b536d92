package deploy

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// ErrSameCertificate is returned by [PlanRefresh] if the scheduler uses that certificate already.
var ErrSameCertificate = errors.New("the scheduler uses this certificate already")

// CheckCurrent returns an error unless current, a scheduler's last deployed revision or nil, can be
// read.
func CheckCurrent(current *apply.Revision, namespace, name string) error {
	switch {
	case current == nil:
		return problem.Invalidf("deploy it first", "scheduler %s has no deployed revision in namespace %s", name,
			namespace)
	case current.Damage != nil:
		return problem.Errorf("deploy it again", "revision %d of %s is damaged: %w", current.Number, name,
			current.Damage)
	}
	return nil
}

// ReadCertificate returns the credentials that a scheduler's revision uses, and their certificate.
// The mode is node or node-inline.
func ReadCertificate(revision *apply.Revision) (manifest.Credentials, *x509.Certificate, error) {
	plan, err := PlanOf(revision)
	if err != nil {
		return manifest.Credentials{}, nil, err
	}
	used := plan.Scheduler.Credentials
	leaf, err := parseCertificate(used.Cert)
	if err != nil {
		return used, nil, fmt.Errorf("read the certificate of revision %d of %s: %w", revision.Number, revision.Name, err)
	}
	return used, leaf, nil
}

// Successor is a certificate that replaces a scheduler's certificate.
type Successor struct {
	// CA, Cert and Key are PEM.
	CA, Cert, Key []byte
	// Origin names their source, for messages and the history: a file, or the signer.
	Origin string
	// Requested is set if the certificate was requested for this purpose. It may expire before the
	// certificate in use.
	Requested bool
}

// String never shows the key.
func (s Successor) String() string { return "the certificate of " + s.Origin }

// GoString is String, so that %#v shows no key either.
func (s Successor) GoString() string { return s.String() }

// PlanRefresh returns the plan that deploys a revision with another certificate for the same user.
// It does no I/O. The error is [ErrSameCertificate] if nothing would change.
func PlanRefresh(revision *apply.Revision, fresh Successor, now time.Time) (*Plan, error) {
	plan, err := PlanOf(revision)
	if err != nil {
		return nil, err
	}
	_, before, err := ReadCertificate(revision)
	if err != nil {
		return nil, err
	}
	used := &plan.Scheduler.Credentials
	if bytes.Equal(bytes.TrimSpace(used.Cert), bytes.TrimSpace(fresh.Cert)) &&
		bytes.Equal(bytes.TrimSpace(used.CA), bytes.TrimSpace(fresh.CA)) {
		return nil, ErrSameCertificate
	}
	err = fresh.check(before, now)
	if err == nil {
		used.CA, used.Cert, used.Key = fresh.CA, fresh.Cert, fresh.Key
		err = plan.Render()
	}
	if err != nil {
		return nil, fmt.Errorf("refresh the credentials of %s: %w", revision.Name, err)
	}
	plan.Origin = "credentials refresh: " + fresh.Origin
	if s := plan.Scheduler; s.Replicas <= 1 && !s.Surges() {
		plan.Notes = append(plan.Notes, fmt.Sprintf("scheduler %s has one replica on the host network: "+
			"its pods wait for some seconds while it restarts", plan.Name))
	}
	return plan, nil
}

// check refuses a certificate that is not valid now, is for another user, or is older than the
// certificate in use.
func (s Successor) check(used *x509.Certificate, now time.Time) error {
	leaf, err := parseCertificate(s.Cert)
	if err != nil {
		return fmt.Errorf("read %s: %w", s, err)
	}
	const renew = "renew the node's certificates first, or request a certificate with --csr"
	date := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch {
	case leaf.Subject.CommonName != used.Subject.CommonName:
		return problem.Invalidf("deploy it again, which grants the permissions to the new user",
			"%s is of user %s, and the permissions are granted to %s", s, leaf.Subject.CommonName, used.Subject.CommonName)
	case now.After(leaf.NotAfter):
		return problem.Errorf(renew, "%s expired on %s", s, date(leaf.NotAfter))
	case now.Before(leaf.NotBefore):
		return problem.Errorf("check the clock of this machine", "%s is valid only from %s", s, date(leaf.NotBefore))
	case !s.Requested && leaf.NotAfter.Before(used.NotAfter):
		return problem.Errorf(renew, "%s is older than the one in use: it expires on %s, the one in use on %s", s,
			date(leaf.NotAfter), date(used.NotAfter))
	}
	return nil
}

// parseCertificate returns the first certificate in PEM text.
func parseCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("not PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}
