package ask

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/versions"
)

// classes are the objects that an API server's admission applies to new pods and claims.
type classes struct {
	release    versions.Release
	priorities map[string]*schedulingv1.PriorityClass
	runtimes   map[string]*nodev1.RuntimeClass
	// storage is the name of the default StorageClass.
	storage string
	limits  []corev1.LimitRange // of the question's namespaces
}

// readClasses reads the classes of the cluster, and the LimitRanges in namespaces.
func readClasses(
	ctx context.Context, kube kubernetes.Interface, release versions.Release, namespaces []string,
) (*classes, error) {
	c := &classes{release: release, priorities: map[string]*schedulingv1.PriorityClass{},
		runtimes: map[string]*nodev1.RuntimeClass{}}
	for name, value := range map[string]int32{"system-node-critical": 2000001000, "system-cluster-critical": 2000000000} {
		c.priorities[name] = &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	}
	options := metav1.ListOptions{ResourceVersion: "0"}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		list, err := kube.SchedulingV1().PriorityClasses().List(ctx, options)
		if err != nil {
			return kubeapi.Explain("read the PriorityClasses", err)
		}
		for i := range list.Items {
			c.priorities[list.Items[i].Name] = &list.Items[i]
		}
		return nil
	})
	group.Go(func() error {
		list, err := kube.NodeV1().RuntimeClasses().List(ctx, options)
		if err != nil {
			return kubeapi.Explain("read the RuntimeClasses", err)
		}
		for i := range list.Items {
			c.runtimes[list.Items[i].Name] = &list.Items[i]
		}
		return nil
	})
	group.Go(func() error {
		list, err := kube.StorageV1().StorageClasses().List(ctx, options)
		if err != nil {
			return kubeapi.Explain("read the StorageClasses", err)
		}
		c.storage = defaultStorageClass(list.Items)
		return nil
	})
	limits := make([][]corev1.LimitRange, len(namespaces))
	for i, namespace := range namespaces {
		group.Go(func() error {
			list, err := kube.CoreV1().LimitRanges(namespace).List(ctx, options)
			if err != nil {
				return kubeapi.Explain("read the LimitRanges", err)
			}
			limits[i] = list.Items
			return nil
		})
	}
	err := group.Wait()
	c.limits = slices.Concat(limits...)
	return c, err
}

// defaultStorageClass returns the newest default class, as the API server selects it.
func defaultStorageClass(all []storagev1.StorageClass) string {
	var found *storagev1.StorageClass
	for i := range all {
		class := &all[i]
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] != "true" &&
			class.Annotations["storageclass.beta.kubernetes.io/is-default-class"] != "true" {
			continue
		}
		switch {
		case found == nil, found.CreationTimestamp.Before(&class.CreationTimestamp),
			found.CreationTimestamp.Equal(&class.CreationTimestamp) && class.Name < found.Name:
			found = class
		}
	}
	if found == nil {
		return ""
	}
	return found.Name
}

// setPriority sets the priority of the pod's class (plugin/pkg/admission/priority).
func (c *classes) setPriority(pod *corev1.Pod) (refused string, err error) {
	spec := &pod.Spec
	given := spec.Priority
	var class *schedulingv1.PriorityClass
	if spec.PriorityClassName == "" {
		class = c.defaultPriority()
	} else if class = c.priorities[spec.PriorityClassName]; class == nil {
		return "", problem.Invalidf("add its manifest to the cluster", "pod %s/%s: there is no PriorityClass %s", pod.Namespace,
			pod.Name, spec.PriorityClassName)
	}
	value, policy := int32(0), corev1.PreemptLowerPriority
	if class != nil {
		spec.PriorityClassName, value = class.Name, class.Value
		if class.PreemptionPolicy != nil {
			policy = *class.PreemptionPolicy
		}
	}
	if given != nil && *given != value {
		return fmt.Sprintf("spec.priority %d is not that of its PriorityClass, %d", *given, value), nil
	}
	if spec.PreemptionPolicy != nil && *spec.PreemptionPolicy != policy {
		return fmt.Sprintf("spec.preemptionPolicy %s is not that of its PriorityClass, %s", *spec.PreemptionPolicy, policy), nil
	}
	spec.Priority, spec.PreemptionPolicy = &value, &policy
	return "", nil
}

// defaultPriority returns the default class with the lowest value, or nil.
func (c *classes) defaultPriority() *schedulingv1.PriorityClass {
	var found *schedulingv1.PriorityClass
	for _, class := range c.priorities {
		if class.GlobalDefault && (found == nil || class.Value < found.Value) {
			found = class
		}
	}
	return found
}

// applyRuntimeClass sets the overhead and the nodes of the pod's RuntimeClass
// (plugin/pkg/admission/runtimeclass).
func (c *classes) applyRuntimeClass(pod *corev1.Pod) (refused string, err error) {
	if pod.Spec.RuntimeClassName == nil || *pod.Spec.RuntimeClassName == "" {
		return "", nil
	}
	class := c.runtimes[*pod.Spec.RuntimeClassName]
	if class == nil {
		return "", problem.Invalidf("add its manifest to the cluster", "pod %s/%s: there is no RuntimeClass %s", pod.Namespace,
			pod.Name, *pod.Spec.RuntimeClassName)
	}
	if class.Overhead != nil {
		pod.Spec.Overhead = class.Overhead.PodFixed
	}
	if class.Scheduling == nil {
		return "", nil
	}
	for key, value := range class.Scheduling.NodeSelector {
		if have, ok := pod.Spec.NodeSelector[key]; ok && have != value {
			return fmt.Sprintf("its nodeSelector %s=%s conflicts with that of RuntimeClass %s", key, have, class.Name), nil
		}
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{}
		}
		pod.Spec.NodeSelector[key] = value
	}
	for _, toleration := range class.Scheduling.Tolerations {
		same := func(t corev1.Toleration) bool { return t.MatchToleration(&toleration) }
		if !slices.ContainsFunc(pod.Spec.Tolerations, same) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration)
		}
	}
	return "", nil
}
