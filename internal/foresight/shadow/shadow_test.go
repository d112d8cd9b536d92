package shadow

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/foresight/kubescheduler"
)

// The shadow reaches the proxy with the kubeconfig, as client-go reads it.
func TestTheKubeconfigHasTheTokenOfTheProxy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	listener, err := listen(file, "secret")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Header.Get("Authorization"))
		})}
	go func() { _ = server.Serve(listener) }() // until it is closed
	defer server.Close()
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || string(text) != "Bearer secret" {
		t.Errorf("%v %q", err, text)
	}
}

// An extender that binds pods binds them although the proxy passes no write.
func TestAnExtenderThatBindsIsRefused(t *testing.T) {
	for yaml, refused := range map[string]bool{
		"extenders: [{urlPrefix: http://a, filterVerb: filter}]":                    false,
		"extenders: [{urlPrefix: http://a}, {urlPrefix: http://b, bindVerb: bind}]": true,
		"profiles: [{schedulerName: packer}]":                                       false,
	} {
		err := adapt(&kubescheduler.Configuration{YAML: []byte(yaml)}, false)
		if (err != nil) != refused || refused && (!problem.IsInvalid(err) || !strings.Contains(err.Error(), "http://b")) {
			t.Errorf("%s: %v", yaml, err)
		}
	}
}

func TestAReleaseThatOrdersTiesGetsAnExtenderThatIsNotCalled(t *testing.T) {
	for yaml, want := range map[string]string{
		"profiles: [{schedulerName: packer}]": "extenders:\n- urlPrefix: http://127.0.0.1\nprofiles:\n- schedulerName: " +
			"packer\n",
		"extenders: [{urlPrefix: \"http://a\"}]": "extenders:\n- urlPrefix: http://a\n- urlPrefix: http://127.0.0.1\n",
	} {
		got := &kubescheduler.Configuration{YAML: []byte(yaml)}
		if err := adapt(got, true); err != nil || string(got.YAML) != want {
			t.Errorf("%s: got %s, %v; want %s", yaml, got.YAML, err, want)
		}
	}
}

func TestPodsAreScheduledByTheProfileOfTheObservedSchedulerIfThereIsOne(t *testing.T) {
	for want, n := range map[string]names{
		"packer": {observed: "default-scheduler", shadow: "packer", profiles: []string{"packer", "other"}},
		"default-scheduler": {observed: "default-scheduler", shadow: "packer",
			profiles: []string{"packer", "default-scheduler"}},
		"other": {observed: "default-scheduler", shadow: "packer", profiles: []string{"other"}},
	} {
		if got := n.profile(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
