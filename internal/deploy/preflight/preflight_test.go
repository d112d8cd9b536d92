package preflight

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// objectOf returns an object of scheduler a in namespace sched.
func objectOf(apiVersion, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetName(name)
	o.SetLabels(ownership.Labels("a"))
	if kind != "Namespace" {
		o.SetNamespace("sched")
	}
	return o
}

// checkOptions are options for a Deployment and a ConfigMap.
func checkOptions(hostNetwork bool) Options {
	deployment := objectOf("apps/v1", "Deployment", "a")
	pod := map[string]any{"hostNetwork": hostNetwork}
	deployment.Object["spec"] = map[string]any{"template": map[string]any{"spec": pod}}
	return Options{Name: "a", Namespace: "sched", Image: "registry.example.com/s:v1",
		Objects: []*unstructured.Unstructured{deployment, objectOf("v1", "ConfigMap", "a-config")}}
}

// outcomeOf runs the check of a name.
func outcomeOf(t *testing.T, cfg *rest.Config, name string, o Options) Outcome {
	t.Helper()
	checks, err := Checks(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no check %s", name)
	}
	return run(t.Context(), checks[i])
}

func TestWhichChecksRunDependsOnTheScheduler(t *testing.T) {
	for name, c := range map[string]struct {
		hostNetwork   bool
		port          int
		architectures []string
		want          []string
	}{
		"in the pod network":          {false, 10260, nil, []string{"node-platforms"}},
		"in the host's network":       {true, 10260, nil, []string{"node-platforms", "port-free"}},
		"without a port":              {true, 0, nil, []string{"node-platforms"}},
		"of known architectures":      {true, 10260, []string{"amd64"}, []string{"port-free"}},
		"nothing that is conditional": {false, 0, []string{"amd64"}, nil},
	} {
		o := checkOptions(c.hostNetwork)
		o.Port, o.Architectures = c.port, c.architectures
		checks, err := Checks(&rest.Config{Host: "https://127.0.0.1:1"}, o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, check := range checks {
			if check.Name != "permission" {
				got = append(got, check.Name)
			}
			if warning := check.Name == "node-platforms"; check.Name != "permission" && check.Warning != warning {
				t.Errorf("%s: check %s is a warning: %t", name, check.Name, check.Warning)
			}
		}
		want := append([]string{"image-reference", "namespace-exists", "names-free", "control-plane-node", "pod-admitted"},
			c.want...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	_, err := Checks(&rest.Config{}, Options{Objects: []*unstructured.Unstructured{objectOf("v1", "ConfigMap", "a")}})
	if err == nil || !strings.Contains(err.Error(), "include no Deployment") {
		t.Errorf("without a Deployment: %v", err)
	}
}

// cluster serves objects by the last two parts of their paths. Another object does not exist, or
// the user may not read it.
type cluster struct {
	objects   map[string]*unstructured.Unstructured
	forbidden bool
}

func (c cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	w.Header().Set("Content-Type", "application/json")
	if found := c.objects[strings.Join(parts[len(parts)-2:], "/")]; found != nil {
		_ = json.NewEncoder(w).Encode(found)
		return
	}
	status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}
	if c.forbidden {
		status.Code, status.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
		status.Message = `x "a" is forbidden: User "jane" cannot get resource "x" in API group "" in the namespace "sched"`
	}
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status)
}

func TestImageNamespaceAndNamesAreChecked(t *testing.T) {
	deployment, config := objectOf("apps/v1", "Deployment", "a"), objectOf("v1", "ConfigMap", "a-config")
	foreign, ofOther := objectOf("v1", "ConfigMap", "a-config"), objectOf("apps/v1", "Deployment", "a")
	foreign.SetLabels(nil)
	ofOther.SetLabels(ownership.Labels("b"))
	madeByHand := objectOf("apps/v1", "Deployment", "a")
	madeByHand.SetLabels(nil)
	_ = unstructured.SetNestedSlice(madeByHand.Object, []any{map[string]any{"name": "s",
		"command": []any{"/usr/local/bin/kube-scheduler", "--config=/etc/c.yaml"}}}, "spec", "template", "spec", "containers")
	namespace := objectOf("v1", "Namespace", "sched")
	all := func(objects ...*unstructured.Unstructured) cluster {
		c := cluster{objects: map[string]*unstructured.Unstructured{}}
		for _, o := range objects {
			c.objects[resourceOf(o).Resource+"/"+o.GetName()] = o
		}
		return c
	}
	adding := func(o *unstructured.Unstructured) func(*Options) {
		return func(options *Options) { options.Objects = append(options.Objects, o) }
	}
	for name, tc := range map[string]struct {
		check   string
		cluster cluster
		change  func(*Options)
		status  Status
		detail  string
		hint    string
	}{
		"an image": {check: "image-reference", status: Passed, detail: "registry.example.com/s:v1"},
		"an invalid image": {check: "image-reference", change: func(o *Options) { o.Image = "Not An Image" },
			status: Failed, detail: `invalid image "Not An Image"`, hint: "the format is REGISTRY/REPOSITORY:TAG"},
		"a namespace": {check: "namespace-exists", cluster: all(namespace), status: Passed},
		"no namespace": {check: "namespace-exists", status: Failed, detail: "namespace sched does not exist",
			hint: "create it with `kubectl create namespace sched`, or select another with -n"},
		"a namespace to create": {check: "namespace-exists", change: adding(namespace), status: Passed,
			detail: "it will be created"},
		"another namespace to create": {check: "namespace-exists", change: adding(objectOf("v1", "Namespace", "other")),
			status: Failed, detail: "namespace sched does not exist", hint: "kubectl create namespace sched"},
		"an object with the name of the namespace": {check: "namespace-exists",
			change: adding(objectOf("v1", "ConfigMap", "sched")), status: Failed, detail: "namespace sched does not exist",
			hint: "kubectl create namespace sched"},
		"no permission to read the namespace": {check: "namespace-exists", cluster: cluster{forbidden: true},
			status: Unknown, detail: "jane", hint: "kubectl auth can-i"},
		"free names": {check: "names-free", status: Passed},
		"own objects": {check: "names-free", cluster: all(deployment, config), status: Passed,
			detail: "2 of 2 objects exist already"},
		"an own object": {check: "names-free", cluster: all(deployment), status: Passed,
			detail: "1 of 2 objects exist already"},
		"the namespace of others": {check: "names-free", cluster: all(objectOf("v1", "Namespace", "sched")),
			change: adding(namespace), status: Passed},
		"an object of others": {check: "names-free", cluster: all(deployment, foreign), status: Failed,
			detail: "ConfigMap/sched/a-config already exists and is not managed by pmk-sched for a",
			hint:   "choose another --name, or delete these objects if they are not needed"},
		"objects of others": {check: "names-free", cluster: all(ofOther, foreign), status: Failed,
			detail: "Deployment/sched/a already exists and is not managed by pmk-sched for a\nConfigMap/sched/a-config already",
			hint:   "choose another --name"},
		"a scheduler made by hand": {check: "names-free", cluster: all(madeByHand, foreign), status: Failed,
			detail: "Deployment/sched/a already exists and is not managed by pmk-sched for a",
			hint:   "take it over with `pmk-sched migrate --live a -n sched --apply`, or choose another --name"},
		"no permission to read the objects": {check: "names-free", cluster: cluster{forbidden: true}, status: Unknown,
			detail: "jane", hint: "kubectl auth can-i"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.cluster)
			t.Cleanup(server.Close)
			o := checkOptions(true)
			if tc.change != nil {
				tc.change(&o)
			}
			got := outcomeOf(t, &rest.Config{Host: server.URL}, tc.check, o)
			if got.Status != tc.status || !strings.Contains(got.Detail, tc.detail) || (got.Detail == "") != (tc.detail == "") ||
				!strings.Contains(got.Hint, tc.hint) || (got.Hint == "") != (tc.hint == "") {
				t.Errorf("got %+v, want %s: %q, hint %q", got, tc.status, tc.detail, tc.hint)
			}
		})
	}
}
