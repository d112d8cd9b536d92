//go:build linux

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/versions"
)

// workerSelector selects the nodes that kwok simulates.
const (
	workerLabel, workerValue = "type", "kwok"
	workerSelector           = workerLabel + "=" + workerValue
)

// stages configures how kwok simulates nodes and pods: a node with a renewed lease is ready, a
// bound pod runs, a deleted pod is removed. See
// https://kwok.sigs.k8s.io/docs/user/stages-configuration/.
const stages = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: node-ready
spec:
  resourceRef:
    apiGroup: v1
    kind: Node
  selector:
    matchExpressions:
    - key: '.status.conditions.[] | select( .type == "Ready" ) | .status'
      operator: NotIn
      values: ["True"]
  next:
    statusTemplate: |
      conditions:
      {{ range NodeConditions }}
      - type: {{ .type | Quote }}
        status: {{ .status | Quote }}
        reason: {{ .reason | Quote }}
        message: {{ .message | Quote }}
        lastHeartbeatTime: {{ Now | Quote }}
        lastTransitionTime: {{ Now | Quote }}
      {{ end }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-running
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - key: .metadata.deletionTimestamp
      operator: DoesNotExist
    - key: .status.phase
      operator: In
      values: ["Pending"]
  next:
    statusTemplate: |
      phase: Running
      startTime: {{ Now | Quote }}
      hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
      podIP: {{ PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) | Quote }}
      conditions:
      {{ range $type := list "Initialized" "Ready" "ContainersReady" }}
      - type: {{ $type }}
        status: "True"
        lastTransitionTime: {{ Now | Quote }}
      {{ end }}
      containerStatuses:
      {{ range .spec.containers }}
      - name: {{ .name | Quote }}
        image: {{ .image | Quote }}
        ready: true
        restartCount: 0
        state:
          running:
            startedAt: {{ Now | Quote }}
      {{ end }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-gone
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - key: .metadata.deletionTimestamp
      operator: Exists
  next:
    finalizers:
      empty: true
    delete: true
`

func kwokDaemon(binary, kubeconfig, config, address string) daemon {
	return daemon{"kwok", []string{
		binary,
		"--config=" + config,
		"--kubeconfig=" + kubeconfig,
		"--manage-all-nodes=false",
		"--manage-nodes-with-label-selector=" + workerSelector,
		"--node-ip=" + address,
		"--cidr=10.245.0.0/16",
		// kwok renews a lease after a quarter of its duration: often enough for the node
		// controller's 40s, without loading the API server.
		"--node-lease-duration-seconds=100",
	}}
}

// addWorkers starts kwok, where no failure of a node stops it, creates the workers and waits until
// they are ready.
func (u *bringUp) addWorkers(ctx context.Context) error {
	config := filepath.Join(u.lab.dir, "kwok.yaml")
	if err := os.WriteFile(config, []byte(stages), 0o644); err != nil {
		return fmt.Errorf("write kwok's configuration: %w", err)
	}
	first, network := u.lab.first(), u.lab.network()
	d := kwokDaemon(first.binary("kwok"), u.lab.Kubeconfig(), config, first.address.String())
	if err := network.startDaemon(d, u.machine.path); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range u.o.Nodes {
		group.Go(func() error {
			n := worker(i+1, first.address, u.o.Release)
			_, err := u.client.CoreV1().Nodes().Create(groupCtx, n, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("create worker %s: %w", n.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return network.waitFor(ctx, "the workers", "kwok", func(ctx context.Context) error {
		ready, total, err := u.lab.workersReady(ctx, u.client)
		if err == nil && ready < u.o.Nodes {
			err = fmt.Errorf("%d of %s ready", ready, plural.Phrase(total, "worker is", "workers are"))
		}
		return err
	})
}

// worker returns a Node object as a kubelet would register it. Its condition is not ready until
// kwok updates it, and its heartbeat is a minute old: the node lifecycle controller adopts a
// condition only if its heartbeat, a time in whole seconds, differs from the one that it saw
// before (tryUpdateNodeHealth in pkg/controller/nodelifecycle/node_lifecycle_controller.go). If
// kwok's heartbeat were in the same second, the controller would go on marking the node's pods not
// ready, because kwok writes no further heartbeat.
func worker(number int, address netip.Addr, release versions.Release) *corev1.Node {
	name := fmt.Sprintf("worker-%03d", number)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("16"),
		corev1.ResourceMemory:           resource.MustParse("64Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("200Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
	}
	now := time.Now()
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
			workerLabel: workerValue,
		}},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: address.String()},
				{Type: corev1.NodeHostName, Address: name},
			},
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "Starting",
				Message:            "not yet managed by kwok",
				LastHeartbeatTime:  metav1.NewTime(now.Add(-time.Minute)),
				LastTransitionTime: metav1.NewTime(now),
			}},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:          release.String(),
				ContainerRuntimeVersion: "kwok://" + programs.KwokVersion,
				OperatingSystem:         runtime.GOOS, Architecture: runtime.GOARCH, OSImage: "kwok",
			},
		},
	}
}
