package handmade

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/profiles/node"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
	"github.com/pmk-sched/pmk-sched/versions"
)

// workload is the object that runs the scheduler.
type workload struct {
	metav1.ObjectMeta
	kind      string
	object    *yaml.Node
	replicas  int
	pod       corev1.PodSpec
	container corev1.Container
	flags     []versions.Flag
}

// flag returns a flag's value, or "".
func (w *workload) flag(name string) string {
	for _, f := range slices.Backward(w.flags) {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// name names the workload as kubectl does.
func (w *workload) name() string { return w.kind + " " + w.Name }

// nameOf names an object as kubectl does: kind and name.
func nameOf(object *yaml.Node) string {
	return strings.TrimSpace(node.Text(object, "kind") + " " + node.Text(object, "metadata", "name"))
}

// convert reads an object into a type of the API.
func convert(object *yaml.Node, into any) error {
	text, err := schema.Encode(object)
	if err == nil {
		err = sigsyaml.Unmarshal(text, into)
	}
	if err != nil {
		return problem.Invalidf("compare it with `kubectl explain`", "read %s in line %d: %w", nameOf(object), object.Line, err)
	}
	return nil
}

// workload returns the only workload that runs kube-scheduler, or nil.
func (r *reading) workload(name string) (*workload, error) {
	var found []*workload
	for _, o := range r.objects {
		w, err := readWorkload(o)
		if err != nil {
			return nil, err
		}
		if w != nil {
			found = append(found, w)
		}
	}
	if len(found) > 1 {
		var names []string
		for _, w := range found {
			names = append(names, w.name())
		}
		return nil, problem.Invalidf("keep one scheduler in the file", "%s has several schedulers: %s", name,
			strings.Join(names, ", "))
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found[0], nil
}

// readWorkload returns the object as the workload of a scheduler, or nil if it runs none.
func readWorkload(object *yaml.Node) (*workload, error) {
	kind := node.Text(object, "kind")
	if !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod"}, kind) {
		return nil, nil
	}
	var read struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			corev1.PodSpec `json:",inline"` // of a Pod
			Replicas       *int             `json:"replicas"`
			Template       corev1.PodTemplateSpec
		} `json:"spec"`
	}
	if err := convert(object, &read); err != nil {
		return nil, err
	}
	w := &workload{ObjectMeta: read.Metadata, kind: kind, object: object, replicas: 1, pod: read.Spec.Template.Spec}
	if kind == "Pod" {
		w.pod = read.Spec.PodSpec
	}
	if read.Spec.Replicas != nil {
		w.replicas = *read.Spec.Replicas
	}
	at := slices.IndexFunc(w.pod.Containers, isScheduler)
	if at < 0 {
		return nil, nil
	}
	w.container = w.pod.Containers[at]
	w.flags = flagsOf(w.container)
	return w, nil
}

// flagsOf returns the flags of a container's command line.
func flagsOf(c corev1.Container) (flags []versions.Flag) {
	for _, f := range versions.ParseFlags(slices.Concat(c.Command, c.Args)) {
		if f.Name != "" {
			flags = append(flags, f)
		}
	}
	return flags
}

// RunsScheduler reports whether a container of the pod runs kube-scheduler.
func RunsScheduler(pod corev1.PodSpec) bool { return slices.ContainsFunc(pod.Containers, isScheduler) }

// isScheduler reports whether a container runs kube-scheduler: its program has that name, or it has
// a configuration and its image is named for a scheduler.
func isScheduler(c corev1.Container) bool {
	words := slices.Concat(c.Command, c.Args)
	for _, word := range words {
		if program, _, _ := strings.Cut(strings.TrimSpace(word), " "); path.Base(program) == "kube-scheduler" {
			return true
		}
	}
	_, configured := versions.FindFlag(words, "config")
	return configured && strings.Contains(c.Image, "scheduler")
}

// volumesOf returns the names of the ConfigMaps or Secrets that the scheduler's container mounts.
func (w *workload) volumesOf(kind string) (names []string) {
	for _, v := range w.pod.Volumes {
		switch {
		case kind == "ConfigMap" && v.ConfigMap != nil:
			names = append(names, v.ConfigMap.Name)
		case kind == "Secret" && v.Secret != nil:
			names = append(names, v.Secret.SecretName)
		}
	}
	return names
}

// describe names the parts of a pod that pmk-sched does not have.
func (w *workload) unsupported() (parts []string) {
	add := func(found bool, format string, args ...any) {
		if found {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	for _, c := range w.pod.InitContainers {
		add(true, "init container %s", c.Name)
	}
	for _, c := range w.pod.Containers {
		add(c.Name != w.container.Name, "container %s", c.Name)
	}
	for _, e := range w.container.Env {
		add(true, "environment variable %s", e.Name)
	}
	for _, s := range w.pod.ImagePullSecrets {
		add(true, "imagePullSecret %s", s.Name)
	}
	add(w.pod.Affinity != nil, "affinity")
	add(len(w.pod.TopologySpreadConstraints) > 0, "topologySpreadConstraints")
	for _, v := range w.pod.Volumes {
		add(v.ConfigMap == nil && v.Secret == nil && v.Projected == nil, "volume %s", v.Name)
	}
	return parts
}
