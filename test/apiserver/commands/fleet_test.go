//go:build linux

package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/fleet"
	"github.com/pmk-sched/pmk-sched/internal/foresight/apiserver"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// silent returns the address of a server that accepts connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// access returns the address of the API server, its certificate and a token.
func access(t *testing.T) (host string, ca []byte, token string) {
	t.Helper()
	cfg := server.Config()
	ca, err := os.ReadFile(cfg.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Host, ca, cfg.BearerToken
}

// kubeconfigFor returns a kubeconfig with a context for each server, by name.
func kubeconfigFor(t *testing.T, servers map[string]string) []byte {
	t.Helper()
	_, ca, token := access(t)
	var clusters, contexts []any
	for name, address := range servers {
		clusters = append(clusters, map[string]any{"name": name,
			"cluster": map[string]any{"server": address, "certificate-authority-data": ca}})
		contexts = append(contexts, map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": "u",
			"extensions": []any{map[string]any{"name": "pmk-sched.io/labels", "extension": map[string]any{"name": name}}}}})
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "Config", "clusters": clusters,
		"contexts": contexts, "current-context": slices.Sorted(maps.Keys(servers))[0],
		"users": []any{map[string]any{"name": "u", "user": map[string]any{"token": token}}}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// One cluster has a scheduler, one is stopped, and one never answers: each is a row.
func TestFleetReadsClustersThatAnswer(t *testing.T) {
	empty(t)
	ctx := testContext(t)
	s := newSecond(ctx, t, "fleet-scheduler")
	s.deploy(ctx, t, v1alpha1.CustomSchedulerSpec{Configuration: v1alpha1.Configuration{Preset: "binpack"}},
		deploy.Facts{})
	stopped, err := apiserver.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ := access(t)
	config := run.WriteFile(t, "config", string(kubeconfigFor(t,
		map[string]string{"a": host, "stopped": "https://" + stopped, "silent": "https://" + silent(t), "z": host})))
	fleetOf := func(args ...string) run.Result {
		t.Helper()
		return run.PMKSched(t, append([]string{"--kubeconfig", config, "fleet"}, args...)...)
	}

	fleetOf("status", "--context", "s*", "--timeout", "500ms").Fails(t, 3, "2 clusters", "2 could not be read",
		"silent: no answer within 500ms", "stopped: ")
	result := fleetOf("status", "--selector", "name!=silent", "--timeout", "2m", "-o", "json")
	result.Fails(t, 3, "1 could not be read")
	var got []string
	for _, row := range run.Decode[[]fleet.Row[replace.Status]](t, result.Stdout) {
		text := row.Cluster
		if row.Result != nil {
			text += " " + row.Result.Server
			for _, w := range row.Result.Schedulers {
				text += fmt.Sprintf(" %s %s drift %d", w.Name, w.Image, len(w.Drift))
			}
		}
		got = append(got, text+" "+row.Error)
	}
	for i, want := range []string{"a v1.24.3 fleet-scheduler localhost/s:v1 drift 0 ", "stopped ",
		"z v1.24.3 fleet-scheduler localhost/s:v1 drift 0 "} {
		if len(got) != 3 || !strings.HasPrefix(got[i], want) {
			t.Fatalf("row %d is not %q: %q", i, want, got)
		}
	}
	result = fleetOf("detect", "--timeout", "2m", "--selector", "name in (a,z)", "-o", "json").OK(t)
	if rows := run.Decode[[]fleet.Row[inspect.Info]](t, result.Stdout); len(rows) != 2 ||
		len(rows[0].Result.Scheduler.Deployed) != 1 || rows[0].Result.Requests == 0 {
		t.Errorf("detect: %s", result)
	}
	fleetOf("status", "--timeout", "2m", "--context", "[az]").Prints(t, "fleet-scheduler", "2 clusters")
	verified(ctx, t, s)
	fleetOf("status", "--timeout", "2m", "--context", "a").Prints(t, "VERIFIED", "2026-01-02")
	s.drift(ctx, t)
	fleetOf("status", "--timeout", "2m", "--context", "a").Fails(t, 3, "1 of 1 cluster has findings", "[drift]", "1 object")
}

// verified records a verification in the current revision.
func verified(ctx context.Context, t *testing.T, s *second) {
	t.Helper()
	last, err := s.client.LastDeployed(ctx, s.ns, s.name)
	if err != nil {
		t.Fatal(err)
	}
	last.Verified = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := s.client.SetRevisionStatus(ctx, &last.RevisionInfo, apply.Deployed, ""); err != nil {
		t.Fatal(err)
	}
}

// drift changes the Deployment.
func (s *second) drift(ctx context.Context, t *testing.T) {
	t.Helper()
	_, err := server.Client(t).AppsV1().Deployments(s.ns).Patch(ctx, s.name, types.MergePatchType,
		[]byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// The kubeconfigs of Argo CD, Cluster API and ClusterProfiles are on a management cluster, which is
// also one of the clusters here.
func TestFleetOfManagementCluster(t *testing.T) {
	empty(t)
	host, ca, token := access(t)
	api, err := client.New(server.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"argocd", "team"} {
		create(t, api, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	define(t, api, "cluster.x-k8s.io", "v1beta1", "Cluster")
	define(t, api, "multicluster.x-k8s.io", "v1alpha1", "ClusterProfile")

	argo, err := json.Marshal(map[string]any{"bearerToken": token, "tlsClientConfig": map[string]any{"caData": ca}})
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]string{"good": string(argo), "plugin": `{"execProviderConfig":{"command":"/bin/false"}}`} {
		create(t, api, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name,
				Labels: map[string]string{"argocd.argoproj.io/secret-type": "cluster", "env": name}},
			Data: map[string][]byte{"name": []byte(name), "server": []byte(host), "config": []byte(config)},
		})
	}
	for _, name := range []string{"good", "new"} {
		create(t, api, custom("cluster.x-k8s.io/v1beta1", "Cluster", name, nil))
	}
	create(t, api, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "good-kubeconfig"},
		Type: "cluster.x-k8s.io/secret",
		Data: map[string][]byte{"value": kubeconfigFor(t, map[string]string{"good": host})}})
	create(t, api, custom("multicluster.x-k8s.io/v1alpha1", "ClusterProfile", "good", map[string]any{
		"accessProviders": []any{map[string]any{"name": "mine", "cluster": map[string]any{"server": host,
			"certificate-authority-data": ca}}},
	}))
	plugin := run.WriteFile(t, "plugin", `#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"`+token+`"}}'
`)
	if err := os.Chmod(plugin, 0o700); err != nil {
		t.Fatal(err)
	}
	providers := run.WriteFile(t, "providers.json", `{"providers":[{"name":"mine","execConfig":`+
		`{"apiVersion":"client.authentication.k8s.io/v1","command":"`+plugin+`"}}]}`)

	config := kubeconfig(t)
	for _, c := range []struct {
		args []string
		want map[string]string
	}{
		{[]string{"argocd"}, map[string]string{"good": "", "plugin": "credential plugin"}},
		{[]string{"argocd", "-l", "env=good"}, map[string]string{"good": ""}},
		{[]string{"cluster-api"}, map[string]string{"team/good": "", "team/new": "does not exist"}},
		{[]string{"cluster-profiles", "--from-namespace", "team", "--access-providers", providers},
			map[string]string{"good": ""}},
	} {
		result := run.PMKSched(t, append([]string{"--kubeconfig", config, "fleet", "detect", "--timeout", "2m", "-o", "json",
			"--from"},
			c.args...)...)
		rows := run.Decode[[]fleet.Row[inspect.Info]](t, result.Stdout)
		for _, row := range rows {
			want, expected := c.want[row.Cluster]
			if !expected || (want == "") != (row.Error == "") || !strings.Contains(row.Error, want) {
				t.Errorf("%v: %+v", c.args, row)
			}
		}
		if len(rows) != len(c.want) || strings.Contains(result.Stdout+result.Stderr, token) {
			t.Errorf("%v: %s", c.args, result)
		}
	}
}

func create(t *testing.T, api client.Client, object client.Object) {
	t.Helper()
	if err := api.Create(testContext(t), object); err != nil {
		t.Fatal(err)
	}
}

// custom returns an object of a custom resource in the namespace team.
func custom(version, kind, name string, status any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	object.SetName(name)
	object.SetNamespace("team")
	if status != nil {
		text, err := json.Marshal(status)
		if err == nil {
			var plain any
			err = json.Unmarshal(text, &plain)
			object.Object["status"] = plain
		}
		if err != nil {
			panic(err)
		}
	}
	return object
}

// define creates a custom resource without a schema, and waits until it is served.
func define(t *testing.T, api client.Client, group, version, kind string) {
	t.Helper()
	plural := strings.ToLower(kind) + "s"
	text := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %s.%s
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[1]s}
  versions:
  - name: %[4]s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, plural, group, kind, version)
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	create(t, api, object)
	run.Eventually(t, plural+" are served", func(context.Context) (bool, string) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(group + "/" + version)
		list.SetKind(kind + "List")
		err := api.List(testContext(t), list)
		return err == nil, fmt.Sprint(err)
	})
}
