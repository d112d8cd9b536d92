package controller

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/versions"
)

func objectsFor(t *testing.T, o ManifestOptions) (names []string, byName map[string]*unstructured.Unstructured) {
	t.Helper()
	release, err := versions.Parse("v1.29.3")
	if err != nil {
		t.Fatal(err)
	}
	o.Release = release
	objects, err := Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	byName = map[string]*unstructured.Unstructured{}
	for _, object := range objects[1:] { // the first is the CustomResourceDefinition
		name := strings.TrimSuffix(object.GetKind()+" "+object.GetNamespace(), " ")
		names = append(names, name)
		byName[name] = object
	}
	slices.Sort(names)
	return names, byName
}

func convert[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	made := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, made); err != nil {
		t.Fatal(err)
	}
	return made
}

// Two roles of one name and namespace would replace each other.
func TestEachNamespaceHasOneRoleWithItsRules(t *testing.T) {
	system, others := systemRules(), defaultRules()
	for namespace, byNamespace := range map[string]map[string][]rbacv1.PolicyRule{
		DefaultNamespace: {DefaultNamespace: namespaceRules(), metav1.NamespaceSystem: system,
			metav1.NamespaceDefault: others},
		"team": {"team": namespaceRules(), metav1.NamespaceSystem: system, metav1.NamespaceDefault: others},
		metav1.NamespaceSystem: {metav1.NamespaceSystem: append(namespaceRules(), system...),
			metav1.NamespaceDefault: others},
		metav1.NamespaceDefault: {metav1.NamespaceSystem: system,
			metav1.NamespaceDefault: append(namespaceRules(), others...)},
	} {
		names, objects := objectsFor(t, ManifestOptions{Namespace: namespace, Image: "i:v1", Replicas: 2})
		want := []string{"ClusterRole", "ClusterRoleBinding", "Deployment " + namespace, "ServiceAccount " + namespace}
		if namespace == DefaultNamespace {
			want = append(want, "Namespace")
		}
		for of := range byNamespace {
			want = append(want, "Role "+of, "RoleBinding "+of)
		}
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", namespace, names, want)
		}
		for of, rules := range byNamespace {
			got, _ := json.Marshal(convert[rbacv1.Role](t, objects["Role "+of]).Rules)
			if want, _ := json.Marshal(rules); string(got) != string(want) {
				t.Errorf("%s: rules in %s:\ngot  %s\nwant %s", namespace, of, got, want)
			}
			binding := convert[rbacv1.RoleBinding](t, objects["RoleBinding "+of])
			subject := binding.Subjects[0]
			if binding.RoleRef.Kind != "Role" || len(binding.Subjects) != 1 || subject.Namespace != namespace {
				t.Errorf("%s: binding in %s: %+v", namespace, of, binding)
			}
		}
		if ref := convert[rbacv1.ClusterRoleBinding](t, objects["ClusterRoleBinding"]).RoleRef; ref.Kind != "ClusterRole" {
			t.Errorf("%s: the ClusterRoleBinding is of %+v", namespace, ref)
		}
	}
}

