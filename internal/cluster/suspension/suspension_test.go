package suspension_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/cluster/suspension"
)

var registrations = map[string]string{
	"policy":   "kind: MutatingAdmissionPolicy\nspec: {matchConstraints: {objectSelector: {matchLabels: {a: b}}}}",
	"webhooks": "kind: MutatingWebhookConfiguration\nwebhooks: [{name: x, objectSelector: {}}, {name: y}]",
	"webhook with a selector": "kind: MutatingWebhookConfiguration\nmetadata: {annotations: {a: b}}\nwebhooks: [{name: x, " +
		"objectSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}]",
}

const suspended = `{key: pmk-sched.io/suspended, operator: Exists}`

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestSuspendedRegistrationsMatchNothingUntilTheyAreResumed(t *testing.T) {
	now := time.Date(2026, 11, 29, 1, 2, 3, 0, time.UTC)
	wants := map[string]string{
		"policy": "kind: MutatingAdmissionPolicy\nmetadata: {annotations: {pmk-sched.io/suspended: '2026-11-29T01:02:03Z'}}\n" +
			"spec: {matchConstraints: {objectSelector: {matchLabels: {a: b}, matchExpressions: [" + suspended + "]}}}",
		"webhooks": "kind: MutatingWebhookConfiguration\nmetadata: {annotations: {pmk-sched.io/suspended: " +
			"'2026-11-29T01:02:03Z'}}\nwebhooks: [{name: x, objectSelector: {matchExpressions: [" + suspended + "]}}, " +
			"{name: y, objectSelector: {matchExpressions: [" + suspended + "]}}]",
		"webhook with a selector": "kind: MutatingWebhookConfiguration\nmetadata: {annotations: {a: b, " +
			"pmk-sched.io/suspended: '2026-11-29T01:02:03Z'}}\nwebhooks: [{name: x, objectSelector: {matchExpressions: " +
			"[{key: a, operator: In, values: [b]}, " + suspended + "]}}]",
	}
	for name, text := range registrations {
		o := read(t, text)
		for range 2 {
			if err := suspension.Suspend(o, now); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(read(t, wants[name]).Object, o.Object); diff != "" {
				t.Errorf("%s is suspended (-want +got):\n%s", name, diff)
			}
		}
		if since, is := suspension.Since(o); !is || !since.Equal(now) {
			t.Errorf("%s: suspended since %s, %t", name, since, is)
		}
		kept := read(t, text)
		if err := suspension.Keep(kept, o); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(o.Object, kept.Object); diff != "" {
			t.Errorf("%s does not stay suspended (-want +got):\n%s", name, diff)
		}
		if err := suspension.Resume(o); err != nil {
			t.Fatal(err)
		}
		if _, is := suspension.Since(o); is {
			t.Errorf("%s is still suspended", name)
		}
		before := read(t, text)
		if err := suspension.Resume(before); err != nil { // empty selectors, as the API server writes them
			t.Fatal(err)
		}
		if err := suspension.Keep(before, o); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(selectors(before), selectors(o)); diff != "" {
			t.Errorf("%s is not resumed (-want +got):\n%s", name, diff)
		}
	}
}

// selectors returns a registration without empty selectors and annotations, which have no effect.
func selectors(o *unstructured.Unstructured) map[string]any {
	copied := o.DeepCopy().Object
	hooks, _ := copied["webhooks"].([]any)
	for _, hook := range hooks {
		fields := hook.(map[string]any)
		if s, _ := fields["objectSelector"].(map[string]any); len(s) == 0 {
			delete(fields, "objectSelector")
		}
	}
	unstructured.RemoveNestedField(copied, "metadata")
	return copied
}

func TestRegistrationsThatCannotBeReadAreErrors(t *testing.T) {
	for _, text := range []string{"kind: MutatingWebhookConfiguration\nwebhooks: 3",
		"kind: MutatingWebhookConfiguration\nwebhooks: [3]",
		"kind: MutatingAdmissionPolicy\nspec: {matchConstraints: {objectSelector: 3}}"} {
		if err := suspension.Suspend(read(t, text), time.Now()); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}
