package manifest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
	// LabelExtender is the name of the extender that an object of a scheduler belongs to.
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

// Wire returns the objects of a scheduler with exactly the given extenders, and with the given
// configuration unless it is nil. objects are the result of [Objects] or of an earlier Wire; they
// are not changed.
func Wire(objects []*unstructured.Unstructured, configuration []byte, wirings []Wiring) ([]*unstructured.Unstructured, error) {
	var bare []*unstructured.Unstructured
	for _, o := range objects {
		if _, of := o.GetLabels()[LabelExtender]; !of {
			bare = append(bare, o.DeepCopy())
		}
	}
	w := wirer{objects: bare}
	for _, do := range []func() error{
		w.find,
		func() error { return w.configure(configuration) },
		func() error { return w.note(wirings) },
	} {
		if err := do(); err != nil {
			return nil, err
		}
	}
	w.unwire()
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

// configure replaces the configuration.
func (w *wirer) configure(text []byte) error {
	if text == nil {
		return nil
	}
	if _, err := Configuration(w.objects, w.name); err != nil {
		return err
	}
	key := w.name + ".yaml"
	for _, o := range w.objects {
		if _, found, _ := unstructured.NestedString(o.Object, "data", key); o.GetKind() != "ConfigMap" || !found {
			continue
		}
		old := o.GetName()
		o.SetName(hashed(w.name+"-config", map[string][]byte{key: text}))
		if err := unstructured.SetNestedField(o.Object, string(text), "data", key); err != nil {
			return fmt.Errorf("write ConfigMap/%s: %w", o.GetName(), err)
		}
		for i := range w.deployment.Spec.Template.Spec.Volumes {
			if source := w.deployment.Spec.Template.Spec.Volumes[i].ConfigMap; source != nil && source.Name == old {
				source.Name = o.GetName()
			}
		}
	}
	return nil
}

// note records the list of extenders on the Deployment.
func (w *wirer) note(wirings []Wiring) error {
	delete(w.deployment.Annotations, AnnotationExtenders)
	if len(wirings) == 0 {
		if len(w.deployment.Annotations) == 0 {
			w.deployment.Annotations = nil
		}
		return nil
	}
	text, err := json.Marshal(wirings)
	if err != nil {
		return fmt.Errorf("record the extenders of scheduler %s: %w", w.name, err)
	}
	metav1.SetMetaDataAnnotation(&w.deployment.ObjectMeta, AnnotationExtenders, string(text))
	return nil
}

// unwire removes what an earlier Wire added to the pod.
func (w *wirer) unwire() {
	pod := &w.deployment.Spec.Template.Spec
	pod.Containers = slices.DeleteFunc(pod.Containers, func(c corev1.Container) bool { return strings.HasPrefix(c.Name, wired) })
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, wired) })
	for i := range pod.Containers {
		if c := &pod.Containers[i]; c.Name == ContainerName {
			c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix(m.Name, wired) })
			w.scheduler = c
		}
	}
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

// SecurePort returns the secure port of a scheduler's objects.
func SecurePort(objects []*unstructured.Unstructured) (int, error) {
	w := wirer{objects: objects}
	if err := w.find(); err != nil {
		return 0, err
	}
	for _, word := range w.scheduler.Command {
		if f, err := parseFlag(word); err == nil && f.name == "secure-port" {
			return strconv.Atoi(f.value)
		}
	}
	return 0, fmt.Errorf("scheduler %s: no secure port in its command", w.name)
}

// Command returns the command of the scheduler with these objects, nil if they have no scheduler.
func Command(objects []*unstructured.Unstructured) []string {
	w := wirer{objects: objects}
	if w.find() != nil {
		return nil
	}
	return w.scheduler.Command
}

// ReadsPolicy reports whether a scheduler with these objects reads a legacy Policy. It then reads
// extenders from the Policy only.
func ReadsPolicy(objects []*unstructured.Unstructured) bool {
	w := wirer{objects: objects}
	if w.find() != nil {
		return false
	}
	return slices.ContainsFunc(w.scheduler.Command, func(word string) bool { return strings.HasPrefix(word, "--policy-configmap") })
}
