package handmade

import (
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/profiles"
	"github.com/pmk-sched/pmk-sched/profiles/node"
)

// take takes what the workload says over into the request.
func (r *reading) take(w *workload) {
	r.image(w.container.Image)
	r.spec.Image.PullPolicy = string(w.container.ImagePullPolicy)
	r.flags(w)
	r.nodes(w)
	r.spec.Replicas = v1alpha1.AutoInt(max(w.replicas, 1))
	r.item(Kept, "replicas", "%d", r.spec.Replicas)
	switch w.pod.PriorityClassName {
	case priorityClass:
		r.item(Kept, "priorityClassName", priorityClass)
	case "":
		r.item(Changed, "priorityClassName", "%s: pods of the scheduler are not evicted for others", priorityClass)
	default:
		r.spec.PriorityClassName = w.pod.PriorityClassName
		r.item(Kept, "priorityClassName", "%s", w.pod.PriorityClassName)
	}
	resources := w.container.Resources
	r.spec.Resources = v1alpha1.Resources{Requests: v1alpha1.Quantities(resources.Requests),
		Limits: v1alpha1.Quantities(resources.Limits)}
	if len(resources.Requests)+len(resources.Limits) > 0 {
		r.item(Kept, "resources", "requests and limits of container %s", w.container.Name)
	}
	if parts := w.unsupported(); len(parts) > 0 {
		r.item(Open, w.name(), "pmk-sched deploys no %s", strings.Join(parts, ", "))
	}
}

// priorityClass is the class of the schedulers that pmk-sched deploys.
const priorityClass = "system-cluster-critical"

// image takes an image over unless its name is a placeholder.
func (r *reading) image(image string) {
	if image == "" {
		return
	}
	if _, err := name.ParseReference(image, name.WeakValidation); err != nil {
		r.item(Changed, "image", "%q is a placeholder; without a name, a scheduler without plugins gets the image of the "+
			"API server's release", image)
		return
	}
	r.spec.Image.Reference = image
	r.item(Kept, "image", "%s", image)
}

// flags takes the flags over that the configuration cannot express.
func (r *reading) flags(w *workload) {
	for _, f := range w.flags {
		text := "--" + f.Name
		if f.HasValue {
			text += "=" + f.Value
		}
		why, field := profiles.FlagLeftOut(f.Name)
		switch {
		case f.Name == "v" && f.Value == "2":
			r.item(Kept, "flag "+text, "pmk-sched sets the same")
		case f.Name == "scheduler-name":
			r.item(Changed, "flag "+text, "the name is schedulerName of the configuration's profile, or metadata.name")
		case field != "" && r.spec.Configuration.Inline == "":
			r.item(Open, "flag "+text, "write a configuration with %s: kube-scheduler ignores the flag if there is one", field)
		case why != "":
			r.item(Changed, "flag "+text, "%s", why)
		default:
			r.spec.Args = append(r.spec.Args, text)
			r.item(Kept, "flag "+text, "spec.args")
		}
	}
}

// nodes takes the nodes over, and the credentials that work on them.
func (r *reading) nodes(w *workload) {
	selector := w.pod.NodeSelector
	labels := kubeapi.ControlPlaneLabels()
	controlPlane := len(selector) > 0
	for key, value := range selector {
		controlPlane = controlPlane && value == "" && slices.Contains(labels, key)
	}
	switch {
	case controlPlane:
		r.item(Kept, "nodes", "control-plane nodes, by the label that they have")
	case len(selector) > 0:
		r.spec.NodeSelector = selector
		r.item(Kept, "nodes", "nodeSelector")
	default:
		r.spec.AnyNode = true
		r.item(Kept, "nodes", "any node")
	}
	for _, t := range w.pod.Tolerations {
		if slices.Contains(labels, t.Key) || t.Key == "CriticalAddonsOnly" {
			continue
		}
		r.spec.Tolerations = append(r.spec.Tolerations, v1alpha1.Toleration(t))
		r.item(Kept, "toleration", "%s", strings.TrimSpace(t.Key+" "+string(t.Effect)))
	}
	switch {
	case !r.hasKubeconfig(w):
		r.spec.Credentials = "serviceaccount"
		r.item(Kept, "credentials", "a ServiceAccount, as before")
	case controlPlane:
		r.item(Changed, "credentials", "those of the default scheduler on the node, in a Secret, or a ServiceAccount where "+
			"the command does not run on a control-plane node")
	default:
		r.spec.Credentials = "serviceaccount"
		r.item(Changed, "credentials", "a ServiceAccount: the scheduler is not bound to the nodes that have a kubeconfig")
	}
}

// hasKubeconfig reports whether the scheduler reads a kubeconfig.
func (r *reading) hasKubeconfig(w *workload) bool {
	if w.flag("kubeconfig") != "" {
		return true
	}
	return node.Text(r.root(), "clientConnection", "kubeconfig") != ""
}
