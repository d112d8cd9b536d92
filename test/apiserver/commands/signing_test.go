//go:build linux

package commands

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/deploy/signing"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// schedulerUser is the user in the default scheduler's certificate. The API server grants it the
// role system:kube-scheduler.
const schedulerUser = "system:kube-scheduler"

// certifier does the work of administrators and signers for the authority of the API server's
// clients.
type certifier struct {
	config *rest.Config
	kube   kubernetes.Interface
	ca     *x509.Certificate
	signer *certificates.Authority
	key    any
}

func TestCertificates(t *testing.T) {
	empty(t)
	c := newCertifier(t)
	c.addRequester(t)
	for name, test := range map[string]func(*testing.T, *certifier){
		"approved by its user": approvedByItsUser, "approved by another": approvedByAnother, "denied": denied,
		"never signed": neverSigned, "group of administrators": administrators, "checked": checked,
	} {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

func newCertifier(t *testing.T) *certifier {
	t.Helper()
	block, _ := pem.Decode(server.ClientCA.Cert)
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	keyBlock, _ := pem.Decode(server.ClientCA.Key)
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return &certifier{config: server.Config(), kube: server.Client(t), ca: ca, signer: server.ClientCA, key: key}
}

// as returns the configuration of a user.
func (c *certifier) as(name string) *rest.Config {
	cfg := rest.CopyConfig(c.config)
	cfg.Impersonate.UserName = name
	return cfg
}

// await waits for the request whose name has the prefix, until it has a condition of that type. If
// condition is empty, it waits only until the request exists.
func (c *certifier) await(t *testing.T, prefix string,
	condition certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	var found *certificatesv1.CertificateSigningRequest
	run.Eventually(t, "a request of "+prefix, func(ctx context.Context) (bool, string) {
		list, err := c.kube.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		for i := range list.Items {
			if o := &list.Items[i]; strings.HasPrefix(o.Name, prefix+"-") && (condition == "" || has(o, condition)) {
				found = o
				return true, ""
			}
		}
		return false, "none"
	})
	return found
}

func has(o *certificatesv1.CertificateSigningRequest, condition certificatesv1.RequestConditionType) bool {
	for _, c := range o.Status.Conditions {
		if c.Type == condition {
			return true
		}
	}
	return false
}

// decide adds a condition to a request, as an administrator.
func (c *certifier) decide(ctx context.Context, t *testing.T, o *certificatesv1.CertificateSigningRequest,
	condition certificatesv1.RequestConditionType) {
	t.Helper()
	o.Status.Conditions = append(o.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: condition,
		Status: corev1.ConditionTrue, Reason: "Test", Message: "not now"})
	if _, err := c.kube.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, o.Name, o,
		metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
}

// sign does the work of the signer.
func (c *certifier) sign(ctx context.Context, t *testing.T, o *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	block, _ := pem.Decode(o.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = request.CheckSignature()
	}
	if err != nil {
		t.Error(err)
		return
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: request.Subject, NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.ca, request.PublicKey, c.key)
	if err != nil {
		t.Error(err)
		return
	}
	o.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if _, err := c.kube.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, o,
		metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
}

// outcome is the result of a request.
type outcome struct {
	certificates.Pair
	err error
}

// request requests a certificate in the background, while the test acts as administrator and
// signer.
func request(t *testing.T, cfg *rest.Config, r signing.Request) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		pair, err := signing.Certificate(t.Context(), cfg, r)
		done <- outcome{pair, err}
	}()
	return done
}

// approvedByItsUser: the certificate works, and the key was never sent.
func approvedByItsUser(t *testing.T, c *certifier) {
	done := request(t, c.config, signing.Request{Name: "own", Subject: pkix.Name{CommonName: schedulerUser}})
	o := c.await(t, "own", certificatesv1.CertificateApproved)
	if o.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName ||
		bytes.Contains(o.Spec.Request, []byte("PRIVATE")) {
		t.Errorf("request %+v", o.Spec)
	}
	c.sign(t.Context(), t, o)
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	if err := signing.Check(t.Context(), c.config, got.Pair, metav1.NamespaceSystem, "kube-scheduler"); err != nil {
		t.Error(err)
	}
}

