package lifecycle

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/clock"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/base/safeio"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy/handmade"
)

// objectList are objects as the API server has them.
type objectList = []*unstructured.Unstructured

// handmadeObjects reads and changes the objects of a scheduler that pmk-sched does not manage.
type handmadeObjects struct {
	client dynamic.Interface
	retry  *kubeapi.Retrier
}

func newHandmadeObjects(s *session.Session, cfg *rest.Config) (*handmadeObjects, error) {
	client, err := dynamic.NewForConfig(kubeapi.ClientConfig(cfg, s.Log))
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	return &handmadeObjects{client: client, retry: &kubeapi.Retrier{Log: s.Log}}, nil
}

// resource returns the client for an object's kind. The guess is right for the kinds of Kubernetes.
func (h *handmadeObjects) resource(apiVersion, kind, namespace string) dynamic.ResourceInterface {
	gvr, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(apiVersion, kind))
	if strings.HasPrefix(kind, "ClusterRole") {
		return h.client.Resource(gvr)
	}
	return h.client.Resource(gvr).Namespace(namespace)
}

// get returns an object, or nil if there is none.
func (h *handmadeObjects) get(ctx context.Context, o handmade.Object) (*unstructured.Unstructured, error) {
	found, err := kubeapi.Read(ctx, h.retry, "read "+kubeapi.ObjectName(o.Kind, o.Namespace, o.Name),
		func(ctx context.Context) (*unstructured.Unstructured, error) {
			return h.resource(o.APIVersion, o.Kind, o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
		})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// list returns the objects of a kind, in one namespace or in all.
func (h *handmadeObjects) list(
	ctx context.Context, apiVersion, kind, namespace string,
) ([]unstructured.Unstructured, error) {
	all, err := kubeapi.Read(ctx, h.retry, "list "+kind+"s",
		func(ctx context.Context) (*unstructured.UnstructuredList, error) {
			return h.resource(apiVersion, kind, namespace).List(ctx, metav1.ListOptions{})
		})
	if err != nil {
		return nil, err
	}
	return all.Items, nil
}

// existing returns those of the objects that the cluster has and that pmk-sched does not manage, as
// they can be created again.
func (h *handmadeObjects) existing(ctx context.Context, objects []handmade.Object) (objectList, error) {
	var found objectList
	for _, o := range objects {
		live, err := h.get(ctx, o)
		if err != nil {
			return nil, err
		}
		if live != nil && !ownership.IsInstalled(live.GetLabels()) {
			found = append(found, creatable(live))
		}
	}
	return found, nil
}

// creatable returns an object without what the API server adds.
func creatable(live *unstructured.Unstructured) *unstructured.Unstructured {
	made := live.DeepCopy()
	unstructured.RemoveNestedField(made.Object, "status")
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields",
		"selfLink"} {
		unstructured.RemoveNestedField(made.Object, "metadata", field)
	}
	annotations := made.GetAnnotations()
	for _, name := range []string{"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"} {
		delete(annotations, name)
	}
	made.SetAnnotations(annotations)
	return made
}

// manifestOf returns objects as one text, which `pmk-sched migrate -f` and kubectl read.
func manifestOf(objects objectList) ([]byte, error) {
	var all [][]byte
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", nameOf(o), err)
		}
		all = append(all, text)
	}
	return bytes.Join(all, []byte("---\n")), nil
}

func keyOf(o *unstructured.Unstructured) handmade.Object {
	return handmade.Object{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(),
		Name: o.GetName()}
}

func nameOf(o *unstructured.Unstructured) string {
	return kubeapi.ObjectName(o.GetKind(), o.GetNamespace(), o.GetName())
}

// save writes the objects to a new file. They may contain the scheduler's private key.
func save(ctx context.Context, file string, objects objectList) error {
	if _, err := os.Stat(file); err == nil {
		return problem.Invalidf("name another with --backup, or move it away", "%s exists already", file)
	}
	text, err := manifestOf(objects)
	if err != nil {
		return err
	}
	return safeio.WriteFile(ctx, file, 0o600, func(f *os.File) error {
		_, err := f.Write(text)
		return err
	})
}

// remove deletes objects with their dependents and waits until they are gone.
func (h *handmadeObjects) remove(ctx context.Context, objects objectList) error {
	foreground := metav1.DeletePropagationForeground
	for _, o := range objects {
		resource := h.resource(o.GetAPIVersion(), o.GetKind(), o.GetNamespace())
		err := h.retry.Do(ctx, "delete "+nameOf(o), func(ctx context.Context) error {
			return resource.Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &foreground})
		})
		if err == nil && o.GetKind() == "Deployment" {
			err = h.endPods(ctx, o)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for _, o := range objects {
		for {
			live, err := h.get(ctx, keyOf(o))
			if err != nil {
				return err
			}
			if live == nil {
				break
			}
			if err := clock.Sleep(ctx, 100*time.Millisecond); err != nil {
				return fmt.Errorf("wait until %s is gone: %w", nameOf(o), err)
			}
		}
	}
	return nil
}

// endPods ends a Deployment's pods at once: a kube-scheduler without leader election runs until its
// grace period ends, and a scheduler has nothing to save.
func (h *handmadeObjects) endPods(ctx context.Context, deployment *unstructured.Unstructured) error {
	pods, err := h.list(ctx, "v1", "Pod", deployment.GetNamespace())
	if err != nil {
		return err
	}
	soon := int64(1)
	for _, pod := range pods {
		if !slices.ContainsFunc(pod.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
			name, found := strings.CutPrefix(owner.Name, deployment.GetName()+"-")
			return owner.Kind == "ReplicaSet" && found && !strings.Contains(name, "-")
		}) {
			continue
		}
		err := h.resource("v1", "Pod", pod.GetNamespace()).Delete(ctx, pod.GetName(),
			metav1.DeleteOptions{GracePeriodSeconds: &soon})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete pod %s: %w", pod.GetName(), err)
		}
	}
	return nil
}

// restore creates those of the objects that are missing, and waits until the Deployment among them
// is available.
func (h *handmadeObjects) restore(ctx context.Context, objects objectList) error {
	for _, o := range objects {
		resource := h.resource(o.GetAPIVersion(), o.GetKind(), o.GetNamespace())
		err := h.retry.Do(ctx, "create "+nameOf(o), func(ctx context.Context) error {
			_, err := resource.Create(ctx, o, metav1.CreateOptions{})
			return err
		})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	if at < 0 {
		return nil
	}
	return h.waitAvailable(ctx, objects[at])
}

func (h *handmadeObjects) waitAvailable(ctx context.Context, o *unstructured.Unstructured) error {
	for {
		live, err := h.get(ctx, keyOf(o))
		if err != nil {
			return err
		}
		if live == nil {
			return fmt.Errorf("wait for %s: it was deleted", nameOf(o))
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &d); err != nil {
			return fmt.Errorf("read %s: %w", nameOf(o), err)
		}
		if d.Status.ObservedGeneration >= d.Generation && d.Status.AvailableReplicas >= ptrOr(d.Spec.Replicas, 1) {
			return nil
		}
		if err := clock.Sleep(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("wait until %s is available (%d of %d replicas are): %w", nameOf(o), d.Status.AvailableReplicas,
				ptrOr(d.Spec.Replicas, 1), err)
		}
	}
}

func ptrOr(n *int32, otherwise int32) int32 {
	if n == nil {
		return otherwise
	}
	return *n
}
