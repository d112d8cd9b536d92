package ask

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/versions"
)

func admitting(t *testing.T) *classes {
	t.Helper()
	release, err := versions.Parse("v1.34.2")
	if err != nil {
		t.Fatal(err)
	}
	amount := resource.MustParse
	return &classes{
		release: release,
		priorities: map[string]*schedulingv1.PriorityClass{
			"urgent": {ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 1000},
		},
		runtimes: map[string]*nodev1.RuntimeClass{"sandbox": {
			ObjectMeta: metav1.ObjectMeta{Name: "sandbox"},
			Overhead:   &nodev1.Overhead{PodFixed: corev1.ResourceList{"cpu": amount("250m")}},
			Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"runtime": "sandbox"}},
		}},
		limits: []corev1.LimitRange{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "limited", Name: "defaults"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Default: corev1.ResourceList{"cpu": amount("1")},
				DefaultRequest: corev1.ResourceList{"cpu": amount("500m")}, Max: corev1.ResourceList{"cpu": amount("2")},
			}}},
		}},
	}
}

// notReady are the tolerations that pods have by default.
const notReady = `- {effect: NoExecute, key: node.kubernetes.io/not-ready, operator: Exists, tolerationSeconds: 300}
- {effect: NoExecute, key: node.kubernetes.io/unreachable, operator: Exists, tolerationSeconds: 300}
`

func TestPodsAreAdmittedAsByAnAPIServer(t *testing.T) {
	for name, tc := range map[string]struct{ namespace, spec, want, refused string }{
		"requests of limits": {
			spec: "containers: [{name: a, resources: {limits: {cpu: 1}}}]",
			want: "containers: [{name: a, resources: {limits: {cpu: '1'}, requests: {cpu: '1'}}}]\npriority: 0\n" +
				"preemptionPolicy: PreemptLowerPriority\ntolerations:\n" + notReady,
		},
		"priority": {
			spec: "{priorityClassName: urgent, tolerations: [{operator: Exists}], containers: [{name: a}]}",
			want: "{priorityClassName: urgent, priority: 1000, preemptionPolicy: PreemptLowerPriority, " +
				"tolerations: [{operator: Exists}], containers: [{name: a}]}",
		},
		"runtime class": {
			spec: "{runtimeClassName: sandbox, tolerations: [{operator: Exists}], containers: [{name: a}]}",
			want: "{runtimeClassName: sandbox, overhead: {cpu: 250m}, nodeSelector: {runtime: sandbox}, priority: 0, " +
				"preemptionPolicy: PreemptLowerPriority, tolerations: [{operator: Exists}], containers: [{name: a}]}",
		},
		"runtime class on other nodes": {
			spec:    "{runtimeClassName: sandbox, nodeSelector: {runtime: other}, containers: [{name: a}]}",
			refused: "its nodeSelector runtime=other conflicts with that of RuntimeClass sandbox",
		},
		"limit range": {
			namespace: "limited", spec: "{tolerations: [{operator: Exists}], containers: [{name: a}]}",
			want: "{priority: 0, preemptionPolicy: PreemptLowerPriority, tolerations: [{operator: Exists}], containers: " +
				"[{name: a, resources: {limits: {cpu: '1'}, requests: {cpu: 500m}}}]}",
		},
		"more than a limit range": {
			namespace: "limited", spec: "containers: [{name: a, resources: {limits: {cpu: 3}}}]",
			refused: "LimitRange defaults: the maximum cpu per container is 2",
		},
		"host ports": {
			spec: "{hostNetwork: true, tolerations: [{operator: Exists}], containers: [{name: a, ports: [{containerPort: 80}]}]}",
			want: "{hostNetwork: true, priority: 0, preemptionPolicy: PreemptLowerPriority, tolerations: [{operator: Exists}], " +
				"containers: [{name: a, ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]}]}",
		},
		"labels of spread constraints": {
			spec: "{tolerations: [{operator: Exists}], containers: [{name: a}], topologySpreadConstraints: [{maxSkew: 1, " +
				"topologyKey: zone, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [app], labelSelector: {}}]}",
			want: "{priority: 0, preemptionPolicy: PreemptLowerPriority, tolerations: [{operator: Exists}], containers: " +
				"[{name: a}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, " +
				"matchLabelKeys: [app], labelSelector: {matchExpressions: [{key: app, operator: In, values: [web]}]}}]}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := object{"metadata": object{"namespace": tc.namespace, "name": "web", "labels": object{"app": "web"}},
				"spec": parsed(t, tc.spec)}
			got, refused, err := admitting(t).admit(pod)
			if err != nil || refused != tc.refused {
				t.Fatalf("refused %q, %v", refused, err)
			}
			if tc.refused != "" {
				return
			}
			text, err := yaml.Marshal(got["spec"])
			if err != nil {
				t.Fatal(err)
			}
			want, err := yaml.Marshal(parsed(t, tc.want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(without(t, want), without(t, text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func parsed(t *testing.T, text string) object {
	t.Helper()
	var o object
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// without returns a specification without empty fields.
func without(t *testing.T, text []byte) corev1.PodSpec {
	t.Helper()
	var spec corev1.PodSpec
	if err := yaml.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}
