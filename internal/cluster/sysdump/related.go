package sysdump

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	// logLines and logBytes bound a container's log.
	logLines = 20_000
	logBytes = 8 << 20
	// defaultLease is the default scheduler's lease.
	defaultLease = "kube-scheduler"
)

// related writes objects that are related to managed objects but not managed themselves: leases,
// ReplicaSets, endpoints and the cluster's roles.
func (c *Cluster) related(ctx context.Context) {
	for _, at := range append(c.instances(), PodName{metav1.NamespaceSystem, defaultLease}) {
		lease := find(ctx, c, c.kube.CoordinationV1().Leases(at.Namespace).Get, "Lease", at.Namespace, at.Name)
		if lease != nil {
			c.addTyped(lease)
		}
	}
	for _, at := range c.instances() {
		c.get(ctx, "list ReplicaSets of "+at.Namespace+"/"+at.Name, func(ctx context.Context) error {
			found, err := c.kube.AppsV1().ReplicaSets(at.Namespace).List(ctx,
				metav1.ListOptions{LabelSelector: ownership.LabelInstance + "=" + at.Name})
			if err != nil {
				return err
			}
			for i := range found.Items {
				c.addTyped(&found.Items[i])
			}
			return nil
		})
	}
	for _, o := range c.Managed {
		if o.GetKind() != "Service" {
			continue
		}
		endpoints := c.kube.CoreV1().Endpoints(o.GetNamespace()) //nolint:staticcheck // every release serves it
		if found := find(ctx, c, endpoints.Get, "Endpoints", o.GetNamespace(), o.GetName()); found != nil {
			c.addTyped(found)
		}
	}
	for _, role := range []string{"system:kube-scheduler", "system:volume-scheduler"} {
		c.get(ctx, "read ClusterRole/"+role, func(ctx context.Context) error {
			found, err := c.kube.RbacV1().ClusterRoles().Get(ctx, role, metav1.GetOptions{})
			if err == nil {
				c.addTyped(found)
			}
			return err
		})
	}
}

// nodeFacts are the facts about a node that a bug report needs.
type nodeFacts struct {
	Name          string              `json:"name"`
	Labels        map[string]string   `json:"labels"`
	Taints        []corev1.Taint      `json:"taints,omitempty"`
	Unschedulable bool                `json:"unschedulable,omitempty"`
	Allocatable   corev1.ResourceList `json:"allocatable"`
	Conditions    map[string]string   `json:"conditions"`
	Kubelet       string              `json:"kubelet"`
	Runtime       string              `json:"runtime"`
	Kernel        string              `json:"kernel"`
	OS            string              `json:"os"`
}

// nodes writes facts about the nodes, without their addresses.
func (c *Cluster) nodes(ctx context.Context) {
	facts := []nodeFacts{}
	options := metav1.ListOptions{Limit: page}
	for list, err := range kubeapi.Pages(ctx, kubeapi.Retrying(c.retry, "list nodes", c.kube.CoreV1().Nodes().List),
		options) {
		if err != nil {
			c.note(ctx, "list nodes", err)
			break
		}
		for i := range list.Items {
			facts = append(facts, factsOf(&list.Items[i]))
		}
	}
	c.archive.JSON("nodes.json", facts)
}

func factsOf(node *corev1.Node) nodeFacts {
	info := node.Status.NodeInfo
	f := nodeFacts{
		Name: node.Name, Labels: node.Labels, Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable,
		Allocatable: node.Status.Allocatable,
		Conditions:  map[string]string{}, Kubelet: info.KubeletVersion, Runtime: info.ContainerRuntimeVersion,
		Kernel: info.KernelVersion,
		OS:     info.OSImage + " " + info.Architecture,
	}
	for _, condition := range node.Status.Conditions {
		f.Conditions[string(condition.Type)] = strings.TrimSpace(string(condition.Status) + " " + condition.Reason)
	}
	return f
}

// logs writes each container's log, and its previous instance's log if it restarted.
func (c *Cluster) logs(ctx context.Context) {
	for i := range c.pods {
		pod := &c.pods[i]
		for _, status := range podstatus.Containers(pod) {
			if status.State.Waiting == nil || status.RestartCount > 0 {
				c.log(ctx, pod, status.Name, false)
			}
			if status.RestartCount > 0 {
				c.log(ctx, pod, status.Name, true)
			}
		}
	}
}

func (c *Cluster) log(ctx context.Context, pod *corev1.Pod, container string, previous bool) {
	lines, limit := int64(logLines), int64(logBytes)
	name := "logs/" + pod.Namespace + "/" + pod.Name + "_" + container
	doing := fmt.Sprintf("read the log of container %s of Pod/%s/%s", container, pod.Namespace, pod.Name)
	if previous {
		name, doing = name+".previous", doing+" before its restart"
	}
	c.get(ctx, doing, func(ctx context.Context) error {
		text, err := c.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
			Container: container, Previous: previous, Timestamps: true, TailLines: &lines, LimitBytes: &limit,
		}).DoRaw(ctx)
		if err == nil {
			c.archive.Text(name+".log", string(text))
		}
		return err
	})
}

// metrics writes the metrics for each pod that can be read from here.
func (c *Cluster) metrics(ctx context.Context) {
	for i := range c.pods {
		pod := &c.pods[i]
		text, err := c.Metrics.Read(ctx, pod, metricsPort(&pod.Spec))
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.archive.Failed(fmt.Sprintf("read the metrics of Pod/%s/%s", pod.Namespace, pod.Name), err)
		default:
			c.archive.Text("metrics/"+pod.Namespace+"/"+pod.Name+".txt", text)
		}
	}
}

// metricsPort returns a scheduler's or extender's port. PMK runs the default scheduler next to the
// API server in one pod.
func metricsPort(pod *corev1.PodSpec) int {
	for _, container := range pod.Containers {
		if (container.Name == ownership.Scheduler || container.Name == ownership.Extender) && len(container.Ports) > 0 {
			return int(container.Ports[0].ContainerPort)
		}
	}
	return versions.SecurePort
}

// events writes the events about the objects in the archive, and about former pods of schedulers
// and extenders.
func (c *Cluster) events(ctx context.Context) {
	namespaces := map[string]bool{}
	for name := range c.dumped {
		if parts := strings.Split(name, "/"); len(parts) == 3 {
			namespaces[parts[1]] = true
		}
	}
	instances := c.instances()
	for namespace := range namespaces {
		events := []any{}
		options := metav1.ListOptions{Limit: page}
		doing := "list events in namespace " + namespace
		for list, err := range kubeapi.Pages(ctx, kubeapi.Retrying(c.retry, doing, c.kube.CoreV1().Events(namespace).List),
			options) {
			if err != nil {
				c.note(ctx, doing, err)
				break
			}
			for _, e := range list.Items {
				if c.concerns(&e, instances) {
					e.ManagedFields = nil
					events = append(events, e)
				}
			}
		}
		if len(events) > 0 {
			c.archive.JSON("events/"+namespace+".json", events)
		}
	}
}

// concerns reports whether an event is about an object in the archive, or about an object that a
// scheduler or an extender had.
func (c *Cluster) concerns(e *corev1.Event, instances []PodName) bool {
	about := e.InvolvedObject
	if c.dumped[kubeapi.ObjectName(about.Kind, about.Namespace, about.Name)] {
		return true
	}
	return slices.ContainsFunc(instances, func(i PodName) bool {
		return i.Namespace == about.Namespace && strings.HasPrefix(about.Name, i.Name+"-")
	})
}
