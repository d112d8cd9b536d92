// Package authority keeps the certificate authority of the admission webhooks in a Secret, signs
// the serving certificates of their servers, and makes the API server trust them.
package authority

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// Service is the name of the Service of the webhooks. SecretName is the name of the Secret with the
// authority.
const (
	Service    = ownership.Admission
	SecretName = "pmk-sched-admission-ca"
)

const (
	// life exceeds a cluster's life, as an extender's authority does.
	life = 20 * 365 * 24 * time.Hour
	// backdate allows for clocks that differ.
	backdate = time.Hour
	// tokenBytes is the length of the token.
	tokenBytes = 16
)

// Authority is the certificate authority of the webhooks in one namespace.
type Authority struct {
	*certificates.Authority
	namespace string
	roots     *x509.CertPool
	token     string
}

// Ensure returns the authority in the Secret of the namespace, and creates the Secret if it does
// not exist. Several processes may call it at the same time.
func Ensure(ctx context.Context, kube kubernetes.Interface, namespace string) (*Authority, error) {
	found, err := Read(ctx, kube, namespace)
	if !apierrors.IsNotFound(err) {
		return found, err
	}
	now := time.Now()
	created, err := certificates.NewAuthority(x509.Certificate{
		Subject: pkix.Name{CommonName: Service}, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: now.Add(-backdate), NotAfter: now.Add(life),
	})
	if err != nil {
		return nil, fmt.Errorf("create the certificate authority of the webhooks: %w", err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: SecretName, Namespace: namespace,
			Labels: map[string]string{ownership.LabelManagedBy: ownership.Manager, ownership.LabelName: Service}},
		Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: created.Cert, corev1.TLSPrivateKeyKey: created.Key},
	}
	_, err = kube.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{FieldManager: ownership.Manager})
	if apierrors.IsAlreadyExists(err) {
		return Read(ctx, kube, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("create Secret %s/%s: %w", namespace, SecretName, err)
	}
	return parse(namespace, created.Pair)
}

// Read returns the authority in the Secret of the namespace. If there is no Secret, the error
// satisfies apierrors.IsNotFound.
func Read(ctx context.Context, kube kubernetes.Interface, namespace string) (*Authority, error) {
	secret, err := kube.CoreV1().Secrets(namespace).Get(ctx, SecretName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", namespace, SecretName, err)
	}
	return parse(namespace,
		certificates.Pair{Cert: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]})
}

func parse(namespace string, pair certificates.Pair) (*Authority, error) {
	ca, err := certificates.ParseAuthority(pair)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority in Secret %s/%s: %w (delete the Secret: the controller "+
			"creates it again)", namespace, SecretName, err)
	}
	a := &Authority{Authority: ca, namespace: namespace, roots: x509.NewCertPool()}
	a.roots.AppendCertsFromPEM(ca.Cert)
	sum := hmac.New(sha256.New, ca.Key)
	sum.Write([]byte("path of " + Service))
	a.token = hex.EncodeToString(sum.Sum(nil)[:tokenBytes])
	return a, nil
}

// Token is the first part of the webhooks' paths. Only those who can read webhook configurations or
// the Secret know it: API servers present no certificate, and a request that any pod can invent
// would take room on a node.
func (a *Authority) Token() string { return a.token }

// Host is the name in the serving certificates.
func (a *Authority) Host() string { return hostIn(a.namespace) }

func hostIn(namespace string) string { return Service + "." + namespace + ".svc" }

// ClientConfig returns the TLS configuration of a client of the webhooks' servers.
func (a *Authority) ClientConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.roots, ServerName: a.Host()}
}
