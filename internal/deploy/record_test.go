package deploy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// shapes are schedulers that use each part of a record.
func shapes(t *testing.T) map[string]func(*PlanInput) {
	t.Helper()
	yes := true
	authority := issuer(t).Cert
	named := func(name, url string) v1alpha1.Extender {
		return v1alpha1.Extender{Name: name, URLPrefix: url, FilterVerb: "filter", Ignorable: &yes}
	}
	client := named("mine", "https://mine.example.com")
	client.TLSConfig = &v1alpha1.TLSConfig{CAData: authority, CertData: []byte("CERT"), KeyData: []byte("KEY")}
	far := named("far", "")
	far.Deployed = &v1alpha1.DeployedExtender{Added: true, URLPrefix: "https://10.96.0.7", CAData: authority,
		ServerName: "far.kube-system.svc", ClientSecret: manifest.ExtenderClient("far")}
	near := named("near", "")
	near.Sidecar, near.Deployed = true, &v1alpha1.DeployedExtender{Image: "localhost/e:v1"}
	near.Policies = []v1alpha1.Policy{{Name: "loadaware", Weight: 2, Args: "{prometheus: {url: http://p}, n: 1000000}"}}
	return map[string]func(*PlanInput){
		"defaults":    func(*PlanInput) {},
		"node":        func(o *PlanInput) { o.Spec.Credentials = CredentialsNode },
		"node-inline": func(o *PlanInput) { o.Spec.Credentials = CredentialsNodeInline },
		"hostpath":    func(o *PlanInput) { o.Spec.Credentials = CredentialsHostPath },
		"serviceaccount": func(o *PlanInput) {
			o.Spec.Credentials, o.APIServer = CredentialsServiceAccount, "https://192.0.2.1:6443"
		},
		"any node": func(o *PlanInput) {
			o.Spec.Credentials, o.Spec.AnyNode, o.Spec.Replicas = CredentialsServiceAccount, true, 3
		},
		"node selector": func(o *PlanInput) { o.Spec.NodeSelector = map[string]string{"pool": "batch"} },
		"port, resources, flags": func(o *PlanInput) {
			o.Spec.Ports.Secure, o.Spec.Image.PullPolicy = 10333, "Always"
			o.Spec.Args = []string{"--feature-gates=PodOverhead=false"}
			o.Spec.Resources.Limits = v1alpha1.Quantities{corev1.ResourceMemory: resource.MustParse("1536Mi")}
		},
		"preset": func(o *PlanInput) { o.Spec.Configuration.Preset = "binpack" },
		"plugins": func(o *PlanInput) {
			o.Plugins = []profiles.Plugin{{Name: "MyPlugin", Points: []string{"filter"}}}
			o.Spec.RBAC.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"example.com"}, Resources: []string{"things"},
				Verbs: []string{"get"}}}
		},
		"extender": func(o *PlanInput) {
			o.Spec.Extenders = []v1alpha1.Extender{named("theirs", "http://theirs.example.com")}
		},
		"extender with a client certificate": func(o *PlanInput) { o.Spec.Extenders = []v1alpha1.Extender{client} },
		"extender of pmk-sched": func(o *PlanInput) {
			o.Spec.Extenders = []v1alpha1.Extender{far}
		},
		"sidecar": func(o *PlanInput) {
			o.Spec.Extenders = []v1alpha1.Extender{near}
		},
	}
}

