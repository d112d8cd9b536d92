package kubeapi

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/cluster/podstatus"
)

const (
	// attempts and acquired are leader election messages in every release: when a process begins to
	// wait for the lease, and when it gets it (client-go, tools/leaderelection/leaderelection.go, with
	// capital letters from 0.36 on). Neither names the process.
	attempts = "ttempting to acquire leader lease"
	acquired = "uccessfully acquired lease"
	// maxLog bounds how much of a log is read, in bytes, and logTimeout how long.
	maxLog     = 8 << 20
	logTimeout = 5 * time.Second
)

// HostOf returns the host name of the process that holds a lease, "" if none does. Several machines
// may have the same host name.
func HostOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	host, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return host
}

// PodOfLeader returns the pod of the process that holds a lease, or nil if no process holds it, a
// process without a pod holds it, or the pod is unknown.
//
// The holder is named by its host name and a UUID. A pod has a host name of its own, which is its
// name. On the host network the host name belongs to the machine. It may be in no object of the
// cluster, as on PMK, which names its nodes by address, and several machines may have the same one.
// There the container's logs show which process acquired the lease, see leaderByLogs. Logs are read
// only for that. The error is the failure to read them if it leaves the pod unknown.
func PodOfLeader(ctx context.Context, kube kubernetes.Interface, lease *coordinationv1.Lease, pods []corev1.Pod,
	container string) (*corev1.Pod, error) {
	host := HostOf(lease)
	if host == "" {
		return nil, nil
	}
	if pod := PodOfHost(pods, host); pod != nil {
		return pod, nil
	}
	var candidates []*corev1.Pod
	for i := range pods {
		if pods[i].Spec.HostNetwork {
			candidates = append(candidates, &pods[i])
		}
	}
	logs := make([]electionLog, len(candidates))
	failed := make([]error, len(candidates))
	var reading sync.WaitGroup
	for i, pod := range candidates {
		reading.Go(func() { logs[i], failed[i] = readElection(ctx, kube, pod, container) })
	}
	reading.Wait()
	if i := leaderByLogs(lease, logs); i >= 0 {
		return candidates[i], nil
	}
	return nil, errors.Join(failed...)
}

// AcquiredLease reports whether a container's running process logged that it acquired its lease.
func AcquiredLease(ctx context.Context, kube kubernetes.Interface, pod *corev1.Pod, container string) (bool, error) {
	log, err := readElection(ctx, kube, pod, container)
	return log.state == leads, err
}

// electionState is what a process's log shows about the lease.
type electionState int

const (
	// unknown: the log cannot be read or has neither message. A kubelet returns a log's newest file,
	// and the messages may be in an older one.
	unknown electionState = iota
	// waits: the process waits for the lease or has ended.
	waits
	// leads: the process acquired the lease. A process that loses the lease ends.
	leads
)

type electionLog struct {
	state electionState
	// acquired is when the process logged that it acquired the lease.
	acquired time.Time
}

// leaderByLogs returns the index of the process that holds the lease, or -1 if no process holds it
// or the process is unknown. The holder logged that it acquired the lease. If two did, one is about
// to end: the holder wrote its message right after the lease's time, which is from the same clock.
// If none did, the holder is the only process whose log does not show that it waits.
func leaderByLogs(lease *coordinationv1.Lease, logs []electionLog) int {
	var leading, undecided []int
	for i := range logs {
		switch logs[i].state {
		case leads:
			leading = append(leading, i)
		case unknown:
			undecided = append(undecided, i)
		case waits:
		}
	}
	since := lease.Spec.AcquireTime
	switch {
	case len(leading) == 1:
		return leading[0]
	case len(leading) == 0 && len(undecided) == 1:
		return undecided[0]
	case len(leading) == 0 || since == nil:
		return -1
	}
	distance := func(i int) time.Duration { return logs[i].acquired.Sub(since.Time).Abs() }
	return slices.MinFunc(leading, func(a, b int) int { return cmp.Compare(distance(a), distance(b)) })
}

// readElection reads a container's log up to the message that it acquired its lease.
func readElection(ctx context.Context, kube kubernetes.Interface, pod *corev1.Pod, container string) (
	log electionLog, err error) {
	status := podstatus.StatusOf(pod, container)
	if status != nil && (status.State.Waiting != nil || status.State.Terminated != nil) {
		return electionLog{state: waits}, nil // the log is the one of the process before
	}
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	limit := int64(maxLog)
	options := &corev1.PodLogOptions{Container: container, LimitBytes: &limit, Timestamps: true}
	doing := "read the log of Pod/" + pod.Namespace + "/" + pod.Name
	text, err := kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return electionLog{}, Explain(doing, err)
	}
	defer func() { _ = text.Close() }() // nothing is written
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, maxLog)
	read := 0
	for lines.Scan() {
		read += len(lines.Bytes()) + 1
		switch line := lines.Text(); {
		case strings.Contains(line, acquired):
			stamp, _, _ := strings.Cut(line, " ")
			at, _ := time.Parse(time.RFC3339Nano, stamp)
			return electionLog{state: leads, acquired: at}, nil
		case strings.Contains(line, attempts):
			log.state = waits
		}
	}
	if err := lines.Err(); err != nil {
		return electionLog{}, Explain(doing, err)
	}
	if read >= maxLog {
		return electionLog{}, nil // the message may follow
	}
	return log, nil
}
