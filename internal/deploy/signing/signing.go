// Package signing gets client certificates from a cluster's signer, and checks whether an API
// server accepts a client certificate.
package signing

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
)

// Request describes a client certificate.
type Request struct {
	// Name is the name prefix of the CertificateSigningRequest.
	Name string
	// Subject contains the user as common name and its groups as organizations.
	Subject pkix.Name
	// Timeout bounds the wait for approval and signature. If it is 0, it is 5 minutes.
	Timeout time.Duration
	// Note prints instructions for the user. It may be nil.
	Note func(text string)
}

const (
	defaultTimeout = 5 * time.Minute
	pollInterval   = time.Second
	// approvalReason is the reason for the condition Approved.
	approvalReason = "PMKSchedCredentialsRefresh"
)

// requester runs one request.
type requester struct {
	Request
	client certificatesclient.CertificateSigningRequestInterface
	retry  *kubeapi.Retrier
	// created is the request's object. Its UID is empty if the response to its creation was lost.
	created *certificatesv1.CertificateSigningRequest
}

// Certificate creates a key and requests a certificate for it from the cluster's signer
// kubernetes.io/kube-apiserver-client. It approves the request if the caller may; otherwise it
// notes the command that approves it, and waits. The key never leaves the process. The
// CertificateSigningRequest stays; the cluster deletes it after an hour, or after a day if it was
// not approved.
func Certificate(ctx context.Context, cfg *rest.Config, r Request) (certificates.Pair, error) {
	client, err := certificatesclient.NewForConfig(cfg)
	if err != nil {
		return certificates.Pair{}, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	if r.Timeout <= 0 {
		r.Timeout = defaultTimeout
	}
	// A suffix for this process, so that a retry does not create a second object.
	r.Name += "-" + utilrand.String(5)
	q := &requester{Request: r, client: client.CertificateSigningRequests(), retry: &kubeapi.Retrier{}}
	pair, err := q.run(ctx)
	if err != nil {
		return certificates.Pair{}, fmt.Errorf("request a certificate for %s: %w", r.Subject.CommonName, err)
	}
	return pair, nil
}

func (q *requester) run(ctx context.Context) (certificates.Pair, error) {
	key, err := certificates.NewKey()
	if err != nil {
		return certificates.Pair{}, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: q.Subject}, key)
	if err != nil {
		return certificates.Pair{}, fmt.Errorf("encode: %w", err)
	}
	secret, err := certificates.EncodeKey(key)
	if err != nil {
		return certificates.Pair{}, err
	}
	if err := q.create(ctx, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})); err != nil {
		return certificates.Pair{}, err
	}
	if err := q.approve(ctx); err != nil {
		return certificates.Pair{}, err
	}
	signed, err := q.await(ctx)
	if err != nil {
		return certificates.Pair{}, err
	}
	if _, err := tls.X509KeyPair(signed, secret); err != nil {
		return certificates.Pair{},
			fmt.Errorf("CertificateSigningRequest/%s: the signed certificate is not for the requested key: %w", q.Name, err)
	}
	return certificates.Pair{Cert: signed, Key: secret}, nil
}

func (q *requester) create(ctx context.Context, request []byte) (err error) {
	object := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: q.Name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	q.created, err = kubeapi.Create(ctx, q.retry, "create CertificateSigningRequest/"+q.Name, q.client.Create, object)
	return err
}

// approve approves the request, or notes who can.
func (q *requester) approve(ctx context.Context) error {
	err := q.retry.Do(ctx, "approve CertificateSigningRequest/"+q.Name, func(ctx context.Context) error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			object, err := q.client.Get(ctx, q.Name, metav1.GetOptions{})
			if err != nil || len(object.Status.Conditions) > 0 { // another approver was faster
				return err
			}
			if !q.isCreated(object) {
				return fmt.Errorf("CertificateSigningRequest/%s is not the request that was created: another user replaced it",
					q.Name)
			}
			object.Status.Conditions = append(object.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
				Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: approvalReason,
				Message: "approved by the user of pmk-sched credentials refresh",
			})
			_, err = q.client.UpdateApproval(ctx, q.Name, object, metav1.UpdateOptions{})
			return err
		})
	})
	if apierrors.IsForbidden(err) {
		q.note(fmt.Sprintf("this user may not approve the request: waiting up to %s for `kubectl certificate approve %s`",
			q.Timeout, q.Name))
		return nil
	}
	return err
}

// isCreated reports whether an object is the created one: another user may have deleted it and
// created another request with its name. The resource version in UpdateApproval protects the object
// from then on.
func (q *requester) isCreated(object *certificatesv1.CertificateSigningRequest) bool {
	return (q.created.UID == "" || object.UID == q.created.UID) &&
		bytes.Equal(object.Spec.Request, q.created.Spec.Request) &&
		object.Spec.SignerName == q.created.Spec.SignerName && slices.Equal(object.Spec.Usages, q.created.Spec.Usages)
}

func (q *requester) note(text string) {
	if q.Note != nil {
		q.Note(text)
	}
}

// await returns the signed certificate.
func (q *requester) await(ctx context.Context) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	approved := false
	for {
		object, err := kubeapi.Get(limited, q.retry, q.client.Get, "CertificateSigningRequest", "", q.Name)
		if err == nil {
			approved, err = isApproved(object)
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case limited.Err() != nil:
			return nil, q.timedOut(approved)
		case err != nil:
			return nil, err
		case len(object.Status.Certificate) > 0:
			return object.Status.Certificate, nil
		}
		_ = clock.Sleep(limited, pollInterval) // the next request fails if the time is over
	}
}

// timedOut returns the error for a request that was not signed in time.
func (q *requester) timedOut(approved bool) error {
	if !approved {
		return problem.Errorf(
			"run the command again and approve the request with `kubectl certificate approve` while it waits",
			"CertificateSigningRequest/%s was not approved within %s", q.Name, q.Timeout)
	}
	return problem.Errorf(
		"the kube-controller-manager signs requests if it has --cluster-signing-cert-file and --cluster-signing-key-file; "+
			"without them, renew the node's certificates and run the command on that node without --csr",
		"CertificateSigningRequest/%s is approved and was not signed within %s", q.Name, q.Timeout)
}

// isApproved reports whether a request is approved. It returns an error if the request will not be
// signed.
func isApproved(object *certificatesv1.CertificateSigningRequest) (approved bool, err error) {
	for _, c := range object.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateApproved:
			approved = true
		case certificatesv1.CertificateDenied:
			return false, problem.Errorf("ask who denied it", "CertificateSigningRequest/%s was denied: %s %s", object.Name,
				c.Reason, c.Message)
		case certificatesv1.CertificateFailed:
			return false, fmt.Errorf("CertificateSigningRequest/%s: the signer failed: %s %s", object.Name, c.Reason, c.Message)
		}
	}
	return approved, nil
}
