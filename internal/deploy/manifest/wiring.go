package manifest

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// Wiring is an extender that a scheduler calls: at a Service, or in the scheduler's own pod.
type Wiring struct {
	// Extender is its entry in the scheduler configuration. Name is the extender's name.
	Extender profiles.Extender
	// Sidecar runs the extender in the scheduler's pod.
	Sidecar *Sidecar
	// ClientSecret is the Secret with the client certificate for the extender. It is mounted into
	// the scheduler's pod at [ClientDir].
	ClientSecret string
}

// Sidecar is an extender in a scheduler's pod: it listens on loopback and uses the scheduler's
// identity.
type Sidecar struct {
	Image      string
	PullPolicy corev1.PullPolicy
	Policies   []Policy
	// Rules are the additional RBAC rules that the policies need.
	Rules []rbacv1.PolicyRule
	// Port on 127.0.0.1.
	Port int32
	// Resources of the container. The default is enough for 5,000 nodes.
	Resources corev1.ResourceRequirements
}

const (
	// LabelExtender is the label that names the extender to which a scheduler's object belongs.
	LabelExtender = "pmk-sched.io/extender"

	// wired is the name prefix for extenders' containers and volumes.
	wired = "extender-"
	// sidecarPortStep is the distance between a scheduler's secure port and the ports of its sidecars.
	sidecarPortStep = 1000
	lastPort        = 65535
)

// ClientDir is the directory with the client certificate for an extender in the scheduler's pod.
func ClientDir(extender string) string { return "/etc/kubernetes/extenders/" + extender }

// SidecarURL is a sidecar's URL for its scheduler.
func SidecarURL(port int32) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

// SidecarPort is the port of the n-th sidecar, from 0, for a scheduler with the given secure port.
// Schedulers that share a node's network get different ports.
func SidecarPort(secure, n int) (int32, error) {
	port := secure + sidecarPortStep*(n+1)
	if port > lastPort {
		port = secure - sidecarPortStep*(n+1)
	}
	if port < 1024 {
		return 0, problem.Invalidf("use fewer sidecars", "no port for sidecar %d of a scheduler at port %d", n+1, secure)
	}
	return int32(port), nil
}

// Sidecars returns the extenders that run in the pods of a scheduler's Deployment.
func Sidecars(d *appsv1.Deployment) []string {
	var names []string
	for _, c := range d.Spec.Template.Spec.Containers {
		if name, ok := strings.CutPrefix(c.Name, wired); ok {
			names = append(names, name)
		}
	}
	return names
}

// Configuration returns the configuration among a scheduler's objects.
func Configuration(objects []*unstructured.Unstructured, name string) ([]byte, error) {
	for _, o := range objects {
		if text, found, err := unstructured.NestedString(o.Object, "data", name+".yaml"); o.GetKind() == "ConfigMap" &&
			err == nil && found {
			return []byte(text), nil
		}
	}
	return nil, problem.Invalidf("deploy it again from its file, with the extender under spec.extenders",
		"scheduler %s has no KubeSchedulerConfiguration to add an extender to", name)
}

// wirer adds extenders to a scheduler's Deployment.
type wirer struct {
	Scheduler
	// pod is the pod of the scheduler, whose container is the first.
	pod      *corev1.PodSpec
	subjects []rbacv1.Subject
	// added are the objects that the pods mount, and the sidecars' rights.
	added []runtime.Object
}

// wire adds the scheduler's extenders to its Deployment, and returns the other objects that they
// need. objects are the scheduler's without extenders.
func (s Scheduler) wire(objects []runtime.Object, d *appsv1.Deployment) ([]runtime.Object, error) {
	w := wirer{Scheduler: s, pod: &d.Spec.Template.Spec}
	for _, o := range objects {
		if binding, ok := o.(*rbacv1.ClusterRoleBinding); ok {
			w.subjects = binding.Subjects
		}
	}
	for _, wiring := range s.Wirings {
		if err := w.add(wiring); err != nil {
			return nil, err
		}
	}
	return w.added, nil
}
