//go:build linux

package commands

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/archives"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// dumped is the name of the scheduler in the archive.
const dumped = "dumped"

// secrets are all that the test puts into the cluster, by where they are.
var secrets = map[string]string{
	"a Secret":            "opaque-value-of-a-secret",
	"stringData":          "another opaque value",
	"a referenced Secret": "value of a referenced secret",
	"a key in a ConfigMap": "-----BEGIN EC PRIVATE KEY-----\n" +
		"MHcCAQEEIBkg4LVWM9nuwNSk3yByxZpYRTBnVJsOcC0b7Jv0k0zRoAoGCCqGSM49\n-----END EC PRIVATE KEY-----",
	"a kubeconfig":            "kubeconfig-token-0123456789",
	"a variable":              "value-of-a-variable",
	"an argument":             "value-of-an-argument",
	"the last-applied object": "value-in-last-applied",
	"an event":                "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJlLW9mLXRva2Vu",
}

func TestArchiveHasNoSecret(t *testing.T) {
	empty(t)
	ctx := run.Context(t)
	kube, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	createDumped(ctx, t, kube)
	dir := t.TempDir()
	file := filepath.Join(dir, "bug.tar.gz")
	shown := run.PMKSched(t, "--kubeconfig", kubeconfig(t), "--node-root", "none", "sysdump", "--name", dumped,
		"--archive", file).OK(t)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("archive %v: %v", info, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".bug*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files %q, %v", left, err)
	}
	files := archives.Read(t, file)
	for _, want := range []string{
		"objects/kube-system/Deployment_dumped.yaml", "objects/kube-system/Secret_dumped.yaml",
		"objects/kube-system/ConfigMap_dumped.yaml",
		"objects/kube-system/Pod_dumped-1.yaml", "objects/_cluster/ClusterRole_system:kube-scheduler.yaml",
		"events/kube-system.json",
		"versions.json", "detect.json", "status.json", "nodes.json", "errors.txt",
	} {
		if files["bug/"+want] == "" {
			t.Errorf("the archive has no %s, but %q", want, slices.Sorted(archives.Names(files)))
		}
	}
	if !strings.Contains(files["bug/errors.txt"], "the log of container kube-scheduler of Pod/kube-system/dumped-1") {
		t.Errorf("errors.txt does not have the log that no kubelet serves:\n%s", files["bug/errors.txt"])
	}
	for where, secret := range secrets {
		for _, text := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
			for file, content := range files {
				if strings.Contains(content, text) || strings.Contains(content, strings.ReplaceAll(text, "\n", `\n`)) {
					t.Errorf("%s has the value of %s", file, where)
				}
			}
			if strings.Contains(shown.String(), text) {
				t.Errorf("the output has the value of %s: %s", where, shown)
			}
		}
	}
}

// The archive of a user without permissions lists the objects that could not be read.
func TestWhatCannotBeReadIsListed(t *testing.T) {
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := server.WriteKubeconfig(kubeconfig, "nobody@example.com"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "bug.tar.gz")
	run.PMKSched(t, "--kubeconfig", kubeconfig, "--node-root", "none", "sysdump", "--archive", file).OK(t)
	missing := archives.Read(t, file)["bug/errors.txt"]
	for _, want := range []string{"list managed objects", "list pods of schedulers and extenders", "list nodes"} {
		if !strings.Contains(missing, want) || !strings.Contains(missing, "nobody@example.com") {
			t.Errorf("errors.txt lacks %q:\n%s", want, missing)
		}
	}
}

// createDumped creates a scheduler with a secret in every field that may contain one.
func createDumped(ctx context.Context, t *testing.T, kube kubernetes.Interface) {
	t.Helper()
	labels := ownership.Labels(dumped)
	labels[ownership.LabelName], labels[ownership.LabelRelease] = ownership.Scheduler, apiserver.Release
	meta := metav1.ObjectMeta{Name: dumped, Namespace: metav1.NamespaceSystem, Labels: labels,
		Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"k":"` + secrets["the last-applied object"] + `"}}`,
		}}
	core := kube.CoreV1()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(core.Secrets(metav1.NamespaceSystem).Create(ctx, &corev1.Secret{
		ObjectMeta: meta, Data: map[string][]byte{"value": []byte(secrets["a Secret"])},
		StringData: map[string]string{"text": secrets["stringData"]},
	}, metav1.CreateOptions{}))
	must(core.Secrets(metav1.NamespaceSystem).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "referenced"},
		Data:       map[string][]byte{"value": []byte(secrets["a referenced Secret"])},
	}, metav1.CreateOptions{}))
	must(core.ConfigMaps(metav1.NamespaceSystem).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{
		"tls.key": secrets["a key in a ConfigMap"], "kubeconfig": "users:\n- name: a\n  user:\n    token: " +
			secrets["a kubeconfig"] + "\n",
		"log": "found " + secrets["a Secret"] + " and " + secrets["a referenced Secret"] + " and " + secrets["stringData"],
	}}, metav1.CreateOptions{}))
	must(core.ServiceAccounts(metav1.NamespaceSystem).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}))
	no := false
	spec := corev1.PodSpec{AutomountServiceAccountToken: &no, Containers: []corev1.Container{{
		Name: "kube-scheduler", Image: "localhost/scheduler:1", Args: []string{"--token", secrets["an argument"]},
		Env: []corev1.EnvVar{{Name: "PLAIN", Value: secrets["a variable"]}},
		EnvFrom: []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "referenced"}}}},
	}}}
	must(kube.AppsV1().Deployments(metav1.NamespaceSystem).Create(ctx,
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		}}, metav1.CreateOptions{}))
	spec.NodeName = "gone" // for a pod without a node the API server returns an empty log and no error
	pod, err := core.Pods(metav1.NamespaceSystem).Create(ctx,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: dumped + "-1", Labels: labels}, Spec: spec}, metav1.CreateOptions{})
	must(pod, err)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "kube-scheduler",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	must(core.Pods(metav1.NamespaceSystem).UpdateStatus(ctx, pod, metav1.UpdateOptions{}))
	must(core.Events(metav1.NamespaceSystem).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "event"}, Reason: "Failed", Message: "rejected " +
			secrets["an event"], LastTimestamp: metav1.Now(),
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: metav1.NamespaceSystem, Name: pod.Name, UID: pod.UID},
	}, metav1.CreateOptions{}))
}