// The controller may change only its own webhook configurations, and only if they are installed.
func TestWebhooksAreInstalledOnRequest(t *testing.T) {
	without, _ := objectsFor(t, ManifestOptions{Namespace: "ns", Image: "i:v1", Replicas: 1})
	release, err := versions.Parse("v1.20.15")
	if err != nil {
		t.Fatal(err)
	}
	all, err := Objects(ManifestOptions{Namespace: "ns", Image: "i:v1", Replicas: 1, Release: release,
		Admission: []string{"arbiter"}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range all[1+len(without):] {
		names = append(names, object.GetAPIVersion()+" "+object.GetKind()+" "+object.GetName())
		if object.GetKind() == "ClusterRole" && object.GetName() == admissionName {
			for _, rule := range convert[rbacv1.ClusterRole](t, object).Rules {
				if slices.Contains(rule.Verbs, "patch") && !slices.Equal(rule.ResourceNames, []string{"pmk-sched-arbiter"}) {
					t.Errorf("rule %+v", rule)
				}
			}
		}
	}
	want := []string{
		"rbac.authorization.k8s.io/v1 ClusterRole pmk-sched-controller-admission",
		"rbac.authorization.k8s.io/v1 ClusterRoleBinding pmk-sched-controller-admission",
		"v1 ServiceAccount pmk-sched-admission",
		"rbac.authorization.k8s.io/v1 ClusterRole pmk-sched-admission",
		"rbac.authorization.k8s.io/v1 ClusterRoleBinding pmk-sched-admission",
		"rbac.authorization.k8s.io/v1 Role pmk-sched-admission",
		"rbac.authorization.k8s.io/v1 RoleBinding pmk-sched-admission",
		"apps/v1 Deployment pmk-sched-admission", "policy/v1beta1 PodDisruptionBudget pmk-sched-admission",
		"v1 Service pmk-sched-admission", "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration pmk-sched-arbiter",
	}
	if !slices.Equal(names, want) {
		t.Errorf("got %q\nwant %q", names, want)
	}
	with, none := arguments(ManifestOptions{Admission: []string{"arbiter"}}), arguments(ManifestOptions{})
	if !slices.Contains(with, "--admission=arbiter") || len(with) != len(none)+1 {
		t.Errorf("arguments %q, without webhooks %q", with, none)
	}
}

func TestDeploymentOfTheController(t *testing.T) {
	for namespace, class := range map[string]string{
		DefaultNamespace: "", metav1.NamespaceSystem: "system-cluster-critical",
	} {
		_, objects := objectsFor(t, ManifestOptions{Namespace: namespace, Image: "i:v1", Replicas: 2,
			Bounds: session.Bounds{Key: "KEY", Repositories: []string{"r.example.com/a", "r.example.com/b"}}})
		d := convert[appsv1.Deployment](t, objects["Deployment "+namespace])
		pod := d.Spec.Template.Spec
		if *d.Spec.Replicas != 2 || pod.PriorityClassName != class || pod.ServiceAccountName != Name ||
			pod.SchedulerName != "default-scheduler" || pod.Containers[0].Image != "i:v1" {
			t.Errorf("%s: got %+v", namespace, d.Spec)
		}
		args := strings.Join(pod.Containers[0].Args, " ")
		for _, want := range []string{"controller run --namespace=" + namespace + " --node-root=none",
			"--require-signature=KEY --allow-repository=r.example.com/a --allow-repository=r.example.com/b"} {
			if !strings.Contains(args, want) {
				t.Errorf("%s: %s is not in %s", namespace, want, args)
			}
		}
	}
	if args := strings.Join(arguments(ManifestOptions{}), " "); strings.Contains(args, "--require-signature") ||
		strings.Contains(args, "--allow-repository") {
		t.Errorf("without bounds: %s", args)
	}
	_, objects := objectsFor(t, ManifestOptions{Namespace: DefaultNamespace})
	for _, mode := range []string{"enforce", "audit", "warn"} {
		if level := objects["Namespace"].GetLabels()["pod-security.kubernetes.io/"+mode]; level != "restricted" {
			t.Errorf("the namespace has the level %q to %s", level, mode)
		}
	}
}

// An API server without CEL ignores the rules: there the schema refuses the files.
func TestDefinitionHasRulesThatTheAPIServerEvaluates(t *testing.T) {
	for name, evaluates := range map[string]bool{"v1.24.3": false, "v1.25.0": true} {
		release, err := versions.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		definition, err := Definition(release)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(definition)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(text), "x-kubernetes-validations"); got != evaluates {
			t.Errorf("%s: the definition has rules: %t", name, got)
		}
		served, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		file, _, err := unstructured.NestedMap(served[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec",
			"properties", "configuration", "properties", "file")
		if err != nil {
			t.Fatal(err)
		}
		if refused := file["maxLength"] == int64(0); refused == evaluates {
			t.Errorf("%s: the schema of a file is %v", name, file)
		}
	}
}
