package replace

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// extender is called by a Policy.
func extender() profiles.Extender {
	no := false
	return profiles.Extender{Name: "gpu", URLPrefix: "http://10.0.0.1", FilterVerb: "filter", Ignorable: &no,
		HTTPTimeout: 9e9}
}

// plannerOf returns a planner, and the default scheduler of a node with those arguments.
func plannerOf(t *testing.T, args string, policy bool) (*planner, *scheduler) {
	t.Helper()
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-scheduler, namespace: kube-system}\nspec:\n  containers:\n" +
		"  - name: kube-scheduler\n    image: localhost/x:v1\n    command:\n    - kube-scheduler\n" + args
	parsed, err := staticpod.Parse("/m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	container, err := parsed.Container(schedulerContainer)
	if err != nil {
		t.Fatal(err)
	}
	found, err := staticpod.Words(container, schedulerContainer)
	if err != nil {
		t.Fatal(err)
	}
	request := &v1alpha1.CustomScheduler{}
	request.Spec.Configuration.PolicyConfigMap = policy
	return &planner{info: &inspect.Info{}, request: request},
		&scheduler{layout: inspect.Layout{Manifest: "/m.yaml"}, args: found, manifest: parsed, container: container}
}

func TestDefaultSchedulerOf122ReadsPolicy(t *testing.T) {
	p, s := plannerOf(t, "    - --v=2\n", true)
	rendered, err := profiles.RenderPolicy(profiles.Request{
		Release: versions.Release{Major: 1, Minor: 22, Patch: 2}, SchedulerName: corev1.DefaultSchedulerName,
		Kubeconfig: "/etc/kubernetes/scheduler.conf", Policy: true, Extenders: []profiles.Extender{extender()},
	})
	if err != nil {
		t.Fatal(err)
	}
	changed, err := withPolicyFlag(s, rendered)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := p.objects(rendered)
	if err != nil {
		t.Fatal(err)
	}
	name := manifest.PolicyConfigMap(corev1.DefaultSchedulerName, metav1.NamespaceSystem, nil, rendered.Policy).Name
	var got []string
	for _, o := range objects {
		got = append(got, o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName())
	}
	want := []string{"ConfigMap/kube-system/" + name, "Role/kube-system/default-scheduler-policy",
		"RoleBinding/kube-system/default-scheduler-policy"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if args := changed.Pod.Spec.Containers[0].Command; !slices.Contains(args, "--policy-configmap="+name) {
		t.Errorf("the manifest does not name the ConfigMap: %q", args)
	}
	if !strings.Contains(string(rendered.Policy), "urlPrefix: http://10.0.0.1\n") {
		t.Errorf("no extender in\n%s", rendered.Policy)
	}
}

func TestPlanRefusesManifestWithAnotherPolicy(t *testing.T) {
	for _, c := range []struct {
		args, want string
		policy     bool
	}{
		{args: "    - --v=2\n"},
		{args: "    - --v=2\n", policy: true},
		{args: "    - --policy-configmap=default-scheduler-policy-0123456789\n", policy: true},
		{args: "    - --policy-configmap=x\n",
			want: "the scheduler reads a Policy (--policy-configmap=x), which overrides a configuration"},
		{args: "    - --policy-config-file=/x\n", want: "the scheduler reads a Policy (--policy-config-file=/x)"},
		{args: "    - --use-legacy-policy-config=true\n", policy: true, want: "reads no Policy from a ConfigMap"},
		{args: "    - --policy-configmap-namespace=elsewhere\n", policy: true, want: "expected kube-system, got elsewhere"},
	} {
		p, s := plannerOf(t, c.args, c.policy)
		err := p.checkPolicyFlags(s)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", filepath.Base(c.args), err)
		}
	}
}
