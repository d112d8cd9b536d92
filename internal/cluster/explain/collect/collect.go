// Package collect reads the input for package explain from an API server, and explains pods with
// it.
package collect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
)

// page is the page size for lists.
const page = 500

// reader reads the objects that concern one pod.
type reader struct {
	kube  kubernetes.Interface
	retry *kubeapi.Retrier
	in    *explain.Input
	// processes are the running pods that may be another scheduler than the known ones.
	processes []corev1.Pod
}

// Explain explains why a pod is pending, or why it runs on its node. If the pod does not exist, it
// explains why its workload may not create it.
func Explain(ctx context.Context, s *session.Session, namespace, name string) (*explain.Report, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	input, err := Pod(ctx, cfg, namespace, name, s.Log)
	if err != nil {
		return nil, err
	}
	report := explain.Pod(*input)
	if report.State == explain.Missing && len(report.Findings) == 0 {
		return nil, problem.Invalidf(
			"name its namespace with -n; `kubectl get pods -A` lists pods; events about evicted pods are kept for an hour by default",
			"pod %s does not exist in namespace %s", name, namespace)
	}
	return report, nil
}

// Pod reads the objects that explain a pod. The result names objects that the user must not read.
func Pod(ctx context.Context, cfg *rest.Config, namespace, name string, log *zap.Logger) (*explain.Input, error) {
	cfg = kubeapi.ClientConfig(cfg, log)
	// Decoding nodes and pods from JSON costs several times the CPU.
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	r := &reader{kube: kube, retry: &kubeapi.Retrier{Log: log},
		in: &explain.Input{Namespace: namespace, Name: name, Now: time.Now()}}
	if r.in.Pod, err = kubeapi.Find(ctx, r.retry, kube.CoreV1().Pods(namespace).Get, "Pod", namespace, name); err != nil {
		return nil, err
	}
	if r.in.Pod == nil {
		return r.in, r.all(ctx, r.ended, r.preemptors, r.refusals)
	}
	if err := r.all(ctx, r.events, r.preemptors, r.nodes, r.claims, r.schedulers); err != nil {
		return nil, err
	}
	if r.in.Pod.Spec.NodeName != "" {
		return r.in, nil
	}
	return r.in, r.all(ctx, r.usage, r.others, r.classes)
}

// all reads in this order.
func (r *reader) all(ctx context.Context, reads ...func(context.Context) error) error {
	for _, read := range reads {
		if err := r.optional(read(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// optional notes that the user must not read something, and returns other errors.
func (r *reader) optional(err error) error {
	var forbidden *kubeapi.ForbiddenError
	if errors.As(err, &forbidden) {
		r.in.Unknown = append(r.in.Unknown, err.Error())
		return nil
	}
	return err
}

// pages lists the objects of a kind by pages, with retries.
func pages[T interface{ GetContinue() string }](
	ctx context.Context, r *reader, kind string, list kubeapi.ListFunc[T], o metav1.ListOptions,
) iter.Seq2[T, error] {
	o.Limit = page
	return kubeapi.Pages(ctx, kubeapi.Retrying(r.retry, "list "+kind, list), o)
}

func (r *reader) nodes(ctx context.Context) error {
	for list, err := range pages(ctx, r, "nodes", r.kube.CoreV1().Nodes().List, metav1.ListOptions{}) {
		if err != nil {
			return err
		}
		for i := range list.Items {
			list.Items[i].Status.Images, list.Items[i].ManagedFields = nil, nil // they are large
		}
		r.in.Nodes = append(r.in.Nodes, list.Items...)
	}
	return nil
}

// usage adds up the pods' usage on each node. It keeps no pod except those that may be the pod's
// scheduler.
func (r *reader) usage(ctx context.Context) error {
	used := map[string]*explain.Usage{}
	running := metav1.ListOptions{FieldSelector: "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"}
	for list, err := range pages(ctx, r, "pods", r.kube.CoreV1().Pods(metav1.NamespaceAll).List, running) {
		if err != nil {
			return err
		}
		for i := range list.Items {
			pod := &list.Items[i]
			if used[pod.Spec.NodeName] == nil {
				used[pod.Spec.NodeName] = &explain.Usage{}
			}
			used[pod.Spec.NodeName].Add(pod, r.in.Pod)
			r.addProcess(pod)
		}
	}
	r.in.Usage = used
	return nil
}

func (r *reader) classes(ctx context.Context) error {
	for list, err := range pages(ctx, r, "StorageClasses", r.kube.StorageV1().StorageClasses().List,
		metav1.ListOptions{}) {
		if err != nil {
			return err
		}
		r.in.Classes = append(r.in.Classes, list.Items...)
	}
	return nil
}

// claims reads the claims for the pod's volumes, in their order.
func (r *reader) claims(ctx context.Context) error {
	for i := range r.in.Pod.Spec.Volumes {
		v := &r.in.Pod.Spec.Volumes[i]
		name := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = r.in.Pod.Name + "-" + v.Name
		default:
			continue
		}
		claim := explain.Claim{Name: name}
		if err := r.claim(ctx, &claim); err != nil {
			return err
		}
		r.in.Claims = append(r.in.Claims, claim)
	}
	return nil
}

// claim reads a claim, its volume, and, unless it is bound, the last warning about it.
func (r *reader) claim(ctx context.Context, c *explain.Claim) (err error) {
	ns := r.in.Namespace
	c.Claim, err = kubeapi.Find(ctx, r.retry, r.kube.CoreV1().PersistentVolumeClaims(ns).Get, "PersistentVolumeClaim", ns,
		c.Name)
	switch {
	case err != nil || c.Claim == nil:
		return err
	case c.Claim.Spec.VolumeName == "":
		return r.optional(r.claimEvent(ctx, c))
	}
	volumes := r.kube.CoreV1().PersistentVolumes()
	c.Volume, err = kubeapi.Find(ctx, r.retry, volumes.Get, "PersistentVolume", "", c.Claim.Spec.VolumeName)
	c.Unread = err != nil
	return r.optional(err)
}

func (r *reader) claimEvent(ctx context.Context, c *explain.Claim) error {
	events, err := r.listEvents(ctx, "involvedObject.kind=PersistentVolumeClaim,involvedObject.name="+c.Name)
	for i := range events {
		if events[i].Type == corev1.EventTypeWarning {
			c.Event = events[i].Message
			break
		}
	}
	return err
}
