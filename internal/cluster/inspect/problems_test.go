package inspect

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/versions"
)

// issues returns the issues and conditions of the known problems of a scheduler. With scheduler ""
// it returns the problems of the cluster's release.
func issues(info *Info, scheduler string) []string {
	var found []string
	for _, p := range info.KnownProblems {
		if p.Scheduler == scheduler {
			found = append(found, p.Issue+" "+p.When)
		}
	}
	return found
}

func TestDetectListsKnownProblemsOfTheRelease(t *testing.T) {
	info := detect(t, pmkMaster())
	want := []KnownProblem{
		{Issue: "kubernetes#111803", Effect: "kube-scheduler leaks memory",
			When: "if plugin DefaultPreemption runs and pods are preempted", Fix: "v1.24.4"},
		{Issue: "kubernetes#122022", Effect: "a pod that an extender refused is tried again minutes late",
			When: "if the scheduler calls extenders", Fix: "v1.26.12"},
		{Issue: "kubernetes#120334",
			Effect: "a pod that meets an error after it was unschedulable is tried again minutes late", Fix: "v1.25.15"},
	}
	for i := range want {
		want[i].Release = "v1.24.3"
	}
	if diff := cmp.Diff(want, info.KnownProblems[:min(len(info.KnownProblems), len(want))]); diff != "" {
		t.Errorf("known problems (-want +got):\n%s", diff)
	}
	if got, want := info.KnownProblems[0].String(),
		"if plugin DefaultPreemption runs and pods are preempted, kube-scheduler leaks memory (kubernetes#111803; fixed in "+
			"v1.24.4)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The usage of a deployed scheduler is read from its configuration and its flags. Only conditions
// about pods remain.
func TestDetectListsKnownProblemsThatDeployedSchedulersMeet(t *testing.T) {
	scheduler := func(name string, command ...string) appsv1.Deployment {
		d := deployment("gpu", name, "v1.34.0", "localhost/s:v1.34.0")
		d.Spec.Template.Spec.Containers[0].Command = command
		d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "config-file", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name + "-config"}},
		}}}
		return d
	}
	s := pmkMaster()
	s.deployments = []appsv1.Deployment{
		scheduler("broken"), scheduler("lost"), scheduler("off", "kube-scheduler",
			"--feature-gates=CoordinatedLeaderElection=false,SchedulerAsyncAPICalls=false"), scheduler("plain"),
	}
	s.configMaps = map[string]map[string]string{
		"gpu/plain-config": {"plain.yaml": "plain"}, "gpu/off-config": {"off.yaml": "extenders"},
		"gpu/broken-config": {"broken.yaml": "broken"},
	}
	read := func(configuration []byte, release versions.Release) (versions.Usage, error) {
		if release.String() != "v1.34.0" || string(configuration) == "broken" {
			return versions.Usage{}, errors.New("not a configuration of " + release.String())
		}
		return versions.Usage{WholeNodes: string(configuration) == "extenders"}, nil
	}
	info := detect(t, s, func(o *Options) { o.Usage = read })

	const devices = "kubernetes#136566 if pods use ResourceClaims"
	all := []string{
		"kubernetes#141781 if the scheduler calls an extender that filters with nodeCacheCapable: false",
		"kubernetes#134400 if feature gate SchedulerAsyncAPICalls is enabled",
		"kubernetes#136566 if feature gate DynamicResourceAllocation is enabled and pods use ResourceClaims",
	}
	for scheduler, want := range map[string][]string{
		"gpu/plain": {"kubernetes#134400 ", devices}, "gpu/off": {"kubernetes#141781 ",
			devices}, "gpu/lost": all, "gpu/broken": all,
	} {
		if diff := cmp.Diff(want, issues(info, scheduler)); diff != "" {
			t.Errorf("known problems of %s (-want +got):\n%s", scheduler, diff)
		}
	}
	wants(t, info, "ConfigMap/gpu/lost-config", "scheduler broken in namespace gpu: not a configuration of v1.34.0")
}

func TestFeatureGatesOfACommand(t *testing.T) {
	got := FeatureGates([]string{"kube-scheduler", "--v=2", "--feature-gates=A=true,B=false,C=maybe",
		"--feature-gates=D=1"})
	if diff := cmp.Diff(map[string]bool{"A": true, "B": false, "D": true}, got); diff != "" {
		t.Error(diff)
	}
}
