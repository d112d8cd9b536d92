package deploy_test

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/profiles"
)

const ownProfiles = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: custom
  percentageOfNodesToScore: 50
  plugins:
    # the first
    score: {enabled: [{name: NodeResourcesFit, weight: 2}]}
    preScore:
      disabled:
      - name: "*"
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: "{{cpu}}", weight: 1}]}
`

const twoProfiles = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: custom
- schedulerName: other
  plugins: {score: {disabled: [{name: NodeResourcesFit}]}}
`

const delayedCaches = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
delayCacheUntilActive: true
`

func chartInput(change func(*deploy.PlanInput)) deploy.PlanInput {
	o := deploy.PlanInput{Name: "custom",
		Facts: deploy.Facts{Image: "localhost/custom:v1", Branch: "v1.36.3", Version: "v0.1.0"}}
	o.Spec.Credentials = deploy.CredentialsServiceAccount
	change(&o)
	return o
}

func sidecar() v1alpha1.Extender {
	return v1alpha1.Extender{
		Name: "near", PrioritizeVerb: "prioritize", Ignorable: new(bool), Sidecar: true,
		Policies: []v1alpha1.Policy{{Name: "timestamp", Args: "note: '{{braces}}'"}},
		Deployed: &v1alpha1.DeployedExtender{Image: "localhost/extender:v1",
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"patch"}}}},
	}
}

func TestChartTemplatesTheRenderedObjects(t *testing.T) {
	own := func(text string) func(*deploy.PlanInput) {
		return func(o *deploy.PlanInput) {
			o.Spec.Configuration = v1alpha1.Configuration{File: "f.yaml", Inline: v1alpha1.Document(text)}
		}
	}
	for name, change := range map[string]func(*deploy.PlanInput){
		"plain":          func(*deploy.PlanInput) {},
		"preset":         func(o *deploy.PlanInput) { o.Spec.Configuration.Preset = "binpack" },
		"own":            own(ownProfiles),
		"delayed caches": own(delayedCaches),
		"two profiles":   own(twoProfiles),
		"old release":    func(o *deploy.PlanInput) { o.Branch = "v1.21.3" },
		"policy":         func(o *deploy.PlanInput) { o.Branch, o.Spec.Configuration.PolicyConfigMap = "v1.21.3", true },
		"replicas":       func(o *deploy.PlanInput) { o.Spec.Replicas = 3 },
		"any node":       func(o *deploy.PlanInput) { o.Spec.AnyNode = true },
		"nodes":          func(o *deploy.PlanInput) { o.Spec.NodeSelector = map[string]string{"pool": "system", "fast": ""} },
		"API server":     func(o *deploy.PlanInput) { o.APIServer = "https://api.example.com:6443" },
		"namespace":      func(o *deploy.PlanInput) { o.Namespace = "custom" },
		"architectures":  func(o *deploy.PlanInput) { o.Architectures, o.Spec.AnyNode = []string{"amd64", "arm64"}, true },
		"architecture of nodes": func(o *deploy.PlanInput) {
			o.Architectures, o.Spec.NodeSelector = []string{"arm64"}, map[string]string{"pool": "system"}
		},
		"closed kube-system": func(o *deploy.PlanInput) {
			o.Spec.RBAC.AuthenticationReader, o.Namespace = new(bool), "sched"
		},
		"tolerations": func(o *deploy.PlanInput) {
			o.Spec.Tolerations = []v1alpha1.Toleration{{Key: "pool", Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
		},
		"priority class":    func(o *deploy.PlanInput) { o.Spec.PriorityClassName = "infra" },
		"no priority class": func(o *deploy.PlanInput) { o.Spec.PriorityClassName = v1alpha1.NoPriorityClass },
		"pull policy":       func(o *deploy.PlanInput) { o.Spec.Image.PullPolicy = "Always" },
		"sidecar":           func(o *deploy.PlanInput) { o.Spec.Extenders = []v1alpha1.Extender{sidecar()} },
		"plugins": func(o *deploy.PlanInput) {
			o.Plugins = []profiles.Plugin{{Name: "LoadAware", Points: []string{"filter", "score"}, Weight: 2,
				Args: []byte("{address: 'http://custom:9090'}")}}
			o.Spec.RBAC.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"},
				Verbs: []string{"get"}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := chartInput(change)
			files, warnings := chart(t, o)
			if len(warnings) > 0 {
				t.Errorf("warnings: %v", warnings)
			}
			namespace := cmp.Or(o.Namespace, "kube-system")
			if diff := gocmp.Diff(rendered(t, o), template(t, files, namespace, nil)); diff != "" {
				t.Errorf("helm template differs from render (-render +helm):\n%s\n%s", diff, files["values.yaml"])
			}
			// Other values have the same effect as a plan with them.
			o.Name, o.Image, o.Spec.Replicas = "renamed", "localhost/renamed:v2", 2
			inline := &o.Spec.Configuration.Inline
			*inline = v1alpha1.Document(strings.ReplaceAll(string(*inline), "schedulerName: custom", "schedulerName: renamed"))
			got := template(t, files, namespace,
				map[string]any{"name": "renamed", "image": "localhost/renamed:v2", "replicas": 2})
			if diff := gocmp.Diff(rendered(t, o), got); diff != "" {
				t.Errorf("with other values (-render +helm):\n%s", diff)
			}
		})
	}
}

func TestChartHoldsNoNodeCredentials(t *testing.T) {
	o := chartInput(func(o *deploy.PlanInput) { o.Spec.Credentials = deploy.CredentialsNode })
	o.Node = &inspect.NodeCredentials{
		Path: "/etc/kubernetes/scheduler.conf", Server: "https://localhost:443", User: "system:kube-scheduler",
		Expires: time.Now().Add(time.Hour), CA: []byte("CA\n"), Cert: []byte("CERT\n"), Key: []byte("KEY\n"),
	}
	plan, err := o.Plan()
	if err != nil {
		t.Fatal(err)
	}
	files, warnings, err := deploy.Chart(plan, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "ServiceAccount credentials instead of node") {
		t.Errorf("warnings: %v", warnings)
	}
	withAccount := o
	withAccount.Spec.Credentials = deploy.CredentialsServiceAccount
	if diff := gocmp.Diff(rendered(t, withAccount), template(t, files, "kube-system", nil)); diff != "" {
		t.Errorf("default values (-render +helm):\n%s", diff)
	}
	// With the Secret that deploy creates and the node's API server, all other objects are equal to
	// the deployed objects.
	var secret string
	var want []map[string]any
	for _, object := range objects(t, render(t, plan)) {
		u := unstructured.Unstructured{Object: object}
		if u.GetKind() == "Secret" {
			secret = u.GetName()
		} else {
			want = append(want, object)
		}
	}
	got := template(t, files, "kube-system", map[string]any{
		"credentials": map[string]any{"secret": secret}, "apiServer": plan.Scheduler.Credentials.Server, "hostNetwork": true,
	})
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("with a Secret (-render +helm):\n%s", diff)
	}
}

func chart(t *testing.T, o deploy.PlanInput) (files map[string][]byte, warnings []string) {
	t.Helper()
	plan, err := o.Plan()
	if err != nil {
		t.Fatal(err)
	}
	files, warnings, err = deploy.Chart(plan, false)
	if err != nil {
		t.Fatal(err)
	}
	return files, warnings
}

// rendered is `pmk-sched render`.
func rendered(t *testing.T, o deploy.PlanInput) []map[string]any {
	t.Helper()
	plan, err := o.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, render(t, plan))
}

func render(t *testing.T, plan *deploy.Plan) string {
	t.Helper()
	text, err := deploy.Render(plan, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// template is `helm template`.
func template(t *testing.T, files map[string][]byte, namespace string, values map[string]any) []map[string]any {
	t.Helper()
	rendered, err := templateFor(t, files, namespace, values, nil)
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, join(rendered))
}

// join returns the documents of a rendered chart, without its tests.
func join(rendered map[string]string) string {
	var text strings.Builder
	for name, document := range rendered {
		if strings.HasSuffix(name, ".yaml") && !strings.Contains(name, "/tests/") {
			text.WriteString("---\n" + document + "\n")
		}
	}
	return text.String()
}

// templateFor renders a chart for an API server: Helm's default if server is nil.
func templateFor(
	t *testing.T, files map[string][]byte, namespace string, values map[string]any, server *chartutil.KubeVersion,
) (map[string]string, error) {
	t.Helper()
	var buffered []*loader.BufferedFile
	for name, data := range files {
		buffered = append(buffered, &loader.BufferedFile{Name: name, Data: data})
	}
	chart, err := loader.LoadFiles(buffered)
	if err != nil {
		t.Fatal(err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	if server != nil {
		capabilities.KubeVersion = *server
	}
	given, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "r", Namespace: namespace},
		capabilities)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Render(chart, given)
}

// objects reads documents and sorts them.
func objects(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, document := range bytes.Split([]byte("\n"+text), []byte("\n---\n")) {
		o := map[string]any{}
		if err := yaml.Unmarshal(document, &o); err != nil {
			t.Fatalf("%s\n%v", document, err)
		}
		if len(o) == 0 {
			continue
		}
		all = append(all, o)
	}
	return sorted(all)
}

// sorted sorts objects by kind and name.
func sorted(all []map[string]any) []map[string]any {
	key := func(o map[string]any) string {
		u := unstructured.Unstructured{Object: o}
		return u.GetKind() + "/" + u.GetName()
	}
	slices.SortFunc(all, func(a, b map[string]any) int { return cmp.Compare(key(a), key(b)) })
	return all
}
