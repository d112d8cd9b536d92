//go:build linux && (cases || faults)

package hostile

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// fill writes objects of every kind that commands read, except revisions, as an attacker would.
func fill(t *testing.T, m *machine, p *proxy) {
	t.Helper()
	api, err := client.New(server.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range nodesAndPods() {
		create(t, api, o)
	}
	for _, o := range kubeconfigs(t, m, p) {
		create(t, api, o)
	}
	define(t, m, p, api)
	holder := "node-1" + control + "_1"
	for _, name := range []string{"kube-scheduler", "reads-key", "controls"} {
		create(t, api, &coordinationv1.Lease{ObjectMeta: in(namespace, name), Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: time.Now()}}})
	}
	create(t, api, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "controls",
		Labels: ownership.Labels("controls"), Annotations: map[string]string{"note": control}},
		Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: "kubernetes.io/kube-apiserver-client",
			Usages: []certificatesv1.KeyUsage{"client auth"}, Request: request(t)}})
	aliases := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'k'; c++ {
		aliases += fmt.Sprintf("%c: &%[1]c [*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c]\n", c, c-1)
	}
	for name, text := range map[string]string{
		"aliases": aliases, "nested": strings.Repeat("[", 500_000), "controls": control,
	} {
		create(t, api, &corev1.ConfigMap{ObjectMeta: in(namespace, name), Data: map[string]string{"releases.yaml": text,
			"config.yaml": text}})
	}
	for _, o := range customSchedulers(m) {
		create(t, api, o)
	}
}

func in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func create(t *testing.T, api client.Client, o client.Object) {
	t.Helper()
	if err := api.Create(run.Context(t), o); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
}

// nodesAndPods are a node, pods that are pending or run, and their events.
func nodesAndPods() []client.Object {
	no := false
	pod := func(name, node, image string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels,
			Annotations: map[string]string{"pmk-sched.io/replacement": control, "pmk-sched.io/config-hash": control,
				"pod-group.scheduling.sigs.k8s.io/min": "9223372036854775807"}},
			Spec: corev1.PodSpec{NodeName: node, SchedulerName: "controls", AutomountServiceAccountToken: &no,
				Containers: []corev1.Container{{Name: "kube-scheduler", Image: image, Args: []string{"--a=" + control}}}}}
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "argocd"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}},
		&corev1.ServiceAccount{ObjectMeta: in(namespace, "default")},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Annotations: map[string]string{"a": control},
			Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}},
		pod("pending", "", "localhost/a:v1", nil),
		pod("running", "node-1", "localhost/"+control, nil),
	}
	for _, name := range []string{"reads-key", "controls"} {
		objects = append(objects, pod(name+"-1", "node-1", "localhost/s:v1",
			map[string]string{ownership.LabelName: ownership.Scheduler, ownership.LabelInstance: name}))
	}
	for _, name := range []string{"pending", "running", "controls-1"} {
		for _, reason := range []string{"FailedScheduling", "Scheduled", "Preempted"} {
			objects = append(objects, &corev1.Event{ObjectMeta: in(namespace, name+"."+strings.ToLower(reason)),
				InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name},
				Reason:         reason, Message: "0/9223372036854775808 nodes are available: " + control, Type: "Warning",
				Source:        corev1.EventSource{Component: "x" + control},
				LastTimestamp: metav1.Now(), Count: 1 << 30})
		}
	}
	return objects
}

// kubeconfigs are Secrets of Argo CD and Cluster API whose kubeconfigs execute a program, read
// files of the machine, or name the other cluster.
func kubeconfigs(t *testing.T, m *machine, p *proxy) []client.Object {
	t.Helper()
	program := []string{"-c", "touch " + m.executed}
	argo := map[string]any{
		"exec":           map[string]any{"execProviderConfig": map[string]any{"command": "/bin/sh", "args": program}},
		"good":           map[string]any{"bearerToken": p.token, "tlsClientConfig": map[string]any{"insecure": true}},
		"files":          map[string]any{"tlsClientConfig": map[string]any{"keyFile": m.key, "certFile": m.key}},
		"proxy":          map[string]any{"bearerToken": p.token, "proxyUrl": "file://" + m.key},
		"name" + control: map[string]any{"bearerToken": control},
	}
	var objects []client.Object
	for name, config := range argo {
		text, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		short, _, _ := strings.Cut(name, "\u001b")
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: short,
			Labels: map[string]string{"argocd.argoproj.io/secret-type": "cluster"}},
			Data: map[string][]byte{"name": []byte(name), "server": []byte(p.URL), "config": text}})
	}
	for name, user := range map[string]any{
		"exec":   map[string]any{"exec": map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "args": program}},
		"token":  map[string]any{"tokenFile": m.key},
		"key":    map[string]any{"client-key": m.key, "client-certificate": m.key},
		"helper": map[string]any{"auth-provider": map[string]any{"name": "oidc"}},
		"good":   map[string]any{"token": p.token},
	} {
		text, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "c",
			"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": p.URL,
				"insecure-skip-tls-verify": true}}},
			"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "u"}}},
			"users":    []any{map[string]any{"name": "u", "user": user}}})
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, &corev1.Secret{ObjectMeta: in("team", name+"-kubeconfig"),
			Type: "cluster.x-k8s.io/secret", Data: map[string][]byte{"value": text}})
	}
	return objects
}

// customSchedulers are objects for the controller.
func customSchedulers(m *machine) []client.Object {
	of := func(name string, spec map[string]any) client.Object {
		return object(v1alpha1.APIVersion, v1alpha1.Kind, namespace, name, map[string]any{"spec": spec})
	}
	releases := func(name string) map[string]any {
		return map[string]any{"releases": map[string]any{
			"configMap": map[string]any{"name": name, "key": "releases.yaml"}}}
	}
	return []client.Object{
		of("from-aliases", releases("aliases")), of("from-nested", releases("nested")),
		of("from-controls", releases("controls")),
		of("reads-key", map[string]any{"source": map[string]any{"branch": "v1.24.3"},
			"image": map[string]any{"reference": m.registry + "/team/kube-scheduler:v1.24.3"}}),
	}
}
