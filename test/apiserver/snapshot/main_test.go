//go:build linux

// Package snapshot tests snapshots of a real API server: their contents, the required permissions,
// and changes of objects in the meantime.
package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot"
	"github.com/pmk-sched/pmk-sched/internal/foresight/snapshot/archive"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

var server *apiserver.Server

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, &server)) }

// taken is a snapshot that a test has read.
type taken struct {
	Header  *snapshot.Header
	Objects map[string][]string // by kind, as JSON
	Text    []byte              // everything, uncompressed
}

// take runs `pmk-sched snapshot` and reads the file.
func take(t *testing.T, args ...string) taken {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cluster.tar.gz")
	result := command(t, append([]string{"--to-file", file, "-o", "json"}, args...)...).OK(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := archive.NewReader(bytes.NewReader(text), archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got := taken{Objects: map[string][]string{}}
	err = r.Each(func(kind *snapshot.Kind, _ string, object map[string]any) error {
		line, err := snapshot.Encode(object)
		got.Objects[kind.Name] = append(got.Objects[kind.Name], string(line))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	h := r.Header()
	got.Header, got.Text = &h, uncompress(t, text)
	printed := run.Decode[snapshot.Header](t, result.Stdout)
	if printed.ResourceVersion != h.ResourceVersion || printed.Pods != h.Pods {
		t.Errorf("printed %+v, the file has %+v", printed, h)
	}
	return got
}

// command runs `pmk-sched snapshot` with all permissions unless the arguments say --as.
func command(t *testing.T, args ...string) run.Result {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := server.WriteKubeconfig(kubeconfig, ""); err != nil {
		t.Fatal(err)
	}
	return run.PMKSched(t, append([]string{"snapshot", "--kubeconfig", kubeconfig}, args...)...)
}

// namespace makes a namespace of the test, with the ServiceAccount that no controller makes here.
func namespace(t *testing.T, kube kubernetes.Interface) string {
	t.Helper()
	name := strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	if _, err := kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := kube.CoreV1().ServiceAccounts(name).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

// createPods creates n pods named PREFIX-00000 and so on.
func createPods(ctx context.Context, t *testing.T, kube kubernetes.Interface, namespace string, from, n int) {
	t.Helper()
	var all errgroup.Group
	all.SetLimit(20)
	for i := from; i < from+n; i++ {
		all.Go(func() error { return createPod(ctx, kube, namespace, i) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
}

func podName(i int) string { return fmt.Sprintf("pod-%06d", i) }

func createPod(ctx context.Context, kube kubernetes.Interface, namespace string, i int) error {
	_, err := kube.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName(i)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "localhost/none:v1"}}},
	}, metav1.CreateOptions{})
	return err
}

// grant creates the objects that `snapshot --rbac` prints after a change of the role, and returns
// the user that has these permissions alone.
func grant(t *testing.T, kube kubernetes.Interface, change func(*rbacv1.ClusterRole), args ...string) (user string) {
	t.Helper()
	ns := namespace(t, kube)
	printed := command(t, append([]string{"--rbac", "-n", ns}, args...)...).OK(t).Stdout
	for document := range strings.SplitSeq(printed, "\n---\n") {
		var kind metav1.TypeMeta
		decode(t, document, &kind)
		var err error
		switch kind.Kind {
		case "ServiceAccount":
			var account corev1.ServiceAccount
			decode(t, document, &account)
			_, err = kube.CoreV1().ServiceAccounts(ns).Create(t.Context(), &account, metav1.CreateOptions{})
		case "ClusterRole":
			var role rbacv1.ClusterRole
			decode(t, document, &role)
			role.Name = ns
			if change != nil {
				change(&role)
			}
			_, err = kube.RbacV1().ClusterRoles().Create(t.Context(), &role, metav1.CreateOptions{})
		case "ClusterRoleBinding":
			var binding rbacv1.ClusterRoleBinding
			decode(t, document, &binding)
			binding.Name, binding.RoleRef.Name = ns, ns // each test has its own
			_, err = kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &binding, metav1.CreateOptions{})
		default:
			t.Fatalf("unexpected %s", document)
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	return "system:serviceaccount:" + ns + ":" + snapshot.RoleName
}

func decode(t *testing.T, document string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(document), into); err != nil {
		t.Fatal(err)
	}
}

// names returns the names of objects.
func names(t *testing.T, objects []string, in string) (all []string) {
	t.Helper()
	for _, text := range objects {
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		if o.Namespace == in {
			all = append(all, o.Name)
		}
	}
	return all
}
