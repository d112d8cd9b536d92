package ask

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// staticPod returns the mirror pod of a default scheduler with flags.
func staticPod(node string, flags ...string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler-" + node,
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "kube-scheduler", Command: append([]string{"kube-scheduler", "--leader-elect=true"}, flags...),
		}}},
	}
}

func TestDefaultSchedulerIsAskedIfItsConfigurationIsKnown(t *testing.T) {
	replaced, mounted := staticPod("a"), staticPod("a", "--config", "/in/pod/s.yaml")
	replaced.Annotations[ownership.AnnotationReplacement] = "1"
	mounted.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/on/node"}}}}
	mounted.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/in/pod"}}
	other := staticPod("a", "--leader-elect-resource-name=other", "--config=/etc/x")
	for name, tc := range map[string]struct {
		pods                []corev1.Pod
		root                string
		config, gates, fail string
		// unknown is set if the configuration is not known for sure.
		unknown bool
	}{
		"of kubeadm":                  {pods: []corev1.Pod{staticPod("a"), staticPod("b")}},
		"no pod":                      {unknown: true},
		"gates":                       {pods: []corev1.Pod{staticPod("a", "--feature-gates", "A=true")}, gates: "A=true"},
		"different gates":             {pods: []corev1.Pod{staticPod("a", "--feature-gates=A=true"), staticPod("b")}, fail: "different flags"},
		"a configuration":             {pods: []corev1.Pod{mounted}, root: "/r", config: "/r/on/node/s.yaml", unknown: true},
		"a configuration, elsewhere":  {pods: []corev1.Pod{mounted}, fail: "/in/pod/s.yaml on node a"},
		"a configuration of an image": {pods: []corev1.Pod{staticPod("b", "--config=/etc/x")}, root: "/", fail: "/etc/x on node b"},
		"a policy":                    {pods: []corev1.Pod{staticPod("a", "--policy-configmap=p")}, fail: "--policy-configmap"},
		"replaced":                    {pods: []corev1.Pod{replaced}, fail: "on node a"},
		"another scheduler":           {pods: []corev1.Pod{other, staticPod("b")}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := describeDefault(tc.pods, tc.root)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if (text == "") != (tc.fail == "") || !strings.Contains(text, tc.fail) {
				t.Fatalf("error %q, want %q", text, tc.fail)
			}
			if err == nil && (got.config != tc.config || got.gates != tc.gates || len(got.Unknown) > 0 != tc.unknown) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
