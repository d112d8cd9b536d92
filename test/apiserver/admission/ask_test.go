//go:build linux

package admission

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/admission"
	"github.com/pmk-sched/pmk-sched/test/internal/webhooks"
)

// clientConfig returns what the API server was told about the arbiter.
func (c *cluster) clientConfig(t *testing.T) admissionregistrationv1.WebhookClientConfig {
	t.Helper()
	found, err := c.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(),
		admission.ArbiterName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found.Webhooks[0].ClientConfig
}

// untrusted sends requests as any pod of a cluster can.
func untrusted(t *testing.T, c *cluster, r *webhooks.Replica) {
	t.Helper()
	path := *c.clientConfig(t).Service.Path
	if !strings.HasSuffix(path, "/arbiter") || len(path) < 32 {
		t.Errorf("the path is %s", path)
	}
	//nolint:gosec // as an attacker
	anyone := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for path, want := range map[string]int{"/arbiter": 404, "/" + strings.Repeat("0", 32) + "/arbiter": 404, path: 400} {
		response, err := anyone.Post("https://"+r.Address+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != want {
			t.Errorf("%s: %s", path, response.Status)
		}
	}
}

// ask asks a replica about a binding as the API server does.
func (c *cluster) ask(t *testing.T, r *webhooks.Replica, pod *corev1.Pod, node string) *admissionv1.AdmissionResponse {
	t.Helper()
	config, roots := c.clientConfig(t), x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CABundle)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots,
		ServerName: config.Service.Name + "." + config.Service.Namespace + ".svc"}}}
	defer client.CloseIdleConnections()
	binding, err := json.Marshal(corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
		Target: corev1.ObjectReference{Kind: "Node", Name: node}})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: pod.Namespace, Name: pod.Name,
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, SubResource: "binding",
			Object: runtime.RawExtension{Raw: binding}}})
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Post("https://"+r.Address+*config.Service.Path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(response.Body).Decode(&review); err != nil || review.Response == nil {
		t.Fatalf("%s: %v", response.Status, err)
	}
	return review.Response
}
