package simulate

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
)

const (
	// updatesAtOnce limits the nodes that are updated at the same time.
	updatesAtOnce = 16
	// lastNode is a node that the scheduler sees after all others. No pod fits there.
	lastNode = "pmk-sched.simulate.last"
	// updated changes an object in a way that no scheduler reads.
	updated = `{"metadata":{"annotations":{"pmk-sched.io/updated":"true"}}}`
)

// countImages updates the nodes that have images, and returns when the scheduler knows. In a
// cluster kubelets update their nodes every few minutes; a scheduler that has only read them would
// score images by the order in which it has, see [versions.Rules].
func (r *Run) countImages(ctx context.Context) error {
	if !r.Options.Scheduler.Release.Rules().StaleImageCounts {
		return nil
	}
	nodes := r.kube.CoreV1().Nodes()
	var names []string
	all := 0
	err := r.EachNode(ctx, func(node *corev1.Node) {
		if all++; len(node.Status.Images) > 0 {
			names = append(names, node.Name)
		}
	})
	if err != nil || len(names) < 2 {
		return err
	}
	if err := updateNodes(ctx, nodes, names); err != nil {
		return err
	}
	return awaitUpdates(ctx, nodes, r.Scheduler, all)
}

// updateNodes changes nodes in a way that no scheduler reads.
func updateNodes(ctx context.Context, nodes corev1client.NodeInterface, names []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(updatesAtOnce)
	for _, name := range names {
		group.Go(func() error {
			_, err := nodes.Patch(ctx, name, types.MergePatchType, []byte(updated), metav1.PatchOptions{})
			return kubeapi.Explain("update node "+name, err)
		})
	}
	return group.Wait()
}

// awaitUpdates adds a node and removes it. The scheduler counts nodes, and learns of one after the
// other.
func awaitUpdates(ctx context.Context, nodes corev1client.NodeInterface, s *kubescheduler.Process, n int) error {
	last := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: lastNode}, Spec: corev1.NodeSpec{Unschedulable: true}}
	if _, err := nodes.Create(ctx, last, metav1.CreateOptions{}); err != nil {
		return kubeapi.Explain("create node "+lastNode, err)
	}
	if err := s.AwaitNodes(ctx, func(known int) bool { return known > n }); err != nil {
		return fmt.Errorf("wait until the scheduler knows the nodes: %w", err)
	}
	if err := nodes.Delete(ctx, lastNode, metav1.DeleteOptions{}); err != nil {
		return kubeapi.Explain("delete node "+lastNode, err)
	}
	if err := s.AwaitNodes(ctx, func(known int) bool { return known <= n }); err != nil {
		return fmt.Errorf("wait until the scheduler knows the nodes: %w", err)
	}
	return nil
}
