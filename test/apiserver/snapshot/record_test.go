//go:build linux

package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/capture"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// recording is a running `pmk-sched record`.
type recording struct {
	file   string
	cmd    *exec.Cmd
	stderr run.Output
}

// record starts to record, and returns when changes are recorded.
func record(t *testing.T, args ...string) *recording {
	t.Helper()
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := server.WriteKubeconfig(kubeconfig, ""); err != nil {
		t.Fatal(err)
	}
	r := &recording{file: filepath.Join(dir, "recording.tar.gz")}
	if err := os.WriteFile(r.file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"record", "--kubeconfig", kubeconfig, "--log-level", "debug", "--archive", r.file}, args...)
	r.cmd = exec.CommandContext(run.Context(t), run.Program(t), args...)
	r.cmd.Stderr = &r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			_ = r.cmd.Process.Kill() // it may have ended
			_ = r.cmd.Wait()
		}
		if t.Failed() {
			t.Logf("it wrote:\n%s", r.stderr.String())
		}
	})
	run.Eventually(t, "the objects are read", func(context.Context) (bool, string) {
		return strings.Contains(r.stderr.String(), "recording changes"), r.stderr.String()
	})
	return r
}

// end interrupts it, and returns the header and the changes: KIND NAME NODE PHASE [deleting],
// KIND NAME UNSCHEDULABLE, or KIND NAME gone.
func (r *recording) end(t *testing.T) (snapshot.Header, []string) {
	t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("interrupted: %v", err)
	}
	opened, err := capture.OpenRecording(r.file)
	if err != nil {
		t.Fatal(err)
	}
	var changes []string
	if err := opened.Events(func(e archive.Event) error {
		metadata, _ := e.Object["metadata"].(map[string]any)
		spec, _ := e.Object["spec"].(map[string]any)
		status, _ := e.Object["status"].(map[string]any)
		text := fmt.Sprint(e.Kind.Name, " ", metadata["name"])
		switch {
		case e.Gone:
			text += " gone"
		case e.Kind.Name == "Pod":
			if text += fmt.Sprint(" ", spec["nodeName"], " ", status["phase"]); metadata["deletionTimestamp"] != nil {
				text += " deleting"
			}
		case e.Kind.Name == "Node":
			text += fmt.Sprint(" ", spec["unschedulable"])
		}
		changes = append(changes, text)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return opened.Header, changes
}

// about returns the changes that contain a text, without repetitions.
func about(changes []string, text string) []string {
	all := slices.DeleteFunc(slices.Clone(changes), func(c string) bool { return !strings.Contains(c, text) })
	return slices.Compact(all)
}

func patch(t *testing.T, kube kubernetes.Interface, namespace, name, text string, subresources ...string) {
	t.Helper()
	var err error
	if namespace == "" {
		_, err = kube.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{},
			subresources...)
	} else {
		_, err = kube.CoreV1().Pods(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(text),
			metav1.PatchOptions{}, subresources...)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func deletePod(t *testing.T, kube kubernetes.Interface, namespace, name string) {
	t.Helper()
	now := int64(0)
	options := metav1.DeleteOptions{GracePeriodSeconds: &now}
	if err := kube.CoreV1().Pods(namespace).Delete(t.Context(), name, options); err != nil {
		t.Fatal(err)
	}
}

func createNode(t *testing.T, kube kubernetes.Interface, name string) {
	t.Helper()
	room := corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"),
		"pods": resource.MustParse("110")}
	_, err := kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Allocatable: room, Capacity: room}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = kube.CoreV1().Nodes().Delete(run.Context(t), name, metav1.DeleteOptions{}) // the test may have deleted it
	})
}

func bind(t *testing.T, kube kubernetes.Interface, namespace, name, node string) {
	t.Helper()
	err := kube.CoreV1().Pods(namespace).Bind(t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// A recording has the arrival, binding, completion and deletion of pods and the changes of nodes,
// and nothing for changes that no scheduler reads. Ctrl-C ends it with a complete file; the former
// file is there until then.
func TestChangesAreRecordedUntilInterrupted(t *testing.T) {
	kube := server.Client(t)
	ns := namespace(t, kube)
	createNode(t, kube, "recorded")
	createPods(t.Context(), t, kube, ns, 0, 1)
	r := record(t)
	createPods(t.Context(), t, kube, ns, 1, 1)
	bind(t, kube, ns, podName(1), "recorded")
	patch(t, kube, ns, podName(1), `{"status":{"phase":"Running","hostIP":"10.0.0.1"}}`, "status")
	patch(t, kube, ns, podName(1), `{"metadata":{"annotations":{"note":"`+hidden+`"}}}`)
	patch(t, kube, ns, podName(1), `{"status":{"phase":"Succeeded"}}`, "status")
	deletePod(t, kube, ns, podName(0))
	deletePod(t, kube, ns, podName(1))
	for _, heartbeat := range []string{"2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"} {
		patch(t, kube, "", "recorded",
			`{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"`+heartbeat+`"}]}}`, "status")
	}
	patch(t, kube, "", "recorded", `{"spec":{"unschedulable":true}}`)
	if err := kube.CoreV1().Nodes().Delete(t.Context(), "recorded", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	createNode(t, kube, "recorded-last")
	run.Eventually(t, "the last change is recorded", func(context.Context) (bool, string) {
		log := r.stderr.String()
		last := "gone\t{\"object\": \"pods " + ns + "/" + podName(1)
		return strings.Contains(log, "recorded-last") && strings.Contains(log, last), log
	})
	if text, err := os.ReadFile(r.file); err != nil || string(text) != "old" {
		t.Errorf("the file before the end: %q, %v", text, err)
	}
	h, changes := r.end(t)
	wantPods := []string{
		"Pod pod-000001 <nil> Pending", "Pod pod-000001 recorded Pending", "Pod pod-000001 recorded Running",
		"Pod pod-000001 recorded Succeeded", "Pod pod-000000 <nil> Pending deleting", "Pod pod-000000 gone",
		"Pod pod-000001 recorded Succeeded deleting", "Pod pod-000001 gone",
	}
	if got := about(changes, "Pod pod-00000"); !slices.Equal(got, wantPods) {
		t.Errorf("pods %q, want %q", got, wantPods)
	}
	nodes := about(changes, "Node recorded")
	if len(nodes) != 4 || !slices.Contains(nodes, "Node recorded true") ||
		!slices.Contains(nodes, "Node recorded gone") || nodes[len(nodes)-1] != "Node recorded-last <nil>" {
		t.Errorf("nodes %q", nodes)
	}
	if h.Recording.Events != len(changes) || h.Recording.Seconds <= 0 || h.Release == "" || h.Recording.Listed != 0 {
		t.Errorf("header %+v", h.Recording)
	}
	text, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(uncompress(t, text), []byte(hidden)) {
		t.Error("an annotation is in the recording")
	}
}
