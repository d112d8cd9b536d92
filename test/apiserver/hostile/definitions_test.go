//go:build linux && (cases || faults)

package hostile

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/controller"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/versions"
)

// custom are the resources of others that commands read: group, version and kind.
func custom() [][3]string {
	return [][3]string{
		{"cluster.x-k8s.io", "v1beta1", "Cluster"}, {"multicluster.x-k8s.io", "v1alpha1", "ClusterProfile"},
		{"scheduling.x-k8s.io", "v1alpha1", "PodGroup"},
	}
}

// define creates custom resources, waits until they are served, and creates objects of the others'.
func define(t *testing.T, m *machine, p *proxy, api client.Client) {
	t.Helper()
	release, err := versions.Parse(apiserver.Release)
	if err != nil {
		t.Fatal(err)
	}
	own, err := controller.Definition(release)
	if err != nil {
		t.Fatal(err)
	}
	create(t, api, own)
	await(t, api, "pmk-sched.io", "v1alpha1", "CustomScheduler")
	for _, c := range custom() {
		create(t, api, definition(t, c[0], c[1], c[2]))
		await(t, api, c[0], c[1], c[2])
	}
	for _, name := range []string{"exec", "token", "key", "helper", "good"} {
		create(t, api, object("cluster.x-k8s.io/v1beta1", "Cluster", "team", name, nil))
	}
	create(t, api, object("multicluster.x-k8s.io/v1alpha1", "ClusterProfile", "team", "profile", map[string]any{
		"status": map[string]any{"accessProviders": []any{map[string]any{"name": control,
			"cluster": map[string]any{"server": p.URL, "certificate-authority": m.key}}}}}))
	create(t, api, object("scheduling.x-k8s.io/v1alpha1", "PodGroup", namespace, "group", map[string]any{
		"spec": map[string]any{"minMember": int64(9223372036854775807), "scheduleTimeoutSeconds": int64(-1),
			"minResources": map[string]any{"cpu": "9223372036854775807E"}}}))
}

func object(version, kind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind,
		"metadata": map[string]any{"namespace": namespace, "name": name}}}
	for key, value := range content {
		o.Object[key] = value
	}
	return o
}

func definition(t *testing.T, group, version, kind string) *unstructured.Unstructured {
	t.Helper()
	text := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %s.%s
  annotations: {api-approved.kubernetes.io: unapproved}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[1]s}
  versions:
  - name: %[4]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, strings.ToLower(kind)+"s", group, kind, version)
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// await waits until a custom resource is served.
func await(t *testing.T, api client.Client, group, version, kind string) {
	t.Helper()
	run.Eventually(t, kind+" is served", func(ctx context.Context) (bool, string) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(group + "/" + version)
		list.SetKind(kind + "List")
		err := api.List(ctx, list)
		return err == nil, fmt.Sprint(err)
	})
}

// request returns a certificate request whose subject has control characters.
func request(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: "me" + control}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: text})
}
