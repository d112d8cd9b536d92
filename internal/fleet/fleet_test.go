package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy/health"
)

// kubeconfig has a cluster for each context; the user of the last is an exec plugin.
const kubeconfig = `apiVersion: v1
kind: Config
current-context: prod/b
clusters:
- {name: a, cluster: {server: "https://a.example.com"}}
- {name: b, cluster: {server: "https://b.example.com", certificate-authority: ca.crt}}
users:
- {name: token, user: {token: secret-token}}
- name: plugin
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}}
contexts:
- name: prod/a
  context:
    cluster: a
    user: token
    extensions: [{name: pmk-sched.io/labels, extension: {wave: "10", region: eu}}]
- name: prod/b
  context:
    cluster: b
    user: plugin
    extensions: [{name: pmk-sched.io/labels, extension: {wave: "9"}}]
- {name: test, context: {cluster: nowhere, user: token}}
`

func testSession(t *testing.T, text string) *session.Session {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"config": text, "ca.crt": ""})
	connection := kubeapi.ConnectOptions{Kubeconfig: filepath.Join(dir, "config")}
	return &session.Session{Connection: connection, Log: zap.NewNop()}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// names returns the names of clusters, with an exclamation mark if they cannot be used.
func names(list []Cluster) []string {
	var out []string
	for _, c := range list {
		name := c.Name
		if c.err != nil {
			name += "!"
		}
		out = append(out, name)
	}
	return out
}

func TestContextsAreSelectedByPatternAndLabels(t *testing.T) {
	s := testSession(t, kubeconfig)
	for _, c := range []struct {
		context, selector string
		want              []string
	}{
		{"", "", []string{"prod/a", "prod/b", "test!"}},
		{"prod*", "", []string{"prod/a", "prod/b"}},
		{"*/b", "", []string{"prod/b"}},
		{"", "region=eu", []string{"prod/a"}},
		{"", "wave", []string{"prod/a", "prod/b"}},
		{"", "!wave", []string{"test!"}},
	} {
		s.Connection.Context = c.context
		got, err := List(t.Context(), s, Source{From: FromContexts, Selector: c.selector})
		if diff := cmp.Diff(c.want, names(got)); diff != "" || err != nil {
			t.Errorf("context %q, selector %q: %v (-want +got):\n%s", c.context, c.selector, err, diff)
		}
	}
}

func TestInvalidSelectionsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		context, server string
		from            Source
	}{
		"selector":         {from: Source{From: FromContexts, Selector: "a in"}},
		"pattern":          {context: "[", from: Source{From: FromContexts}},
		"nothing matches":  {context: "other", from: Source{From: FromContexts}},
		"no directory":     {from: Source{From: "/nonexistent"}},
		"one server":       {server: "https://x", from: Source{From: FromContexts}},
		"no access plugin": {from: Source{From: FromClusterProfiles}},
	} {
		s := testSession(t, kubeconfig)
		s.Connection.Context, s.Connection.Server = c.context, c.server
		if list, err := List(t.Context(), s, c.from); !problem.IsInvalid(err) {
			t.Errorf("%s: got %v, %v, want an input error", name, names(list), err)
		}
	}
}

// The kubeconfigs of the user may run plugins and name files, relative to the kubeconfig.
func TestKubeconfigOfTheUserIsTrusted(t *testing.T) {
	s := testSession(t, kubeconfig)
	dir := filepath.Dir(s.Connection.Kubeconfig)
	fromContexts, err := List(t.Context(), s, Source{From: FromContexts})
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string]string{"notes.txt": "not a kubeconfig: [", ".hidden": ""})
	fromDirectory, err := List(t.Context(), s, Source{From: dir})
	if diff := cmp.Diff([]string{"ca!", "config", "notes!"}, names(fromDirectory)); diff != "" || err != nil {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	for _, c := range []Cluster{fromContexts[1], fromDirectory[1]} {
		one, err := c.session(s)
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := one.Connect()
		if err != nil {
			t.Fatal(err)
		}
		if cfg.ExecProvider == nil || cfg.CAFile != filepath.Join(dir, "ca.crt") || c.Labels["wave"] != "9" {
			t.Errorf("%s: got CA file %s, plugin %v, labels %v", c.Name, cfg.CAFile, cfg.ExecProvider, c.Labels)
		}
	}
}

func TestDirectoryHasKubeconfigsOfALimitedSize(t *testing.T) {
	s := testSession(t, kubeconfig)
	dir := t.TempDir()
	pad := func(size int) string { return kubeconfig + "#" + strings.Repeat("x", size-len(kubeconfig)-1) }
	writeFiles(t, dir, map[string]string{"at": pad(maxKubeconfig), "above": pad(maxKubeconfig + 1)})
	if err := os.Symlink(filepath.Join(dir, "at"), filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "more"), 0o700); err != nil {
		t.Fatal(err)
	}
	for context, wave := range map[string]string{"": "9", "prod/a": "10"} {
		s.Connection.Context = context
		list, err := List(t.Context(), s, Source{From: dir})
		if diff := cmp.Diff([]string{"above!", "at", "link"}, names(list)); diff != "" || err != nil {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
		if got := list[1].Labels["wave"]; got != wave {
			t.Errorf("context %q: wave %q, want %q", context, got, wave)
		}
	}
}

