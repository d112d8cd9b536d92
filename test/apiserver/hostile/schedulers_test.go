//go:build linux && (cases || faults)

package hostile

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
)

// scheduler is a scheduler whose revisions an attacker wrote.
type scheduler struct {
	name string
	// request is what its record asks for, nil: nothing special.
	request func(spec *v1alpha1.CustomSchedulerSpec)
	// objects are more objects of its revisions.
	objects []*unstructured.Unstructured
	// change changes the Secret of its last revision.
	change func(t *testing.T, secret *corev1.Secret)
	// copies is how many more revisions there are.
	copies int
}

const namespace = metav1.NamespaceSystem

// The data keys and labels of a revision, see internal/cluster/apply.
const (
	objectsKey = "objects.json.gz"
	recordKey  = "record.json.gz"
)

// schedulers returns the hostile schedulers.
func schedulers(t *testing.T, m *machine) []scheduler {
	yes := true
	executing := executingPlugin(t, m)
	data := func(key string, text func(io.Writer) error) func(*testing.T, *corev1.Secret) {
		packed := packedBy(t, text)
		return func(_ *testing.T, secret *corev1.Secret) { secret.Data[key] = packed }
	}
	repeat := func(begin, more, end string, bytes int) func(io.Writer) error {
		return func(w io.Writer) error {
			chunk := strings.Repeat(more, 1<<20/len(more))
			_, err := io.WriteString(w, begin)
			for written := 0; written < bytes && err == nil; written += len(chunk) {
				_, err = io.WriteString(w, chunk)
			}
			_, endErr := io.WriteString(w, end)
			return errors.Join(err, endErr)
		}
	}
	return []scheduler{
		{name: "reads-key", request: func(s *v1alpha1.CustomSchedulerSpec) {
			s.Extenders = []v1alpha1.Extender{{Name: "x", URLPrefix: "https://127.0.0.1:1/", FilterVerb: "filter",
				EnableHTTPS: &yes, Ignorable: &yes, TLSConfig: &v1alpha1.TLSConfig{Insecure: true,
					CertFile: "client.crt", CertData: []byte(certificate), KeyFile: m.key}}}
		}},
		{name: "reads-plugin", request: func(s *v1alpha1.CustomSchedulerSpec) {
			s.Source.Plugins = []v1alpha1.Plugin{{Path: m.plugin}}
		}},
		{name: "reads-base", request: func(s *v1alpha1.CustomSchedulerSpec) { s.Image.Base = m.base }},
		{name: "reads-file", request: func(s *v1alpha1.CustomSchedulerSpec) { s.Configuration.File = m.configuration }},
		{name: "fetches", request: func(s *v1alpha1.CustomSchedulerSpec) {
			s.Source.From = "git:http://" + m.elsewhere + "/kubernetes.git"
		}},
		{name: "reads-source", request: func(s *v1alpha1.CustomSchedulerSpec) { s.Source.From = "git:" + m.home }},
		{name: "executes", request: func(s *v1alpha1.CustomSchedulerSpec) {
			s.Source.Plugins = []v1alpha1.Plugin{{Path: "./evil", Content: executing}}
		}},
		{name: "pushes", request: func(s *v1alpha1.CustomSchedulerSpec) {
			s.Image.Repository = m.registry + "/team/kube-scheduler"
		}},
		{name: "escalates", objects: escalation()},
		{name: "array", change: data(objectsKey, repeat("[0", ",0", "]", 64<<20))},
		{name: "deep", change: data(objectsKey, repeat("[", "[", "", 64<<20))},
		{name: "objects", change: data(objectsKey, repeat(`[{}`, ",{}", "]", 32<<20))},
		{name: "record", change: data(recordKey, repeat(`{"scheduler":{"args":[""`, `,""`, "]}}", 63<<20))},
		{name: "number", change: func(_ *testing.T, secret *corev1.Secret) {
			secret.Labels[ownership.LabelRevision] = "9223372036854775807"
			secret.Name = "pmk-sched-number-revision-9223372036854775807"
		}},
		{name: "many", copies: 1000},
		{name: "controls", change: func(_ *testing.T, secret *corev1.Secret) {
			for _, key := range []string{"description", "deployed-by", "origin", "reason"} {
				secret.Annotations["pmk-sched.io/"+key] = key + control
			}
		}},
	}
}

// certificate is a block that is taken for a certificate.
const certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

