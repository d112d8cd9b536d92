package sysdump

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/sysdump/redact"
)

// page is the page size for lists.
const page = 250

// PodName names a pod.
type PodName struct{ Namespace, Name string }

// Cluster reads the objects, logs and metrics of schedulers and extenders from an API server into
// an archive.
type Cluster struct {
	// Name limits it to one scheduler or extender. If it is empty, all are read.
	Name string
	// Namespace is read without permission for all namespaces.
	Namespace string
	// Managed are the objects that pmk-sched manages.
	Managed []*unstructured.Unstructured
	// Others are further pods: the default scheduler's pods.
	Others []PodName
	// Metrics reads a pod's metrics.
	Metrics kubeapi.Metrics

	archive *Archive
	redact  *redact.Redactor
	kube    kubernetes.Interface
	retry   *kubeapi.Retrier
	pods    []corev1.Pod
	// dumped are the objects in the archive, as Kind/namespace/name.
	dumped map[string]bool
}

// Write reads and writes everything. It returns an error only if ctx ends. Other errors are noted
// in the archive.
func (c *Cluster) Write(ctx context.Context, cfg *rest.Config, a *Archive, r *redact.Redactor, log *zap.Logger) error {
	kube, err := kubernetes.NewForConfig(kubeapi.ClientConfig(cfg, log))
	if err != nil {
		return fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	c.archive, c.redact, c.kube, c.retry, c.dumped = a, r, kube, &kubeapi.Retrier{Log: log}, map[string]bool{}
	// The values in Secrets are learned before anything is written that may have them.
	for _, write := range []func(
		context.Context){c.readPods, c.secrets, c.objects, c.writePods, c.related, c.nodes, c.logs, c.metrics, c.events} {
		if write(ctx); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// get runs one request, and notes its error.
func (c *Cluster) get(ctx context.Context, doing string, do func(ctx context.Context) error) {
	c.note(ctx, doing, c.retry.Do(ctx, doing, do))
}

// note writes a request's error to the archive.
func (c *Cluster) note(ctx context.Context, doing string, err error) {
	if err != nil && ctx.Err() == nil {
		c.archive.Failed(doing, err)
	}
}

// find returns an object that may not exist, and notes an error.
func find[T any](ctx context.Context, c *Cluster, get kubeapi.GetFunc[T], kind, namespace, name string) *T {
	found, err := kubeapi.Find(ctx, c.retry, get, kind, namespace, name)
	c.note(ctx, "read "+kubeapi.ObjectName(kind, namespace, name), err)
	return found
}

// add writes an object.
func (c *Cluster) add(o *unstructured.Unstructured) {
	name := kubeapi.ObjectName(o.GetKind(), o.GetNamespace(), o.GetName())
	if c.dumped[name] {
		return
	}
	c.dumped[name] = true
	directory := o.GetNamespace()
	if directory == "" {
		directory = "_cluster"
	}
	c.archive.Object("objects/"+directory+"/"+o.GetKind()+"_"+o.GetName()+".yaml", o.Object)
}

// addTyped writes a typed object, whose kind lists leave out.
func (c *Cluster) addTyped(object runtime.Object) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		c.archive.Failed("convert an object", err)
		return
	}
	o := &unstructured.Unstructured{Object: fields}
	if kinds, _, err := scheme.Scheme.ObjectKinds(object); err == nil && len(kinds) > 0 {
		o.SetGroupVersionKind(kinds[0])
	}
	c.add(o)
}

// objects writes the managed objects.
func (c *Cluster) objects(context.Context) {
	for _, o := range c.Managed {
		c.add(o)
	}
}

// readPods reads the pods of schedulers and extenders.
func (c *Cluster) readPods(ctx context.Context) {
	selector := ownership.LabelName + " in (" + ownership.Scheduler + "," + ownership.Extender + ")"
	if c.Name != "" {
		selector += "," + ownership.LabelInstance + "=" + c.Name
	}
	c.get(ctx, "list pods of schedulers and extenders", func(ctx context.Context) error {
		found, err := c.kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if apierrors.IsForbidden(err) {
			found, err = c.kube.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		}
		if err == nil {
			c.pods = found.Items
		}
		return err
	})
	for _, other := range c.Others {
		c.get(ctx, "read "+kubeapi.ObjectName("Pod", other.Namespace, other.Name), func(ctx context.Context) error {
			pod, err := c.kube.CoreV1().Pods(other.Namespace).Get(ctx, other.Name, metav1.GetOptions{})
			if err == nil {
				c.pods = append(c.pods, *pod)
			}
			return err
		})
	}
}

func (c *Cluster) writePods(context.Context) {
	for i := range c.pods {
		c.addTyped(&c.pods[i])
	}
}

// secrets learns the values in the managed Secrets and in the Secrets that the pods refer to.
func (c *Cluster) secrets(ctx context.Context) {
	wanted := map[PodName]bool{}
	for _, o := range c.Managed {
		if o.GetKind() == "Secret" {
			wanted[PodName{o.GetNamespace(), o.GetName()}] = true
		}
	}
	for i := range c.pods {
		for _, name := range secretsOf(&c.pods[i].Spec) {
			wanted[PodName{c.pods[i].Namespace, name}] = true
		}
	}
	for name := range wanted {
		secret := find(ctx, c, c.kube.CoreV1().Secrets(name.Namespace).Get, "Secret", name.Namespace, name.Name)
		if secret != nil {
			c.redact.LearnSecret(secret.Data)
		}
	}
}

// secretsOf returns the names of the Secrets that a pod refers to.
func secretsOf(pod *corev1.PodSpec) []string {
	names := map[string]bool{}
	for _, v := range pod.Volumes {
		switch {
		case v.Secret != nil:
			names[v.Secret.SecretName] = true
		case v.Projected != nil:
			for _, s := range v.Projected.Sources {
				if s.Secret != nil {
					names[s.Secret.Name] = true
				}
			}
		}
	}
	for _, s := range pod.ImagePullSecrets {
		names[s.Name] = true
	}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, from := range container.EnvFrom {
			if from.SecretRef != nil {
				names[from.SecretRef.Name] = true
			}
		}
		for _, env := range container.Env {
			if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil {
				names[env.ValueFrom.SecretKeyRef.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// instances are the namespaces and names of schedulers and extenders.
func (c *Cluster) instances() []PodName {
	found := map[PodName]bool{}
	for _, o := range c.Managed {
		if name := o.GetLabels()[ownership.LabelInstance]; o.GetKind() == "Deployment" && name != "" {
			found[PodName{o.GetNamespace(), name}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b PodName) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
}
