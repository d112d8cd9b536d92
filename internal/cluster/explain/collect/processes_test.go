package collect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// process is a pod with one container; ready, and of a static pod if mirror is set.
func process(namespace, name, container string, mirror bool, command ...string) corev1.Pod {
	pod := corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: container, Command: command}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	if mirror {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	}
	return pod
}

func notReady(pod corev1.Pod) corev1.Pod {
	pod.Status.Conditions = nil
	return pod
}

func configuredBy(pod corev1.Pod, configMap string) corev1.Pod {
	pod.Spec.Volumes = []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}}}}
	return pod
}

func TestSchedulersWithoutALeaseAreFoundByTheirPods(t *testing.T) {
	const minikube, chart = "kube-scheduler-n1", "scheduler-plugins-scheduler-1"
	elects := process("kube-system", minikube, "kube-scheduler", true, "kube-scheduler", "--leader-elect=true")
	alone := process("kube-system", minikube, "kube-scheduler", true, "kube-scheduler", "--leader-elect=false")
	second := process("scheduler-plugins", chart, "scheduler-plugins-scheduler", false, "/bin/kube-scheduler",
		"--config=/etc/kubernetes/scheduler-config.yaml")
	volcano := process("volcano-system", "volcano-scheduler-1", "volcano-scheduler", false)
	volcano.Spec.Containers[0].Args = []string{"--logtostderr", "--scheduler-name=volcano"}
	openshift := process("openshift-kube-scheduler", "openshift-kube-scheduler-n1", "kube-scheduler", true, "hyperkube",
		"kube-scheduler")
	own := process("kube-system", "s-1", "kube-scheduler", false, "kube-scheduler")
	own.Labels = map[string]string{ownership.LabelManagedBy: ownership.Manager}
	for name, tc := range map[string]struct {
		scheduler string
		pods      []corev1.Pod
		lease     string // namespace
		configMap string // by name, in namespace scheduler-plugins
		want      []explain.Scheduler
		processes []string
	}{
		"minikube has no leader election": {scheduler: "", pods: []corev1.Pod{alone}, want: []explain.Scheduler{
			{Name: "default-scheduler", Where: "Pod/kube-system/kube-scheduler-n1"}}},
		"a lease is left of an election": {scheduler: "", pods: []corev1.Pod{alone}, lease: "kube-system",
			want: []explain.Scheduler{{Name: "default-scheduler", Where: "Pod/kube-system/kube-scheduler-n1"}}},
		"leader election off in another notation": {pods: []corev1.Pod{process("kube-system", minikube, "kube-scheduler", true,
			"kube-scheduler", "--leader_elect=0")}, lease: "kube-system",
			want: []explain.Scheduler{{Name: "default-scheduler", Where: "Pod/kube-system/kube-scheduler-n1"}}},
		"its static pod is not ready": {scheduler: "default-scheduler", pods: []corev1.Pod{notReady(alone)},
			want: []explain.Scheduler{{Name: "default-scheduler", Where: "Pod/kube-system/kube-scheduler-n1",
				Problem: "Pod/kube-system/kube-scheduler-n1 is not ready"}}},
		"a lease without a holder": {scheduler: "default-scheduler", pods: []corev1.Pod{elects}, lease: "kube-system",
			want: []explain.Scheduler{{Name: "default-scheduler", Where: "Pod/kube-system/kube-scheduler-n1",
				Problem: "Lease/kube-system/kube-scheduler has no holder"}}},
		"a hosted control plane has only a lease": {scheduler: "default-scheduler", lease: "kube-system",
			want: []explain.Scheduler{{Name: "default-scheduler", Where: "Lease/kube-system/kube-scheduler",
				Problem: "Lease/kube-system/kube-scheduler has no holder"}}},
		"OpenShift": {scheduler: "default-scheduler", pods: []corev1.Pod{openshift}, lease: "openshift-kube-scheduler",
			want: []explain.Scheduler{{Name: "default-scheduler",
				Where:   "Pod/openshift-kube-scheduler/openshift-kube-scheduler-n1",
				Problem: "Lease/openshift-kube-scheduler/kube-scheduler has no holder"}}},
		"the chart of scheduler-plugins": {scheduler: "scheduler-plugins-scheduler", pods: []corev1.Pod{second},
			processes: []string{"Pod/scheduler-plugins/scheduler-plugins-scheduler-1 runs kube-scheduler"}},
		"the chart with its configuration": {scheduler: "scheduler-plugins-scheduler",
			pods: []corev1.Pod{configuredBy(second, "scheduler-config")}, configMap: "scheduler-config",
			want: []explain.Scheduler{{Name: "scheduler-plugins-scheduler",
				Where: "Pod/scheduler-plugins/scheduler-plugins-scheduler-1"}}},
		"one of two replicas is ready": {scheduler: "scheduler-plugins-scheduler", pods: []corev1.Pod{
			notReady(configuredBy(process("scheduler-plugins", "a", "x", false, "kube-scheduler"), "scheduler-config")),
			configuredBy(second, "scheduler-config")}, configMap: "scheduler-config",
			want: []explain.Scheduler{{Name: "scheduler-plugins-scheduler",
				Where: "Pod/scheduler-plugins/scheduler-plugins-scheduler-1"}}},
		"Volcano": {scheduler: "volcano", pods: []corev1.Pod{volcano, second},
			want:      []explain.Scheduler{{Name: "volcano", Where: "Pod/volcano-system/volcano-scheduler-1"}},
			processes: []string{"Pod/scheduler-plugins/scheduler-plugins-scheduler-1 runs kube-scheduler"}},
		"YuniKorn": {scheduler: "yunikorn", pods: []corev1.Pod{second,
			process("yunikorn", "yunikorn-scheduler-7f-x", "yunikorn-scheduler-k8s", false)},
			processes: []string{"Pod/yunikorn/yunikorn-scheduler-7f-x runs yunikorn-scheduler-k8s",
				"Pod/scheduler-plugins/scheduler-plugins-scheduler-1 runs kube-scheduler"}},
		"schedulers of other software": {scheduler: "gone", pods: []corev1.Pod{
			process("airflow", "airflow-scheduler-0", "scheduler", false, "airflow", "scheduler"), own}},
		"other software in the namespace default": {pods: []corev1.Pod{
			process("default", "airflow-scheduler-0", "scheduler", false, "airflow", "scheduler")}},
		"a scheduler that is known": {scheduler: "", pods: []corev1.Pod{alone, second}, want: []explain.Scheduler{
			{Name: "default-scheduler", Where: "Pod/kube-system/kube-scheduler-n1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			delete(s.objects, "/api/v1/namespaces/shop/events?")
			pending := s.objects["/api/v1/namespaces/shop/pods/web-0?"].(corev1.Pod)
			pending.Spec.SchedulerName, pending.Spec.Volumes = tc.scheduler, nil
			s.objects["/api/v1/namespaces/shop/pods/web-0?"] = pending
			s.objects["/api/v1/pods?"] = podList("", tc.pods...)
			for _, pod := range tc.pods {
				if pod.Namespace == "kube-system" {
					s.system = append(s.system, pod.Name)
					s.objects["/api/v1/namespaces/kube-system/pods/"+pod.Name+"?"] = pod
				}
			}
			if tc.lease != "" {
				s.objects["/apis/coordination.k8s.io/v1/namespaces/"+tc.lease+"/leases/kube-scheduler?"] = coordinationv1.Lease{
					TypeMeta:   metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"},
					ObjectMeta: metav1.ObjectMeta{Namespace: tc.lease, Name: "kube-scheduler"}}
			}
			if tc.configMap != "" {
				s.objects["/api/v1/namespaces/scheduler-plugins/configmaps/"+tc.configMap+"?"] = corev1.ConfigMap{
					TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
					Data: map[string]string{"scheduler-config.yaml": "apiVersion: kubescheduler.config.k8s.io/v1\n" +
						"kind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: scheduler-plugins-scheduler}]\n"}}
			}
			in := read(t, s, "web-0")
			if diff := cmp.Diff(tc.want, in.Schedulers); diff != "" {
				t.Errorf("schedulers (-want +got):\n%s", diff)
			}
			var processes []string
			for _, p := range in.Processes {
				processes = append(processes, p.String())
			}
			if diff := cmp.Diff(tc.processes, processes); diff != "" {
				t.Errorf("processes (-want +got):\n%s", diff)
			}
			report := explain.Pod(*in)
			if first := report.Findings[0]; (first.Cause == explain.NoScheduler) != (len(tc.want) == 0) {
				t.Errorf("finding %+v", first)
			}
		})
	}
}

func TestSchedulersThatTheUserMustNotReadAreUnknown(t *testing.T) {
	s := newServer()
	s.forbidden = "/api/v1/namespaces/kube-system/pods"
	in := read(t, s, "web-0")
	if len(in.Unknown) != 1 || !strings.Contains(in.Unknown[0], "list the pods of default schedulers: no permission") {
		t.Errorf("unknown %q", in.Unknown)
	}
}
