package manifest

import (
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// Wiring is an extender that a scheduler calls: at a Service, or in the scheduler's own pod.
type Wiring struct {
	// Extender is its entry in the scheduler configuration. Name is the name of the extender.
	Extender profiles.Extender `json:"extender"`
	// Sidecar runs the extender in the scheduler's pod.
	Sidecar *Sidecar `json:"sidecar,omitempty"`
	// ClientSecret is the Secret with the client certificate for the extender. It is mounted into
	// the scheduler's pod at [ClientDir].
	ClientSecret string `json:"clientSecret,omitempty"`
	// Alone is set if the extender was added separately and not by the file that the scheduler was
	// deployed from. It stays when the scheduler is deployed again.
	Alone bool `json:"alone,omitempty"`
}

// Sidecar is an extender in the pod of a scheduler: it listens on loopback and uses the scheduler's
// identity.
type Sidecar struct {
	Image      string            `json:"image"`
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty"`
	Policies   []Policy          `json:"policies"`
	// Rules are the additional RBAC rules that the policies need.
	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`
	// Port on 127.0.0.1.
	Port int32 `json:"port"`
	// Resources of the container. The default is enough for 5,000 nodes.
	Resources corev1.ResourceRequirements `json:"resources"`
}

const (
	// AnnotationExtenders is set on the Deployment of a scheduler: the list of its [Wiring]s as
	// JSON, without keys.
	AnnotationExtenders = "pmk-sched.io/extenders"
	// LabelExtender is the label that names the extender of an object of a scheduler.
	LabelExtender = "pmk-sched.io/extender"

	// wired is the name prefix of containers and volumes of extenders.
	wired = "extender-"
	// sidecarPortStep is the distance between the secure port of a scheduler and the ports of its
	// sidecars.
	sidecarPortStep = 1000
	lastPort        = 65535
)

// ClientDir is the directory of the client certificate for an extender in the scheduler's pod.
func ClientDir(extender string) string { return "/etc/kubernetes/extenders/" + extender }

// SidecarURL is the URL of a sidecar for its scheduler.
func SidecarURL(port int32) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

// SidecarPort is the port of the n-th sidecar, from 0, of a scheduler with the given secure port.
// Schedulers that share the network of a node get different ports.
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

// Wire returns the objects of a scheduler, the result of [Objects], with the given extenders. objects are not changed.
func Wire(objects []*unstructured.Unstructured, wirings []Wiring) ([]*unstructured.Unstructured, error) {
	w := wirer{}
	for _, o := range objects {
		w.objects = append(w.objects, o.DeepCopy())
	}
	if err := w.find(); err != nil {
		return nil, err
	}
	if err := w.annotate(wirings); err != nil {
		return nil, err
	}
	for _, wiring := range wirings {
		if err := w.add(wiring); err != nil {
			return nil, err
		}
	}
	return w.result()
}

// Wirings returns the extenders among the objects of a scheduler.
func Wirings(objects []*unstructured.Unstructured) ([]Wiring, error) {
	for _, o := range objects {
		if o.GetKind() != "Deployment" || o.GetAnnotations()[AnnotationExtenders] == "" {
			continue
		}
		var wirings []Wiring
		if err := json.Unmarshal([]byte(o.GetAnnotations()[AnnotationExtenders]), &wirings); err != nil {
			return nil, fmt.Errorf("read the extenders of Deployment/%s/%s: %w", o.GetNamespace(), o.GetName(), err)
		}
		return wirings, nil
	}
	return nil, nil
}

// wirer changes the objects of one scheduler.
type wirer struct {
	objects    []*unstructured.Unstructured
	at         int // of the Deployment
	name       string
	deployment *appsv1.Deployment
	scheduler  *corev1.Container
	added      []runtime.Object
	subjects   []rbacv1.Subject
}

// find finds the Deployment, its scheduler container, and the subjects with the scheduler's rights.
func (w *wirer) find() error {
	w.at = slices.IndexFunc(w.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	if w.at < 0 {
		return fmt.Errorf("wire extenders: no Deployment among %d objects", len(w.objects))
	}
	w.name, w.deployment = w.objects[w.at].GetName(), &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(w.objects[w.at].Object, w.deployment); err != nil {
		return fmt.Errorf("read Deployment/%s: %w", w.name, err)
	}
	for i := range w.deployment.Spec.Template.Spec.Containers {
		if c := &w.deployment.Spec.Template.Spec.Containers[i]; c.Name == ContainerName {
			w.scheduler = c
		}
	}
	if w.scheduler == nil {
		return fmt.Errorf("wire extenders: Deployment/%s has no container %s", w.name, ContainerName)
	}
	for _, o := range w.objects {
		if o.GetKind() == "ClusterRoleBinding" && o.GetName() == w.name+"-as-kube-scheduler" {
			var binding rbacv1.ClusterRoleBinding
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &binding); err != nil {
				return fmt.Errorf("read ClusterRoleBinding/%s: %w", o.GetName(), err)
			}
			w.subjects = binding.Subjects
		}
	}
	return nil
}

// Configuration returns the configuration among the objects of a scheduler.
func Configuration(objects []*unstructured.Unstructured, name string) ([]byte, error) {
	for _, o := range objects {
		if text, found, err := unstructured.NestedString(o.Object, "data", name+".yaml"); o.GetKind() == "ConfigMap" && err == nil && found {
			return []byte(text), nil
		}
	}
	return nil, problem.Invalidf("deploy it again from its file, with the extender under spec.extenders",
		"scheduler %s has no KubeSchedulerConfiguration to add an extender to", name)
}

// annotate records the list of extenders on the Deployment.
func (w *wirer) annotate(wirings []Wiring) error {
	text, err := json.Marshal(wirings)
	if err != nil {
		return fmt.Errorf("record the extenders of scheduler %s: %w", w.name, err)
	}
	metav1.SetMetaDataAnnotation(&w.deployment.ObjectMeta, AnnotationExtenders, string(text))
	return nil
}

func (w *wirer) result() ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, typed := range w.added {
		object, err := plain(typed)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	deployment, err := plain(w.deployment)
	if err != nil {
		return nil, err
	}
	w.objects[w.at] = deployment
	// The Deployment is last, after the objects that its pods mount.
	return slices.Insert(w.objects, w.at, objects...), nil
}
