//go:build linux

package controller

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pmk-sched/pmk-sched/internal/admission"
	"github.com/pmk-sched/pmk-sched/internal/admission/authority"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/controller"
	"github.com/pmk-sched/pmk-sched/test/internal/controllers"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// The controller creates the authority of the webhooks, and has the API server trust it again when
// others remove it.
func TestControllerKeepsTheTrustInWebhooks(t *testing.T) {
	server.Clear(t)
	release, err := inspect.ServerRelease(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	w := install(t, server)
	controllers.InstallWith(t, server, controller.ManifestOptions{Namespace: w.ns, Image: "localhost/pmk-sched:v1",
		Replicas: 1, Release: release, Admission: []string{admission.Arbiter}})
	o := w.options()
	o.Admission = []string{admission.Arbiter}
	w.start(t, o)
	kube := server.Client(t)
	configurations := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	trusted := func() {
		t.Helper()
		run.Eventually(t, "the API server trusts the webhooks", func(ctx context.Context) (bool, string) {
			secret, err := kube.CoreV1().Secrets(w.ns).Get(ctx, authority.SecretName, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			c, err := configurations.Get(ctx, admission.ArbiterName, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			client := c.Webhooks[0].ClientConfig
			return len(client.CABundle) > 0 && bytes.Equal(client.CABundle, secret.Data[corev1.TLSCertKey]) &&
				client.Service.Path != nil && strings.HasSuffix(*client.Service.Path, "/arbiter"), fmt.Sprint(client)
		})
	}
	trusted()
	_, err = configurations.Patch(t.Context(), admission.ArbiterName, types.JSONPatchType, []byte(
		`[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"},`+
			`{"op":"replace","path":"/webhooks/0/clientConfig/service/path","value":"/arbiter"}]`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	trusted()
	if err := kube.CoreV1().Secrets(w.ns).Delete(t.Context(), authority.SecretName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	trusted()
}
