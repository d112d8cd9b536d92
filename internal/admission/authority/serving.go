package authority

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

const (
	// leafLife is the life of a serving certificate, which is renewed after two thirds of it.
	leafLife = 30 * 24 * time.Hour
	// checkInterval is the time between two reads of the Secret.
	checkInterval = 30 * time.Second
	// readTime bounds one read.
	readTime = 10 * time.Second
	// awaitInterval is the time between two reads of a Secret that does not exist yet.
	awaitInterval = time.Second
)

// Serving is the serving certificate of one server, signed by the authority. It exists in memory
// only: each replica has its own.
type Serving struct {
	kube      kubernetes.Interface
	namespace string
	log       *zap.Logger
	now       func() time.Time
	current   atomic.Pointer[signed]
}

type signed struct {
	authority *Authority
	cert      *tls.Certificate
	renewal   time.Time
}

// NewServing waits until the Secret with the authority exists, and signs a certificate.
func NewServing(ctx context.Context, kube kubernetes.Interface, namespace string, log *zap.Logger) (*Serving, error) {
	s := &Serving{kube: kube, namespace: namespace, log: log, now: time.Now}
	for reported := false; ; reported = true {
		err := s.refresh(ctx)
		if err == nil {
			return s, nil
		}
		if !apierrors.IsNotFound(err) && !kubeapi.Transient(err) {
			return nil, err
		}
		if !reported {
			log.Warn("wait for the certificate authority, which the controller creates", zap.Error(err))
		}
		if err := clock.Sleep(ctx, awaitInterval); err != nil {
			return nil, err
		}
	}
}

// Run renews the certificate when it is due, and when the authority in the Secret has changed,
// until ctx ends. The server goes on with the current certificate while the Secret cannot be read.
func (s *Serving) Run(ctx context.Context) {
	for clock.Sleep(ctx, checkInterval) == nil {
		if err := s.refresh(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("the serving certificate was not checked", zap.Error(err))
		}
	}
}

// refresh signs a certificate if the current one is due or not signed by the authority.
func (s *Serving) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	a, err := Read(ctx, s.kube, s.namespace)
	if err != nil {
		return err
	}
	return s.renew(a)
}

func (s *Serving) renew(a *Authority) error {
	now, current := s.now(), s.current.Load()
	if current != nil && bytes.Equal(current.authority.Cert, a.Cert) && now.Before(current.renewal) {
		return nil
	}
	host := a.Host()
	pair, err := a.Sign(x509.Certificate{
		Subject: pkix.Name{CommonName: Service}, DNSNames: []string{host}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore:   now.Add(-backdate), NotAfter: now.Add(leafLife),
	})
	if err != nil {
		return fmt.Errorf("sign the serving certificate: %w", err)
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return fmt.Errorf("sign the serving certificate: %w", err)
	}
	s.current.Store(&signed{authority: a, cert: &cert, renewal: now.Add(leafLife * 2 / 3)})
	s.log.Info("signed a serving certificate", zap.String("host", host), zap.Time("until", now.Add(leafLife)))
	return nil
}

// Authority returns the authority that signed the current certificate.
func (s *Serving) Authority() *Authority { return s.current.Load().authority }

// Token returns the token of the authority.
func (s *Serving) Token() string { return s.Authority().Token() }

// Certificate returns the current certificate. It is a tls.Config.GetCertificate.
func (s *Serving) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return s.current.Load().cert, nil
}
