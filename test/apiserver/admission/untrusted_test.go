//go:build linux

package admission

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/admission"
	"github.com/pmk-sched/pmk-sched/test/internal/webhooks"
)

// untrusted sends requests as any pod of a cluster can, and checks what the API server was told.
func untrusted(t *testing.T, w *webhooks.Installed) {
	t.Helper()
	kube := server.Client(t)
	c, err := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), admission.ArbiterName,
		metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client := c.Webhooks[0].ClientConfig
	if len(client.CABundle) == 0 || client.Service.Path == nil || !strings.HasSuffix(*client.Service.Path, "/arbiter") ||
		len(*client.Service.Path) < 32 {
		t.Fatalf("the configuration is %+v %+v", client, client.Service)
	}
	anyone := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // as an attacker
	for path, want := range map[string]int{"/arbiter": 404, "/" + strings.Repeat("0", 32) + "/arbiter": 404,
		*client.Service.Path: 400} {
		response, err := anyone.Post("https://"+w.Address()+path, "application/json", strings.NewReader("{}"))
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
