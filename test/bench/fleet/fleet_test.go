//go:build linux

// Package fleet measures `fleet status` on many API servers of several releases: time, memory of
// the process, and the requests that the API servers log.
package fleet

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/fleet"
	processes "github.com/pmk-sched/pmk-sched/internal/foresight/apiserver"
	"github.com/pmk-sched/pmk-sched/internal/replace"
	"github.com/pmk-sched/pmk-sched/test/internal/apiserver"
	"github.com/pmk-sched/pmk-sched/test/internal/audit"
	"github.com/pmk-sched/pmk-sched/test/internal/run"
	"github.com/pmk-sched/pmk-sched/test/internal/samples"
	"github.com/pmk-sched/pmk-sched/versions"
)

const (
	// rounds is how often the command is measured; the median counts.
	rounds = 5
	// The command must not take more time in seconds, and more memory in MiB.
	mostSeconds, mostMemory = 10.0, 200.0
	scheduler               = "my-scheduler"
)

// releases are the releases of the API servers, in turn, unless RELEASES names others.
const releases = "v1.20.15 v1.24.3 v1.29.2 v1.34.2 v1.36.3 v1.37.1"

func TestMain(m *testing.M) {
	run.Measured()
	os.Exit(m.Run())
}

// BenchmarkStatus reads CLUSTERS API servers (50), which share an etcd. Each has a scheduler with a
// revision, and no kubelet: its missing replicas are findings.
func BenchmarkStatus(b *testing.B) {
	clusters, err := strconv.Atoi(cmp.Or(os.Getenv("CLUSTERS"), "50"))
	if err != nil {
		b.Fatal(err)
	}
	// etcd and the logs in memory, as in package apiserver
	dir, err := os.MkdirTemp("/dev/shm", "fleet-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	kubeconfig := start(b, dir, clusters, strings.Fields(cmp.Or(os.Getenv("RELEASES"), releases)))
	var seconds, cpu, memory, sent samples.Set
	for b.Loop() {
		for range rounds {
			logged := requests(b, dir)
			began := time.Now()
			result, used := run.Measure(b, run.Program(b), "--kubeconfig", kubeconfig, "fleet", "status", "-o", "json")
			seconds = append(seconds, time.Since(began).Seconds())
			cpu, memory = append(cpu, used.CPU), append(memory, used.MiB)
			sent = append(sent, float64(requests(b, dir)-logged))
			check(b, result, clusters, int64(sent[len(sent)-1]))
		}
	}
	if seconds.Median() > mostSeconds || slices.Max(memory) > mostMemory {
		b.Errorf("expected at most %.0f s and %.0f MiB", mostSeconds, mostMemory)
	}
	b.ReportMetric(seconds.Median(), "s")
	b.ReportMetric(cpu.Median(), "cpu-s")
	b.ReportMetric(slices.Max(memory), "MiB")
	b.ReportMetric(sent.Median(), "requests")
	b.Logf("%d clusters: %.2f s, CPU %.2f s, memory %.0f MiB, %.0f requests", clusters, seconds, cpu, memory, sent)
}

// check checks that each cluster was read, and that the reported requests are the logged ones.
func check(b *testing.B, result run.Result, clusters int, logged int64) {
	b.Helper()
	rows := run.Decode[[]fleet.Row[replace.Status]](b, result.Stdout)
	reported := int64(0)
	for _, row := range rows {
		if row.Error != "" || len(row.Result.Schedulers) != 1 || len(row.Result.Schedulers[0].Drift) > 0 {
			b.Fatalf("%s: %s, %+v", row.Cluster, row.Error, row.Result)
		}
		reported += row.Result.Requests
	}
	if len(rows) != clusters || result.Code != 3 {
		b.Fatalf("%d rows: %s", len(rows), result)
	}
	if reported != logged || logged == 0 {
		b.Errorf("it reports %d requests, and the API servers logged %d", reported, logged)
	}
}

// start starts the API servers one after the other, and returns a kubeconfig with a context for
// each.
func start(b *testing.B, dir string, clusters int, names []string) string {
	b.Helper()
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(audit.Policy), 0o600); err != nil {
		b.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	var first *processes.Server
	for i := range clusters {
		release, err := versions.Parse(names[i%len(names)])
		if err != nil {
			b.Fatal(err)
		}
		binaries, err := apiserver.BinariesOf(run.Context(b), release)
		if err != nil {
			b.Fatal(err)
		}
		name := fmt.Sprintf("cluster-%02d", i)
		own := filepath.Join(dir, name)
		if err := os.Mkdir(own, 0o700); err != nil {
			b.Fatal(err)
		}
		server, err := processes.Start(run.Context(b), processes.Options{
			KubeAPIServer: binaries.KubeAPIServer, Etcd: binaries.Etcd, Shared: first, Dir: own,
			Args: []string{"--etcd-prefix=/" + name, "--audit-policy-file=" + policy,
				"--audit-log-path=" + filepath.Join(own, "audit.log"), "--audit-log-mode=blocking"},
		})
		if err != nil {
			b.Fatalf("start %s of %s: %v", name, release, err)
		}
		b.Cleanup(func() { _ = server.Close() })
		first = server
		fill(b, server, release)
		add(b, config, server, name)
	}
	file := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		b.Fatal(err)
	}
	return file
}

// add adds a context to a kubeconfig.
func add(b *testing.B, config *clientcmdapi.Config, server *processes.Server, name string) {
	b.Helper()
	access := server.Config()
	ca, err := os.ReadFile(access.CAFile)
	if err != nil {
		b.Fatal(err)
	}
	config.Clusters[name] = &clientcmdapi.Cluster{Server: access.Host, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: access.BearerToken}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
}

// fill creates a control-plane node, and deploys a scheduler without pods.
func fill(b *testing.B, server *processes.Server, release versions.Release) {
	b.Helper()
	ctx := run.Context(b)
	kube, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		b.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp",
		Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}}}
	if _, err := kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	client, err := apply.New(server.Config(), apply.Options{})
	if err != nil {
		b.Fatal(err)
	}
	request := &v1alpha1.CustomScheduler{}
	request.Name, request.Namespace = scheduler, metav1.NamespaceSystem
	request.Spec.Credentials, request.Spec.Replicas = deploy.CredentialsServiceAccount, 1
	plan, err := deploy.NewPlan(request,
		deploy.Facts{Image: "registry.example.com/my-scheduler:v1", Branch: release.String(), Now: time.Now()})
	if err != nil {
		b.Fatal(err)
	}
	revision, err := save(ctx, client, plan)
	if err == nil {
		_, err = client.Apply(ctx, plan.Objects)
	}
	if err == nil {
		err = client.SetRevisionStatus(ctx, &revision.RevisionInfo, apply.Deployed, "")
	}
	if err != nil {
		b.Fatal(err)
	}
}

func save(ctx context.Context, client *apply.Client, plan *deploy.Plan) (*apply.Revision, error) {
	record, err := plan.Record()
	if err != nil {
		return nil, err
	}
	return client.SaveRevision(ctx, apply.Revision{
		RevisionInfo: apply.RevisionInfo{Name: scheduler, Namespace: metav1.NamespaceSystem},
		Objects:      plan.Objects,
		Record:       record,
	})
}

// requests counts the requests of pmk-sched in the logs of all API servers.
func requests(b *testing.B, dir string) int {
	b.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*", "audit.log"))
	if err != nil {
		b.Fatal(err)
	}
	sum := 0
	for _, log := range logs {
		found, err := audit.Requests(log, "pmk-sched/")
		if err != nil {
			b.Fatal(err)
		}
		sum += len(found)
	}
	return sum
}