// shaped returns the plan of a scheduler on a control-plane node.
func shaped(t *testing.T, release string, change func(*PlanInput)) *Plan {
	t.Helper()
	o := PlanInput{Name: "my-scheduler", Facts: Facts{Cluster: masterInfo(release), Node: nodeCredentials(),
		Image: "localhost/s:v1", Version: "v9"}}
	change(&o)
	plan, err := o.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestRecordOfARevisionGivesTheSameObjectsAndRecord(t *testing.T) {
	for name, change := range shapes(t) {
		t.Run(name, func(t *testing.T) {
			plan := shaped(t, "v1.24.3", change)
			if err := apply.CheckObjects(plan.Objects, plan.Namespace, plan.Name); err != nil {
				t.Errorf("its revision would be damaged: %v", err)
			}
			before := revisionOf(t, 1, plan)
			again, err := PlanOf(before)
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Render(); err != nil {
				t.Fatal(err)
			}
			if !SameObjects(plan.Objects, again.Objects) {
				t.Errorf("objects (-want +got):\n%s", cmp.Diff(plan.Objects, again.Objects))
			}
			if after := revisionOf(t, 1, again); string(after.Record) != string(before.Record) ||
				after.Description != before.Description {
				t.Errorf("record (-want +got):\n%s", cmp.Diff(string(before.Record), string(after.Record)))
			}
		})
	}
}

// rewired returns the plan for a revision's scheduler with other extenders.
func rewired(t *testing.T, r *apply.Revision, set []v1alpha1.Extender, drop ...string) (*Plan, error) {
	t.Helper()
	plan, err := PlanOf(r)
	if err != nil {
		t.Fatal(err)
	}
	return plan, plan.SetExtenders(set, drop...)
}

// The order in which a user deploys an extender and its scheduler does not matter.
func TestRewiredSchedulerIsTheOneThatIsDeployedWithTheExtender(t *testing.T) {
	all := shapes(t)
	for _, name := range []string{"extender of pmk-sched", "sidecar"} {
		want := shaped(t, "v1.24.3", all[name])
		plan, err := rewired(t, revisionOf(t, 4, shaped(t, "v1.24.3", all["defaults"])), want.Request.Spec.Extenders)
		if err != nil {
			t.Fatal(err)
		}
		if !SameObjects(want.Objects, plan.Objects) || plan.Replaces != 4 {
			t.Errorf("%s replaces %d (-want +got):\n%s", name, plan.Replaces, cmp.Diff(want.Objects, plan.Objects))
		}
		back, err := rewired(t, revisionOf(t, 5, plan), nil, want.Scheduler.Wirings[0].Extender.Name)
		if err != nil {
			t.Fatal(err)
		}
		if bare := shaped(t, "v1.24.3", all["defaults"]); !SameObjects(bare.Objects, back.Objects) {
			t.Errorf("%s was removed (-want +got):\n%s", name, cmp.Diff(bare.Objects, back.Objects))
		}
	}
}

// The request is planned again, so that also a legacy Policy gets the extender.
func TestASchedulerWithAPolicyIsRewired(t *testing.T) {
	far := shapes(t)["extender of pmk-sched"]
	policy := func(o *PlanInput) {
		o.Spec.Configuration.PolicyConfigMap, o.Spec.Credentials = true, CredentialsServiceAccount
	}
	want := shaped(t, "v1.21.14", func(o *PlanInput) { policy(o); far(o) })
	plan, err := rewired(t, revisionOf(t, 4, shaped(t, "v1.21.14", policy)), want.Request.Spec.Extenders)
	if err != nil {
		t.Fatal(err)
	}
	if !SameObjects(want.Objects, plan.Objects) ||
		!strings.Contains(string(plan.Scheduler.Configuration.Policy), "10.96.0.7") {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want.Objects, plan.Objects))
	}
}

func TestAnExtenderOfTheRequestIsNotReplacedByAnotherOne(t *testing.T) {
	all := shapes(t)
	plan := shaped(t, "v1.24.3", all["extender"])
	one := shaped(t, "v1.24.3", all["sidecar"]).Request.Spec.Extenders[0]
	one.Name = plan.Request.Spec.Extenders[0].Name
	_, err := rewired(t, revisionOf(t, 4, plan), []v1alpha1.Extender{one})
	if !problem.IsInvalid(err) || !strings.Contains(err.Error(), "calls another extender theirs") {
		t.Errorf("got %v", err)
	}
}

func TestDamagedRecordIsAnErrorWithoutItsContent(t *testing.T) {
	for name, text := range map[string]string{
		"does not record how it was deployed":   "",
		"unexpected end of JSON input":          `{"keys":{"scheduler":"U0VDUkVU"`,
		"expected a scheduler or an extender":   `{"keys":{"scheduler":"U0VDUkVU"}}`,
		"the scheduler has no configuration":    `{"scheduler":{"Name":"n"}}`,
		"cannot unmarshal number into Go value": `1`,
	} {
		r := revision(t, 7, "v1.24.3", nil)
		r.Record = []byte(text)
		_, err := PlanOf(r)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "SECRET") ||
			len(problem.Hints(err)) == 0 {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v", keys{Server: []byte("KEY")}, keys{Server: []byte("KEY")},
		keys{Server: []byte("KEY")}); strings.Contains(text, "KEY") || strings.Contains(text, "75") {
		t.Errorf("a key is printed: %s", text)
	}
}
