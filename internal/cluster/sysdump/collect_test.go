package sysdump

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/sysdump/redact"
)

// serve answers requests for objects with JSON and requests for texts with the text. Everything
// else is not found.
func serve(objects map[string]any, texts map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, ok := texts[r.URL.Path+"?"+r.URL.Query().Get("previous")]; ok {
			_, _ = io.WriteString(w, text)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		object, found := objects[r.URL.Path]
		if !found && strings.HasSuffix(r.URL.Path, "s") && !strings.HasSuffix(r.URL.Path, "metrics") {
			object, found = map[string]any{"items": []any{}}, true // of the kind that the client expects
		}
		if !found {
			w.WriteHeader(http.StatusNotFound)
			object = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
				Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: "not found"}
		}
		_ = json.NewEncoder(w).Encode(object)
	})
}

func TestClusterIsWrittenWithoutSecrets(t *testing.T) {
	const secret = "opaque-value"
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x-1", Namespace: "n"}, Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "key"}}}},
		Containers: []corev1.Container{{Name: "kube-scheduler", Ports: []corev1.ContainerPort{{ContainerPort: 10260}}}},
	}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "kube-scheduler", RestartCount: 1}}}}
	web := httptest.NewServer(serve(map[string]any{
		"/api/v1/pods": corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
			Items: []corev1.Pod{pod}},
		"/api/v1/namespaces/n/secrets/key": corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"},
			Data: map[string][]byte{"k": []byte(secret)}},
		"/api/v1/nodes": corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, Items: []corev1.Node{{
			ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
			Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: "192.0.2.7"}}},
		}}},
		"/api/v1/namespaces/n/events": corev1.EventList{TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: "v1"},
			Items: []corev1.Event{
				{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "n", Name: "x-1"}, Message: "of the pod"},
				{InvolvedObject: corev1.ObjectReference{
					Kind: "Pod", Namespace: "n", Name: "x-of-before"}, Message: "of a former pod"},
				{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "n", Name: "other"}, Message: "of another pod"},
			}},
	}, map[string]string{
		"/api/v1/namespaces/n/pods/x-1/log?": "started with " + secret, "/api/v1/namespaces/n/pods/x-1/log?true": "panic",
	}))
	defer web.Close()
	labels := map[string]any{ownership.LabelInstance: "x"}
	var out bytes.Buffer
	r := redact.New()
	a := NewArchive(&out, "d", r, time.Unix(0, 0))
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Namespace: "n", Metrics: kubeapi.Metrics{Pods: kube.CoreV1()},
		Managed: []*unstructured.Unstructured{{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "x", "namespace": "n",
				"labels": labels},
		}}}}
	if err := c.Write(t.Context(), &rest.Config{Host: web.URL}, a, r, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	files := filesOf(t, out.Bytes())
	var names []string
	for name, content := range files {
		names = append(names, name)
		if strings.Contains(content, secret) || strings.Contains(content, "192.0.2.7") {
			t.Errorf("%s has the secret or the address:\n%s", name, content)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{
		"d/errors.txt", "d/events/n.json", "d/logs/n/x-1_kube-scheduler.log", "d/logs/n/x-1_kube-scheduler.previous.log",
		"d/nodes.json",
		"d/objects/n/Deployment_x.yaml", "d/objects/n/Pod_x-1.yaml",
	}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if got := files["d/logs/n/x-1_kube-scheduler.log"]; got != "started with REDACTED" {
		t.Errorf("log %q", got)
	}
	if events := files["d/events/n.json"]; !strings.Contains(events, "of a former pod") ||
		strings.Contains(events, "of another pod") {
		t.Errorf("events %s", events)
	}
	if text := files["d/objects/n/Pod_x-1.yaml"]; !strings.Contains(text, "kind: Pod\n") {
		t.Errorf("pod %s", text)
	}
	for _, want := range []string{"read ClusterRole/system:kube-scheduler", "read the metrics of Pod/n/x-1"} {
		if !strings.Contains(files["d/errors.txt"], want) {
			t.Errorf("errors.txt lacks %q:\n%s", want, files["d/errors.txt"])
		}
	}
}
