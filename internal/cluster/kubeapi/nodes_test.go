package kubeapi

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestTolerates(t *testing.T) {
	taint := corev1.Taint{Key: "node-role.kubernetes.io/master", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	cases := map[string]struct {
		toleration corev1.Toleration
		want       bool
	}{
		"exists": {corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists,
			Effect: taint.Effect}, true},
		"exists, any effect": {corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists}, true},
		"exists, other effect": {corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoExecute}, false},
		"equal": {corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: "true"},
			true},
		"equal by default":        {corev1.Toleration{Key: taint.Key, Value: "true"}, true},
		"equal without a value":   {corev1.Toleration{Key: taint.Key}, false},
		"another key":             {corev1.Toleration{Key: "other", Operator: corev1.TolerationOpExists}, false},
		"everything":              {corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		"an empty key, no exists": {corev1.Toleration{Value: "true"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Tolerates([]corev1.Toleration{tc.toleration}, taint); got != tc.want {
				t.Errorf("tolerates: %t", got)
			}
		})
	}
	if Tolerates(nil, taint) {
		t.Error("no toleration tolerates")
	}
}

func TestNodeRejection(t *testing.T) {
	ready := corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	cases := map[string]struct {
		node corev1.Node
		want string
	}{
		"good":      {corev1.Node{Status: ready}, ""},
		"not ready": {corev1.Node{}, "is not ready"},
		"cordoned":  {corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}, Status: ready}, "is cordoned"},
		"tainted": {corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "a",
			Effect: corev1.TaintEffectNoSchedule}}}, Status: ready}, "has the taint a:NoSchedule"},
		"disliked": {corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "a",
			Effect: corev1.TaintEffectPreferNoSchedule}}}, Status: ready}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := NodeRejection(&tc.node, nil); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNodesOf(t *testing.T) {
	affinity := func(requirements ...corev1.NodeSelectorRequirement) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: requirements}},
			}}}
	}
	master := corev1.NodeSelectorRequirement{Key: "master", Operator: corev1.NodeSelectorOpExists}
	cases := map[string]struct {
		pod  corev1.PodSpec
		want string
	}{
		"any node": {corev1.PodSpec{}, ""},
		"a label":  {corev1.PodSpec{NodeSelector: map[string]string{"master": ""}}, "master="},
		"affinity": {corev1.PodSpec{Affinity: affinity(master)}, "master"},
		"a value": {corev1.PodSpec{Affinity: affinity(corev1.NodeSelectorRequirement{Key: "a",
			Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}})}, "a in (b)"},
		"both": {corev1.PodSpec{NodeSelector: map[string]string{"a": "b"}, Affinity: affinity(master)},
			"a=b,master"},
		"anti-affinity":    {corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}}, ""},
		"no term required": {corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := NodesOf(&tc.pod)
			if err != nil || got.String() != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestNodeAway(t *testing.T) {
	with := func(status corev1.ConditionStatus, cordoned bool) *corev1.Node {
		return &corev1.Node{
			Spec:   corev1.NodeSpec{Unschedulable: cordoned},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}},
		}
	}
	for name, tc := range map[string]struct {
		node *corev1.Node
		away bool
	}{
		"ready":       {with(corev1.ConditionTrue, false), false},
		"cordoned":    {with(corev1.ConditionTrue, true), true},
		"not ready":   {with(corev1.ConditionFalse, false), true},
		"unknown":     {with(corev1.ConditionUnknown, false), true},
		"never ready": {&corev1.Node{}, true},
	} {
		if got := NodeAway(tc.node); got != tc.away {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
