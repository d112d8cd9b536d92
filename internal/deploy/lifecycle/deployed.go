package lifecycle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/profiles/schema"
)

// hintTime bounds the requests for a hint, which an error or a question waits for.
const hintTime = 5 * time.Second

// DeployedHint returns a hint that lists the schedulers that pmk-sched deployed, or "" if they are
// unknown.
func DeployedHint(ctx context.Context, s *session.Session) string {
	d, err := deploy.Connect(s)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, hintTime)
	defer cancel()
	deployments, err := d.Cluster.Deployments(ctx, metav1.NamespaceAll)
	if err != nil {
		return ""
	}
	return deployedHint(deployments)
}

func deployedHint(deployments []*unstructured.Unstructured) string {
	var names []string
	for name, namespace := range schedulersOf(deployments) {
		names = append(names, flagsFor(namespace, name))
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return "pmk-sched has deployed no scheduler in this cluster"
	case len(names) > maxHinted:
		names = append(names[:maxHinted], "…; `pmk-sched status` lists all")
	}
	return "deployed: " + strings.Join(names, ", ")
}

// schedulersOf returns the names of the schedulers among Deployments that pmk-sched manages, with
// their namespaces.
func schedulersOf(deployments []*unstructured.Unstructured) map[string]string {
	found := map[string]string{}
	for _, d := range deployments {
		labels := d.GetLabels()
		if labels[ownership.LabelName] == ownership.Scheduler && labels[ownership.LabelComponent] == "" {
			found[labels[ownership.LabelInstance]] = d.GetNamespace()
		}
	}
	return found
}

// flagsFor returns the flags that name a scheduler.
func flagsFor(namespace, name string) string {
	if namespace != metav1.NamespaceSystem {
		return "-n " + namespace + " --name " + name
	}
	return "--name " + name
}

// nearDeployed returns the flags for a deployed scheduler whose name is similar to name, or "".
func nearDeployed(ctx context.Context, d deploy.Deps, name string) string {
	ctx, cancel := context.WithTimeout(ctx, hintTime)
	defer cancel()
	deployments, err := d.Cluster.Deployments(ctx, metav1.NamespaceAll)
	if err != nil {
		return ""
	}
	found := schedulersOf(deployments)
	near := schema.Nearest(name, slices.Sorted(maps.Keys(found)))
	if near == "" || near == name {
		return ""
	}
	return flagsFor(found[near], near)
}

// AbsentHint returns a hint about a scheduler that pmk-sched has not deployed: a Deployment of its
// name that pmk-sched does not manage, or a deployed scheduler with a similar name. It returns ""
// if there is neither.
func AbsentHint(ctx context.Context, s *session.Session, namespace, name string) string {
	d, err := deploy.Connect(s)
	if err != nil {
		return ""
	}
	h, err := newHandmadeObjects(s, d.Config)
	if err != nil {
		return ""
	}
	limited, cancel := context.WithTimeout(ctx, hintTime)
	defer cancel()
	live, err := h.get(limited, deploymentOf(namespace, name))
	if err == nil && live != nil && !ownership.IsInstalled(live.GetLabels()) {
		return unmanagedHint(live)
	}
	if near := nearDeployed(ctx, d, name); near != "" {
		return "did you mean " + near + "?"
	}
	return ""
}

// unmanagedHint describes a Deployment that pmk-sched does not manage.
func unmanagedHint(live *unstructured.Unstructured) string {
	text := nameOf(live) + " exists, and pmk-sched does not manage it: "
	object := live.GetName() + " -n " + live.GetNamespace()
	remove := "`kubectl delete deployment " + object + "`"
	if !runsScheduler(live) {
		return text + "it is not the Deployment of a kube-scheduler; " + remove + " deletes it"
	}
	return text + "take it over with `pmk-sched migrate --live " + object + " --apply`, or " + remove
}

// maxHinted is the number of schedulers, or of pods, that a hint names.
const maxHinted = 5

// PodsThatName describes the pods that name a scheduler and have not ended. It returns "" if there
// are none.
func PodsThatName(ctx context.Context, s *session.Session, name string) (string, error) {
	cfg, err := s.Connect()
	if err != nil {
		return "", err
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, hintTime)
	defer cancel()
	pods := podsThatName{name: name}
	options := metav1.ListOptions{FieldSelector: "spec.schedulerName=" + name, Limit: 500}
	for page, err := range kubeapi.Pages(ctx, kube.CoreV1().Pods(metav1.NamespaceAll).List, options) {
		if err != nil {
			return "", fmt.Errorf("list pods of scheduler %s: %w", name, err)
		}
		pods.add(page.Items)
	}
	return pods.String(), nil
}

// podsThatName counts pods.
type podsThatName struct {
	name           string
	bound, waiting int
	examples       []string // of waiting pods
}

func (p *podsThatName) add(pods []corev1.Pod) {
	for i := range pods {
		switch pod := &pods[i]; {
		case pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		case pod.Spec.NodeName != "":
			p.bound++
		default:
			if p.waiting++; p.waiting <= maxHinted {
				p.examples = append(p.examples, pod.Namespace+"/"+pod.Name)
			}
		}
	}
}

func (p *podsThatName) String() string {
	if p.bound+p.waiting == 0 {
		return ""
	}
	text := fmt.Sprintf("%s scheduler %s:", plural.Phrase(p.bound+p.waiting, "pod names", "pods name"), p.name)
	if p.bound > 0 {
		text += " " + plural.Phrase(p.bound, "is on a node and stays there", "are on nodes and stay there")
	}
	if p.waiting == 0 {
		return text + "; what replaces them stays pending without it"
	}
	if p.bound > 0 {
		text += ","
	}
	examples := strings.Join(p.examples, ", ")
	if p.waiting > len(p.examples) {
		examples += ", …"
	}
	return text + " " + plural.Phrase(p.waiting, "stays", "stay") + " pending without it (" + examples + ")"
}
