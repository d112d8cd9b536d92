package admission

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// find returns the object of a type.
func find[T any](t *testing.T, o ObjectOptions) T {
	t.Helper()
	for _, object := range Objects(o) {
		if found, ok := object.(T); ok {
			return found
		}
	}
	t.Fatal("there is no such object")
	panic("unreachable")
}

// A failure of the arbiter never fails a request, and system pods never depend on it.
func TestTheArbiterFailsOpen(t *testing.T) {
	for namespace, excludes := range map[string][]string{
		"ns": {"kube-system", "ns"}, metav1.NamespaceSystem: {"kube-system"},
	} {
		c := find[*admissionregistrationv1.ValidatingWebhookConfiguration](t,
			ObjectOptions{Namespace: namespace, Parts: []string{Arbiter}})
		if c.Name != ArbiterName || c.Labels["app.kubernetes.io/managed-by"] != "pmk-sched" || len(c.Webhooks) != 1 {
			t.Fatalf("%+v", c)
		}
		w := c.Webhooks[0]
		if *w.FailurePolicy != admissionregistrationv1.Ignore || *w.TimeoutSeconds != 1 || w.ObjectSelector != nil ||
			*w.MatchPolicy != admissionregistrationv1.Equivalent || w.ClientConfig.CABundle != nil ||
			*w.SideEffects != admissionregistrationv1.SideEffectClassNoneOnDryRun {
			t.Errorf("%+v", w)
		}
		want := &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: "pmk-sched-admission"}
		if diff := cmp.Diff(want, w.ClientConfig.Service); diff != "" {
			t.Error(diff)
		}
		rule := w.Rules[0]
		if len(w.Rules) != 1 || !slices.Equal(rule.Resources, []string{"pods/binding", "bindings"}) ||
			!slices.Equal(rule.Operations, []admissionregistrationv1.OperationType{"CREATE"}) ||
			*rule.Scope != admissionregistrationv1.NamespacedScope {
			t.Errorf("%+v", w.Rules)
		}
		selector, err := metav1.LabelSelectorAsSelector(w.NamespaceSelector)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append(excludes, "default") {
			selected := selector.Matches(labels.Set{corev1.LabelMetadataName: name})
			if selected != (name == "default") {
				t.Errorf("%s: selects %s: %t", namespace, name, selected)
			}
		}
	}
}

func TestTheReplicasOfTheWebhooks(t *testing.T) {
	for namespace, class := range map[string]string{"ns": "", metav1.NamespaceSystem: "system-cluster-critical"} {
		d := find[*appsv1.Deployment](t, ObjectOptions{Namespace: namespace, Image: "i:v1", Program: "/pmk-sched",
			Parts: []string{Arbiter}})
		pod := d.Spec.Template.Spec
		c := pod.Containers[0]
		if *d.Spec.Replicas != 2 || pod.PriorityClassName != class || pod.SchedulerName != "default-scheduler" ||
			pod.ServiceAccountName != Name || c.Image != "i:v1" || c.Command[0] != "/pmk-sched" ||
			!slices.Contains(c.Args, "--namespace="+namespace) || !slices.Contains(c.Args, "--pod-ip=$(POD_IP)") ||
			!*c.SecurityContext.ReadOnlyRootFilesystem || !*pod.SecurityContext.RunAsNonRoot {
			t.Errorf("%s: %+v", namespace, pod)
		}
		service := find[*corev1.Service](t, ObjectOptions{Namespace: namespace, Parts: []string{Arbiter}})
		if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels)) ||
			service.Spec.Ports[0].Port != 443 || service.Spec.Ports[0].TargetPort.StrVal != c.Ports[0].Name {
			t.Errorf("%s: %+v", namespace, service.Spec)
		}
	}
}

// A replica writes nothing but its lease: no Secret, since revisions are Secrets.
func TestTheWebhooksMayWriteLeasesOnly(t *testing.T) {
	for _, rules := range Permissions() {
		for _, rule := range rules {
			for _, verb := range rule.Verbs {
				if !slices.Contains([]string{"get", "list", "watch"}, verb) && !slices.Equal(rule.Resources, []string{"leases"}) {
					t.Errorf("%s of %s", verb, rule.Resources)
				}
				if slices.Contains(rule.Resources, "secrets") && !slices.Equal(rule.ResourceNames,
					[]string{"pmk-sched-admission-ca"}) {
					t.Errorf("%s of Secrets %s", verb, rule.ResourceNames)
				}
			}
		}
	}
}