// requesterName is a user who may create requests and not approve them.
const requesterName = "requester"

func (c *certifier) addRequester(t *testing.T) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: requesterName}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{
			"create", "get"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: requesterName}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
			Kind: "ClusterRole", Name: requesterName},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: requesterName}},
	}
	if _, err := c.kube.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	requester, err := kubernetes.NewForConfig(c.as(requesterName))
	if err != nil {
		t.Fatal(err)
	}
	run.Eventually(t, "the role is in effect", func(ctx context.Context) (bool, string) {
		_, err := requester.CertificatesV1().CertificateSigningRequests().Get(ctx, "none", metav1.GetOptions{})
		return err != nil && strings.Contains(err.Error(), "not found"), "forbidden"
	})
}

// approvedByAnother: a user who may not approve the request gets the command for an administrator,
// and then the certificate.
func approvedByAnother(t *testing.T, c *certifier) {
	notes := make(chan string, 1)
	done := request(t, c.as(requesterName), signing.Request{
		Name: "other", Subject: pkix.Name{CommonName: schedulerUser}, Note: func(text string) { notes <- text },
	})
	o := c.await(t, "other", "")
	if note := <-notes; !strings.Contains(note, "kubectl certificate approve "+o.Name) {
		t.Errorf("note %q, want the command that approves %s", note, o.Name)
	}
	c.decide(t.Context(), t, o, certificatesv1.CertificateApproved)
	c.sign(t.Context(), t, c.await(t, "other", certificatesv1.CertificateApproved))
	if got := <-done; got.err != nil {
		t.Error(got.err)
	}
}

func denied(t *testing.T, c *certifier) {
	// An approved request cannot be denied: its user must not be one who approves it.
	done := request(t, c.as(requesterName), signing.Request{Name: "denied", Subject: pkix.Name{CommonName: schedulerUser}})
	c.decide(t.Context(), t, c.await(t, "denied", ""), certificatesv1.CertificateDenied)
	if got := <-done; got.err == nil || !strings.Contains(got.err.Error(), "was denied: Test not now") {
		t.Errorf("error %v", got.err)
	}
}

func neverSigned(t *testing.T, c *certifier) {
	_, err := signing.Certificate(t.Context(), c.config,
		signing.Request{Name: "unsigned", Subject: pkix.Name{CommonName: schedulerUser}, Timeout: 3 * time.Second})
	if err == nil || !strings.Contains(err.Error(), "is approved and was not signed within 3s") ||
		!strings.Contains(strings.Join(problem.Hints(err), " "), "--cluster-signing-cert-file") {
		t.Errorf("error %v with hints %q", err, problem.Hints(err))
	}
}

// administrators: the API server admits no certificate for the group that may do everything.
func administrators(t *testing.T, c *certifier) {
	_, err := signing.Certificate(t.Context(), c.config, signing.Request{
		Name: "masters", Subject: pkix.Name{CommonName: schedulerUser, Organization: []string{"system:masters"}},
		Timeout: time.Minute,
	})
	if err == nil || !strings.Contains(err.Error(), "system:masters") {
		t.Errorf("error %v", err)
	}
}

// checked: only a certificate that the API server accepts, of a user with the permissions, is good.
func checked(t *testing.T, c *certifier) {
	sign := func(authority *certificates.Authority, name string, notAfter time.Time) certificates.Pair {
		pair, err := authority.Sign(x509.Certificate{
			Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: notAfter,
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		})
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	soon := time.Now().Add(time.Hour)
	for name, tt := range map[string]struct {
		pair  certificates.Pair
		lease string
		want  string
	}{
		"good":          {sign(c.signer, schedulerUser, soon), "kube-scheduler", ""},
		"no permission": {sign(c.signer, "somebody", soon), "kube-scheduler", "may not create pods"},
		"another lease": {sign(c.signer, schedulerUser, soon), "other", "may not update leases"},
		"expired": {sign(c.signer, schedulerUser, time.Now().Add(-time.Minute)), "kube-scheduler",
			"credentials rejected"},
		"another authority": {sign(apiserver.NewAuthority(t), schedulerUser, soon), "kube-scheduler", "credentials rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			err := signing.Check(t.Context(), c.config, tt.pair, metav1.NamespaceSystem, tt.lease)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