// A session for a cluster has the user's general settings, and nothing of this node.
func TestClusterIsReachedAsTheUserSays(t *testing.T) {
	s := testSession(t, kubeconfig)
	s.NodeRoot = "/host"
	s.Connection.As, s.Connection.AsGroups, s.Connection.UserAgent = "alice", []string{"team"}, "pmk-sched/v1"
	s.Connection.RequestTimeout = 7 * time.Second
	list, err := List(t.Context(), s, Source{From: FromContexts})
	if err != nil {
		t.Fatal(err)
	}
	one, err := list[0].session(s)
	if err != nil {
		t.Fatal(err)
	}
	got := one.Connection
	if got.As != "alice" || !slices.Equal(got.AsGroups, []string{"team"}) || got.UserAgent != "pmk-sched/v1" ||
		got.RequestTimeout != 7*time.Second || got.Kubeconfig != "" || one.NodeRoot != inspect.NoNode {
		t.Errorf("got %+v with the node %q", got, one.NodeRoot)
	}
}

// The findings of a cluster are part of its result; what else went wrong is an error of its row.
func TestFindingsAreNoErrors(t *testing.T) {
	findings, broken := &health.FindingsError{Findings: []health.Finding{{}}}, errors.New("broken")
	for name, c := range map[string]struct{ err, want error }{
		"nothing":         {nil, nil},
		"findings":        {findings, nil},
		"an error":        {broken, broken},
		"both":            {errors.Join(findings, broken), broken},
		"both, in a join": {errors.Join(errors.Join(broken, findings), findings), broken},
	} {
		if got := withoutFindings(c.err); !errors.Is(got, c.want) || errors.As(got, new(*health.FindingsError)) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestNamespaceIsPartOfTheNameUnlessItIsGiven(t *testing.T) {
	object := &unstructured.Unstructured{}
	object.SetNamespace("team")
	object.SetName("a")
	if all, one := (Source{}).nameOf(object), (Source{Namespace: "team"}).nameOf(object); all != "team/a" || one != "a" {
		t.Errorf("got %s, and in a namespace %s", all, one)
	}
}

func TestReaderHasTheTimeAndTheWarningsOfItsCluster(t *testing.T) {
	s := testSession(t, kubeconfig)
	list, err := List(t.Context(), s, Source{From: FromContexts, Selector: "region"})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readAll(t.Context(), s, list, ReadOptions{Parallel: 1, Timeout: time.Minute},
		func(_ context.Context, one *session.Session) (*time.Duration, error) {
			one.Warn("old")
			return &one.Connection.RequestTimeout, problem.Errorf("renew it", "damaged")
		})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	row := rows[0]
	row.Seconds = 0
	minute := time.Minute
	want := Row[time.Duration]{Cluster: "prod/a", Labels: map[string]string{"wave": "10", "region": "eu"}, Result: &minute,
		Error: "damaged", Hints: []string{"renew it"}, Warnings: []string{"old"}}
	if diff := cmp.Diff(want, row); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWavesAreOrderedByNumber(t *testing.T) {
	var list []Cluster
	for _, value := range []string{"late", "10", "9", "canary", "010", "1"} {
		list = append(list, Cluster{Name: value, Labels: map[string]string{"wave": value}})
	}
	if err := sortByWave(list, "wave"); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(names(list), " "), "1 9 10 010 canary late"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	err := sortByWave(append(list, Cluster{Name: "stray"}), "wave")
	if !problem.IsInvalid(err) || !strings.Contains(err.Error(), "stray") {
		t.Errorf("a cluster without the label: %v", err)
	}
}

func TestReaderThatHangsIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails at once when all goroutines wait
		s := testSession(t, kubeconfig)
		list, err := List(t.Context(), s, Source{From: FromContexts})
		if err != nil {
			t.Fatal(err)
		}
		const timeout = 50 * time.Millisecond
		release := make(chan struct{})
		defer close(release)
		rows, err := readAll(t.Context(), s, list, ReadOptions{Parallel: 1, Timeout: timeout},
			func(_ context.Context, one *session.Session) (*string, error) {
				cfg, err := one.Connect()
				if err != nil {
					return nil, err
				}
				if cfg.Host == "https://a.example.com" {
					<-release
				}
				return &cfg.Host, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, row := range rows {
			text := row.Error
			if row.Result != nil {
				text = *row.Result
			}
			got = append(got, row.Cluster+": "+text)
		}
		want := []string{"prod/a: no answer within 50ms", "prod/b: https://b.example.com",
			`test: the kubeconfig lacks the cluster or the user of context "test"`}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