// executingPlugin returns the sources of a plugin that writes a file when it is executed.
func executingPlugin(t *testing.T, m *machine) []byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "evil")
	cmd := exec.CommandContext(run.Context(t), run.Program(t), "plugin", "new", "--dir", dir, "evil")
	cmd.Env = m.environ(t)
	run.Command(t, cmd).OK(t)
	text := fmt.Sprintf("package evil\n\nimport \"os\"\n\nfunc init() { os.WriteFile(%q, nil, 0o600) }\n", m.executed)
	if err := os.WriteFile(filepath.Join(dir, "init.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	content, err := plugins.Archive(plugins.Plugin{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// escalation are objects with the labels of the scheduler escalates that no scheduler has.
func escalation() []*unstructured.Unstructured {
	labels := map[string]any{ownership.LabelManagedBy: ownership.Manager, ownership.LabelName: ownership.Scheduler,
		ownership.LabelInstance: "escalates"}
	const name = "escalates-attacker"
	return []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
			"metadata": map[string]any{"name": name, "labels": labels},
			"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
				"name": "cluster-admin"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "default", "namespace": "default"}}}},
		{Object: map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet",
			"metadata": map[string]any{"name": name, "namespace": "default", "labels": labels},
			"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
				"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
					"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "localhost/c:v1"}}}}}}},
	}
}

// put writes two revisions of the scheduler, as if it were deployed, after it has deleted all.
func (s *scheduler) put(t *testing.T, m *machine) {
	t.Helper()
	ctx := run.Context(t)
	secrets := server.Client(t).CoreV1().Secrets(namespace)
	err := secrets.DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: ownership.LabelInstance + "=" + s.name + "," + ownership.LabelRevision})
	if err != nil {
		t.Fatal(err)
	}
	client, err := apply.New(server.Config(), apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan := s.plan(t, m)
	record, err := plan.Record()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		revision, err := client.SaveRevision(ctx, apply.Revision{
			RevisionInfo: apply.RevisionInfo{Name: s.name, Namespace: namespace, Description: plan.Description()},
			Objects:      plan.Objects, Record: record})
		if err == nil {
			err = client.SetRevisionStatus(ctx, &revision.RevisionInfo, apply.Deployed, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		s.addObjects(ctx, t, revision)
	}
	if _, err := client.Apply(ctx, plan.Objects); err != nil {
		t.Fatal(err)
	}
	last, err := secrets.Get(ctx, "pmk-sched-"+s.name+"-revision-2", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.alter(ctx, t, last)
}

// addObjects writes the objects of the attacker into the Secret of a revision, which pmk-sched
// would not save.
func (s *scheduler) addObjects(ctx context.Context, t *testing.T, revision *apply.Revision) {
	t.Helper()
	if s.objects == nil {
		return
	}
	secrets := server.Client(t).CoreV1().Secrets(namespace)
	name := fmt.Sprintf("pmk-sched-%s-revision-%d", s.name, revision.Number)
	secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(append(slices.Clone(revision.Objects), s.objects...))
	if err != nil {
		t.Fatal(err)
	}
	secret.Data[objectsKey] = packed(t, text)
	if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// alter changes the last revision, or makes copies of it.
func (s *scheduler) alter(ctx context.Context, t *testing.T, last *corev1.Secret) {
	t.Helper()
	secrets := server.Client(t).CoreV1().Secrets(namespace)
	create := func(secret *corev1.Secret) {
		secret.ResourceVersion, secret.UID = "", ""
		if _, err := secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if s.change != nil {
		if err := secrets.Delete(ctx, last.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.change(t, last)
		create(last)
	}
	for i := range s.copies {
		last.Name = fmt.Sprintf("pmk-sched-%s-revision-%d", s.name, i+3)
		last.Labels[ownership.LabelRevision] = fmt.Sprint(i + 3)
		create(last)
	}
}

// plan returns the plan of the scheduler at an older release than the cluster's, with the request
// of the attacker.
func (s *scheduler) plan(t *testing.T, m *machine) *deploy.Plan {
	t.Helper()
	request := &v1alpha1.CustomScheduler{}
	request.APIVersion, request.Kind = v1alpha1.APIVersion, v1alpha1.Kind
	request.Name, request.Namespace = s.name, namespace
	if s.request != nil {
		s.request(&request.Spec)
	}
	harmless := &v1alpha1.CustomScheduler{}
	harmless.Name, harmless.Namespace = s.name, namespace
	harmless.Spec.Credentials, harmless.Spec.Replicas = deploy.CredentialsServiceAccount, 1
	plan, err := deploy.NewPlan(harmless,
		deploy.Facts{Image: m.registry + "/team/kube-scheduler:v1.24.1", Branch: "v1.24.1"})
	if err != nil {
		t.Fatal(err)
	}
	plan.Request = request
	return plan
}

// packedBy returns what write writes, compressed.
func packedBy(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var data bytes.Buffer
	zip, err := gzip.NewWriterLevel(&data, gzip.BestCompression)
	if err == nil {
		err = write(zip)
	}
	if err == nil {
		err = zip.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}
