package lifecycle

import (
	"context"
	"fmt"
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
	for _, d := range deployments {
		labels := d.GetLabels()
		if labels[ownership.LabelName] != ownership.Scheduler || labels[ownership.LabelComponent] != "" {
			continue
		}
		name := "--name " + labels[ownership.LabelInstance]
		if d.GetNamespace() != metav1.NamespaceSystem {
			name = "-n " + d.GetNamespace() + " " + name
		}
		names = append(names, name)
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
