package fleet

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
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

func TestWavesAreOrderedByNumber(t *testing.T) {
	var list []Cluster
	for _, value := range []string{"late", "10", "9", "canary", "010", "1"} {
		list = append(list, Cluster{Name: value, Labels: map[string]string{"wave": value}})
	}
	if err := SortByWave(list, "wave"); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(names(list), " "), "1 9 10 010 canary late"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	err := SortByWave(append(list, Cluster{Name: "stray"}), "wave")
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
