//go:build linux && labs

package conformance

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"net"
	"net/http"
	"testing"
	"time"

	admission "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/base/certificates"
	"github.com/pmk-sched/pmk-sched/test/internal/conformance"
	"github.com/pmk-sched/pmk-sched/test/internal/labs"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// route gives the second scheduler the pods of the namespaces that the e2e suite creates, which it
// labels, unless they name a scheduler. The API server calls this process.
func route(t *testing.T, n *labs.Node) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(n.Gateway(t), "0"))
	if err != nil {
		t.Fatal(err)
	}
	authority, certificate := newCertificate(t, n.Gateway(t))
	server := &http.Server{Handler: http.HandlerFunc(serveRoute), ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}}
	go func() { _ = server.ServeTLS(listener, "", "") }() // it ends when the test closes it
	t.Cleanup(func() { _ = server.Close() })
	url, none, fail := "https://"+listener.Addr().String(), registration.SideEffectClassNone, registration.Fail
	_, err = n.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(run.Context(t),
		&registration.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "route"},
			Webhooks: []registration.MutatingWebhook{{
				Name: "route.pmk-sched.io", SideEffects: &none, FailurePolicy: &fail,
				AdmissionReviewVersions: []string{"v1"},
				ClientConfig:            registration.WebhookClientConfig{URL: &url, CABundle: authority},
				NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "e2e-framework", Operator: metav1.LabelSelectorOpExists},
				}},
				Rules: []registration.RuleWithOperations{{
					Operations: []registration.OperationType{registration.Create},
					Rule:       registration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}},
			}},
		}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// serveRoute answers a review of a pod.
func serveRoute(w http.ResponseWriter, r *http.Request) {
	var review admission.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "expected an AdmissionReview", http.StatusBadRequest)
		return
	}
	var pod corev1.Pod
	if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if pod.Spec.NodeName == "" && pod.Spec.SchedulerName == corev1.DefaultSchedulerName {
		patch := admission.PatchTypeJSONPatch
		answer.PatchType = &patch
		answer.Patch = []byte(`[{"op": "replace", "path": "/spec/schedulerName", "value": "` + conformance.Scheduler + `"}]`)
	}
	review.Request, review.Response = nil, answer
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server has gone
}

// newCertificate returns a certificate for an address, and its authority.
func newCertificate(t *testing.T, address string) (authority []byte, certificate tls.Certificate) {
	t.Helper()
	from, until := time.Now().Add(-time.Minute), time.Now().Add(24*time.Hour)
	ca, err := certificates.NewAuthority(x509.Certificate{Subject: pkix.Name{CommonName: "route CA"}, NotBefore: from,
		NotAfter: until, KeyUsage: x509.KeyUsageCertSign})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Sign(x509.Certificate{Subject: pkix.Name{CommonName: "route"}, NotBefore: from, NotAfter: until,
		IPAddresses: []net.IP{net.ParseIP(address)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err == nil {
		certificate, err = tls.X509KeyPair(pair.Cert, pair.Key)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ca.Cert, certificate
}
