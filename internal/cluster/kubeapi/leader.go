package kubeapi

import (
	"bufio"
	"context"
	"errors"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// acquired is the message of leader election of every release when it gets the lease
	// (client-go, tools/leaderelection/leaderelection.go, with a capital letter in 0.36).
	acquired = "uccessfully acquired lease"
	// logMargin is how far the clocks of a node and of the lease may differ, maxLog how much of a log
	// is read.
	logMargin = time.Minute
	maxLog    = 8 << 20
)

// HostOf returns the host name of the process that holds a lease, "" if none does.
func HostOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	host, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return host
}

// PodOfLeader returns the pod of the process that holds a lease, or nil if no process holds it or
// its pod is unknown. It is the pod of the holder's host name, see [PodOfHost]. The host name of a
// machine may be in no object of the cluster, as on PMK, which names its nodes by address. Then it
// is the only pod on the host network whose container logged that it acquired the lease.
func PodOfLeader(ctx context.Context, kube kubernetes.Interface, lease *coordinationv1.Lease, pods []corev1.Pod,
	container string) (*corev1.Pod, error) {
	host := HostOf(lease)
	if host == "" {
		return nil, nil
	}
	if pod := PodOfHost(pods, host); pod != nil {
		return pod, nil
	}
	var leader *corev1.Pod
	var failed error
	for i := range pods {
		if !pods[i].Spec.HostNetwork {
			continue
		}
		found, err := acquiredLease(ctx, kube, &pods[i], container, lease.Spec.AcquireTime)
		failed = errors.Join(failed, err) // of another pod than the leader's it does not matter
		if found && leader != nil {
			return nil, nil
		}
		if found {
			leader = &pods[i]
		}
	}
	if leader != nil {
		return leader, nil
	}
	return nil, failed
}

// acquiredLease reports whether a running container logged that it acquired its lease. A process
// that loses the lease ends.
func acquiredLease(ctx context.Context, kube kubernetes.Interface, pod *corev1.Pod, container string,
	since *metav1.MicroTime) (bool, error) {
	limit := int64(maxLog)
	options := &corev1.PodLogOptions{Container: container, LimitBytes: &limit}
	if since != nil {
		options.SinceTime = &metav1.Time{Time: since.Add(-logMargin)}
	}
	doing := "read the log of Pod/" + pod.Namespace + "/" + pod.Name
	text, err := kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return false, Explain(doing, err)
	}
	lines, found := bufio.NewScanner(text), false
	lines.Buffer(nil, maxLog)
	for !found && lines.Scan() {
		found = strings.Contains(lines.Text(), acquired)
	}
	err = errors.Join(lines.Err(), text.Close())
	if err != nil && !found {
		return false, Explain(doing, err)
	}
	return found, nil
}
