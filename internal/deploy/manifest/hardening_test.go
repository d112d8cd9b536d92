package manifest_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
)

// Pods have no more rights than their credentials require: the scheduler runs as root only if it
// reads its key from the node's file, which only root can read.
func TestPodsAreConfined(t *testing.T) {
	for _, mode := range manifest.Modes() {
		t.Run(mode, func(t *testing.T) {
			s := scheduler(t, "v1.24.3", mode)
			s.Wirings = wirings()
			confined(t, podOf(t, objects(t, s)), mode == manifest.ModeHostPath, mode == manifest.ModeServiceAccount)
		})
	}
	t.Run("extender", func(t *testing.T) {
		all, err := manifest.ExtenderObjects(extender(t, "v1.24.3"))
		if err != nil {
			t.Fatal(err)
		}
		pod := podOf(t, all)
		confined(t, pod, false, true)
		if pod.HostNetwork {
			t.Error("the extender is on the host network")
		}
	})
}

func podOf(t *testing.T, all []*unstructured.Unstructured) corev1.PodSpec {
	t.Helper()
	for _, o := range all {
		if o.GetKind() == "Deployment" {
			var d appsv1.Deployment
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
				t.Fatal(err)
			}
			return d.Spec.Template.Spec
		}
	}
	t.Fatal("there is no Deployment")
	return corev1.PodSpec{}
}

func confined(t *testing.T, pod corev1.PodSpec, root, token bool) {
	t.Helper()
	is := func(what string, got *bool, want bool) {
		t.Helper()
		if got == nil || *got != want {
			t.Errorf("%s: %v, want %t", what, got, want)
		}
	}
	is("token mounted", pod.AutomountServiceAccountToken, token)
	is("only as non-root", pod.SecurityContext.RunAsNonRoot, !root)
	if user := *pod.SecurityContext.RunAsUser; (user == 0) != root {
		t.Errorf("user %d", user)
	}
	if profile := pod.SecurityContext.SeccompProfile; profile == nil ||
		profile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("seccomp profile: %v", profile)
	}
	if pod.HostPID || pod.HostIPC {
		t.Error("a namespace of the host is shared")
	}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		is(c.Name+": privilege escalation", c.SecurityContext.AllowPrivilegeEscalation, false)
		is(c.Name+": read-only root", c.SecurityContext.ReadOnlyRootFilesystem, true)
		if caps := c.SecurityContext.Capabilities; caps == nil || len(caps.Add) > 0 || len(caps.Drop) != 1 ||
			caps.Drop[0] != "ALL" {
			t.Errorf("%s: capabilities %v", c.Name, caps)
		}
		if len(c.Resources.Requests) == 0 {
			t.Errorf("%s: no resources are requested", c.Name)
		}
		// The memory of a scheduler follows from the size of the cluster, and its end is worse than its
		// growth; an extender bounds its own.
		if limit := c.Resources.Limits.Memory(); limit.IsZero() == (c.Name != manifest.ContainerName) {
			t.Errorf("%s: memory limit %s", c.Name, limit)
		}
		for _, m := range c.VolumeMounts {
			if !m.ReadOnly {
				t.Errorf("%s: %s can be written", c.Name, m.MountPath)
			}
		}
	}
}
