package elasticquota

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/scheduler"
	"github.com/pmk-sched/pmk-sched/scheduler/plugintest"
)

func elasticQuota(namespace, name string, spec map[string]interface{}) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]interface{}{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota",
		"metadata": map[string]interface{}{"namespace": namespace, "name": name}, "spec": spec,
	}}
}

func TestArgumentsThatAreWrongAreRefused(t *testing.T) {
	cases := map[string]struct{ args, want string }{
		"an unknown field": {`{quota: []}`, `unknown field "quota"`},
		"no name": {`{quotas: [{namespaces: [a], min: {cpu: 1}}]}`,
			"quotas[0]: name and namespaces are required"},
		"no namespaces": {`{quotas: [{name: a, min: {cpu: 1}}]}`, "quotas[0]: name and namespaces are required"},
		"a name twice": {
			`{quotas: [{name: a, namespaces: [a], min: {cpu: 1}}, {name: a, namespaces: [b], min: {cpu: 1}}]}`,
			`quotas[1].name: "a" is used twice`},
		"a namespace twice": {
			`{quotas: [{name: a, namespaces: [x], min: {cpu: 1}}, {name: b, namespaces: [x], min: {cpu: 1}}]}`,
			`quotas[1].namespaces: "x" has two quotas`},
		"neither min nor max": {`{quotas: [{name: a, namespaces: [a]}]}`,
			"quotas[0].min: one of min and max is required"},
		"min above max": {`{quotas: [{name: a, namespaces: [a], min: {cpu: 2}, max: {cpu: 1500m}}]}`,
			"quotas[0].min: 2 of cpu is more than max, 1500m"},
		"a negative amount": {`{quotas: [{name: a, namespaces: [a], min: {cpu: "-1"}}]}`,
			"quotas[0].min: cpu is less than 0"},
		"no quantity":               {`{quotas: [{name: a, namespaces: [a], min: {cpu: many}}]}`, "quantities must match"},
		"an unknown elasticQuotas":  {`{elasticQuotas: Always}`, `elasticQuotas: "Always" is neither Auto nor Ignore`},
		"an unknown preemption":     {`{preemption: Sometimes}`, `preemption: "Sometimes" is neither Evict nor Never`},
		"a label that is not a key": {`{preemptibleLabel: "a b"}`, `preemptibleLabel: "a b" is not a label key`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Rules(scheduler.NewArguments([]byte(tc.args)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if _, err := New(context.Background(), scheduler.NewArguments([]byte(tc.args)), &plugintest.Handle{}); err == nil {
				t.Error("New accepts them")
			}
		})
	}
}

func TestRulesAreThoseThatTheArgumentsNeed(t *testing.T) {
	cases := map[string][]string{
		``:                        {"pods/eviction", "pods/status", "elasticquotas"},
		`{elasticQuotas: Ignore}`: {"pods/eviction"},
		`{preemption: Never}`:     {"pods/status", "elasticquotas"},
		`{elasticQuotas: Ignore, preemption: "Never"}`: nil,
	}
	for args, want := range cases {
		rules, err := Rules(scheduler.NewArguments([]byte(args)))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, rule := range rules {
			got = append(got, rule.Resources...)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}

func TestPodsOfATeamAreSignedAlike(t *testing.T) {
	w := newWorld(t, twoTeams, 1)
	first, status := w.plugin.Sign(context.Background(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x", Labels: map[string]string{"app": "x"}}})
	if list, ok := first.([]string); !ok || status != nil || strings.Join(list, ",") != "a," {
		t.Errorf("got %v, %v", first, status)
	}
}
