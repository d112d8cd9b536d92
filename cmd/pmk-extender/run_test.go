package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/scheduler/extender"
)

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const head = "apiVersion: pmk-sched.io/v1alpha1\nkind: Extender\n"

func TestUsageErrorsExitWithStatusTwo(t *testing.T) {
	noCluster := "--kubeconfig="
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"nothing", nil, "no policy to serve"},
		{"unknown flag", []string{"--polcy", "x"}, "flag provided but not defined: -polcy"},
		{"argument", []string{"--policy", "blockall", "serve"}, `unexpected argument "serve"`},
		{"unknown policy", []string{
			"--policy", "nope", noCluster},
			"this extender has BlockAll, CostAware, ElasticQuota, GPUPacking, LoadAware, NetworkAware, NUMAAware, OtherSchedulers, Timestamp"},
		{"twice", []string{"--policy", "blockall", "--policy", "BlockAll", noCluster}, "policy BlockAll is given twice"},
		{"no argument", []string{"--policy", "loadaware", noCluster}, "policy LoadAware: prometheus.url: is required"},
		{"needs a cluster", []string{"--policy", "timestamp", noCluster}, "policy Timestamp: Timestamp needs a cluster"},
		{"prometheus without loadaware", []string{
			"--policy", "blockall", "--prometheus", "http://p", noCluster}, "add --policy loadaware"},
		{"no such file", []string{"--config", "/nonexistent"}, "read --config: open /nonexistent"},
		{"no such kubeconfig", []string{"--policy", "blockall", "--kubeconfig", "/nonexistent"}, "read the kubeconfig"},
		{"half of TLS", []string{"--policy", "blockall", "--tls-cert-file", "x", noCluster}, "are both required"},
		{"clients without TLS", []string{
			"--policy", "blockall", "--client-ca-file", "x", noCluster}, "requires --tls-cert-file"},
		{"no such certificate", []string{
			"--policy", "blockall", "--tls-cert-file", "/no", "--tls-private-key-file", "/no", "--listen", "127.0.0.1:0",
			noCluster}, "read the server's certificate"},
		{"another kind", []string{"--config", file(t, "apiVersion: v1\nkind: Pod\n")}, `apiVersion "v1", kind "Pod"`},
		{"unknown field", []string{"--config", file(t, head+"policy: x\n")}, `unknown field "policy"`},
		{"duplicate field", []string{"--config", file(t, head+"listen: a\nlisten: b\n")}, `"listen" already set`},
		{"unknown argument", []string{
			"--config", file(t, head+"policies: [{name: BlockAll, args: {mesage: x}}]\n"), noCluster},
			`policy BlockAll: read the plugin's arguments: unknown field "mesage"`},
		{"weight", []string{
			"--config", file(t, head+"policies: [{name: BlockAll, weight: 101}]\n")}, "policies[0].weight: 101"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stderr := &bytes.Buffer{}
			status := program{stdout: io.Discard, stderr: stderr}.run(t.Context(), c.args)
			if !strings.Contains(stderr.String(), c.want) || !strings.Contains(stderr.String(), "error: ") {
				t.Errorf("got %s, want %q", stderr, c.want)
			}
			if status != exitUsage {
				t.Errorf("exit status %d", status)
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	stdout, stderr := &bytes.Buffer{}, &bytes.Buffer{}
	p := program{stdout: stdout, stderr: stderr}
	if status := p.run(t.Context(), []string{"--help"}); status != exitDone ||
		!strings.Contains(stderr.String(), "-prometheus URL") {
		t.Errorf("help: %d %s", status, stderr)
	}
	if status := p.run(t.Context(), []string{"--version"}); status != exitDone ||
		!strings.Contains(stdout.String(), "policies: BlockAll CostAware ElasticQuota GPUPacking LoadAware") {
		t.Errorf("version: %d %s", status, stdout)
	}
}

func TestFlagsOverrideTheFile(t *testing.T) {
	config := file(t, head+`policies:
- {name: LoadAware, weight: 3, args: {prometheus: {url: "http://old", timeout: 1s}}}
- {name: BlockAll}
listen: ":1"
tls: {certFile: a, keyFile: b}
`)
	o, err := parse([]string{"--config", config, "--policy", "loadaware", "--prometheus", "http://new", "--listen", ":2",
		"--tls-cert-file", "c"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	got, err := o.configuration()
	if err != nil {
		t.Fatal(err)
	}
	text, err := got.YAML()
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: pmk-sched.io/v1alpha1
kind: Extender
listen: :2
policies:
- args:
    prometheus:
      timeout: 1s
      url: http://new
  name: LoadAware
  weight: 3
tls:
  certFile: c
  keyFile: b
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
}

func TestServesWithoutClusterUntilStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	listening, ended, stderr := make(chan string, 1), make(chan int, 1), &bytes.Buffer{}
	p := program{stdout: io.Discard, stderr: stderr, onListen: func(a net.Addr) { listening <- a.String() }}
	go func() {
		ended <- p.run(ctx, []string{"--config", file(t, head+"policies: [{name: BlockAll, args: {message: not today}}]\n"),
			"--listen", "127.0.0.1:0", "--kubeconfig", ""})
	}()
	var address string
	late := time.After(2 * time.Minute)
	select {
	case address = <-listening:
	case status := <-ended:
		t.Fatalf("exit status %d: %s", status, stderr)
	case <-late:
		t.Fatal("it neither listens nor ends")
	}
	for path, want := range map[string]string{"filter": `"FailedNodes":{"a":"not today"}`, "readyz": "ok",
		"metrics": "go_goroutines"} {
		method := http.MethodGet
		if path == extender.VerbFilter {
			method = http.MethodPost
		}
		request, err := http.NewRequestWithContext(ctx, method, "http://"+address+"/"+path,
			strings.NewReader(`{"Pod": {}, "NodeNames": ["a"]}`))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s: got %s %v %s", path, response.Status, err, body)
		}
	}
	cancel()
	select {
	case status := <-ended:
		if status != exitDone {
			t.Errorf("exit status %d: %s", status, stderr)
		}
	case <-late:
		t.Fatal("it does not end")
	}
}
