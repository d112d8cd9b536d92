package replace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/replace/staticpod"
)

// RoundTrip answers as the API server.
func (n *testNode) RoundTrip(req *http.Request) (*http.Response, error) {
	pod := n.pod()
	var object any
	switch at := req.URL.Path; {
	case strings.HasSuffix(at, "/log"):
		return answer(req, http.StatusOK, []byte("this scheduler ends at once")), nil
	case strings.HasSuffix(at, "/pods") && pod != nil: // as a table
		object = &metav1.Table{
			TypeMeta:          metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"},
			ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name", Type: "string"}},
			Rows:              []metav1.TableRow{{Cells: []any{pod.Name}}},
		}
	case strings.HasSuffix(at, "/pods/"+n.layout.Pod+"-n1") && pod != nil:
		object = pod
	case strings.HasSuffix(at, "/leases/kube-scheduler") && pod != nil:
		object = leaseOf(pod)
	case strings.HasSuffix(at, "/configmaps"):
		object = &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
	default:
		status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
		text, err := json.Marshal(status)
		return answer(req, http.StatusNotFound, text), err
	}
	text, err := json.Marshal(object)
	return answer(req, http.StatusOK, text), err
}

func answer(req *http.Request, status int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// pod returns the mirror pod of the manifest, or nil if the manifest cannot be read. A scheduler
// that crashes starts again every 10 s.
func (n *testNode) pod() *corev1.Pod {
	text, err := os.ReadFile(n.path(n.layout.Manifest))
	pod := &corev1.Pod{}
	if err != nil || yaml.Unmarshal(text, pod) != nil {
		return nil
	}
	hash := staticpod.Hash(text)[:hashLength]
	if pod.UID != "" {
		hash = string(pod.UID)
	}
	pod.TypeMeta, pod.Name, pod.Spec.NodeName = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, pod.Name+"-n1", "n1"
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations["kubernetes.io/config.hash"], pod.Annotations[corev1.MirrorPodAnnotationKey] = hash, hash
	id := "containerd://" + staticpod.Hash(text)[:hashLength]
	ready := corev1.ConditionTrue
	for _, c := range pod.Spec.Containers {
		status := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ContainerID: "containerd://" + c.Name, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
		if c.Name == schedulerContainer {
			status.ContainerID = id
			if n.bad.Load() == string(text) {
				ready, status.Ready = corev1.ConditionFalse, false
				status.ContainerID = fmt.Sprintf("%s-%d", id, time.Now().Unix()/10)
				status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7,
					ContainerID: status.ContainerID}}
			}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	pod.Status.Phase = corev1.PodRunning
	return pod
}

// leaseOf returns the lease that the scheduler of a pod holds.
func leaseOf(pod *corev1.Pod) *coordinationv1.Lease {
	holder, now := "", metav1.NowMicro()
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == schedulerContainer {
			holder = "n1_" + status.ContainerID
		}
	}
	return &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1",
			Kind: "Lease"}, ObjectMeta: metav1.ObjectMeta{Name: schedulerLease},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now, AcquireTime: &now},
	}
}
