package replace

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster"
	"github.com/pmk-sched/pmk-sched/internal/manifest"
	"github.com/pmk-sched/pmk-sched/internal/staticpod"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/versions"
)

// extender is called by a Policy.
func extender() profiles.Extender {
	no := false
	return profiles.Extender{Name: "gpu", URLPrefix: "http://10.0.0.1", FilterVerb: "filter", Ignorable: &no, HTTPTimeout: 9e9}
}

// replacing is a plan for the default scheduler of a node of that release.
func replacingWith(t *testing.T, words string, policy bool) *planner {
	t.Helper()
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: kube-scheduler, namespace: kube-system}\nspec:\n  containers:\n  - name: kube-scheduler\n    image: localhost/x:v1\n    command:\n    - kube-scheduler\n" + words
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
	return &planner{
		info: &cluster.Info{}, o: Options{PolicyConfigMap: policy, Extenders: []profiles.Extender{extender()}},
		r: &Plan{Layout: cluster.Layout{Manifest: "/m.yaml"}, words: found}, manifest: parsed, container: container,
	}
}

func TestTheDefaultSchedulerOf122ReadsAPolicy(t *testing.T) {
	p := replacingWith(t, "    - --v=2\n", true)
	var err error
	p.rendered, err = p.render(profiles.Request{
		Release: versions.Release{Major: 1, Minor: 22, Patch: 2}, SchedulerName: corev1.DefaultSchedulerName, Kubeconfig: "/etc/kubernetes/scheduler.conf",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.namePolicy(); err != nil {
		t.Fatal(err)
	}
	if err := p.policyObjects(); err != nil {
		t.Fatal(err)
	}
	name := manifest.PolicyConfigMap(corev1.DefaultSchedulerName, metav1.NamespaceSystem, nil, p.rendered.Policy).Name
	var got []string
	for _, o := range p.r.Rules {
		got = append(got, o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName())
	}
	want := []string{"ConfigMap/kube-system/" + name, "Role/kube-system/default-scheduler-policy", "RoleBinding/kube-system/default-scheduler-policy"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if words := p.manifest.Pod.Spec.Containers[0].Command; !slices.Contains(words, "--policy-configmap="+name) {
		t.Errorf("the manifest does not name it: %q", words)
	}
	if !strings.Contains(string(p.rendered.Policy), "urlPrefix: http://10.0.0.1\n") {
		t.Errorf("no extender in\n%s", p.rendered.Policy)
	}
}

func TestAPolicyThatIsThereIsNotPassedOver(t *testing.T) {
	for _, c := range []struct {
		words, want string
		policy      bool
	}{
		{words: "    - --v=2\n"},
		{words: "    - --v=2\n", policy: true},
		{words: "    - --policy-configmap=default-scheduler-policy-0123456789\n", policy: true},
		{words: "    - --policy-configmap=x\n", want: "the scheduler reads a Policy (--policy-configmap=x), which goes before a configuration"},
		{words: "    - --policy-config-file=/x\n", want: "the scheduler reads a Policy (--policy-config-file=/x)"},
		{words: "    - --use-legacy-policy-config=true\n", policy: true, want: "reads no Policy from a ConfigMap"},
		{words: "    - --policy-configmap-namespace=elsewhere\n", policy: true, want: "the scheduler looks for a Policy in elsewhere"},
	} {
		err := replacingWith(t, c.words, c.policy).judgePolicyFlags()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", filepath.Base(c.words), err)
		}
	}
}
